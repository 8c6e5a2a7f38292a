package compiler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// PolicyForms is said where none was found.
const PolicyForms = "a package policies.<name> with one of deny, warn, mutate, violations(params), mutations(params)"

// ownRoot is the first element of the packages that are policies.
const ownRoot = "policies"

// placement looks for Rego that its authors take for a policy and that would
// never be evaluated: Rego in force is found by its place and its rules' names,
// so a slip in either would switch it off in silence.
//
// The rule for helpers follows from that: every package but policies.<name> is
// one, as long as no rule in it has the name of an answer; policies.<name>
// always is a policy.
type placement struct {
	org    string
	used   map[string]bool // names that bodies, values or imports mention
	faults []error
}

// misplaced reports such Rego, each fault located. Tests are not looked at.
func (o OrgRego) misplaced(org string) error {
	p := &placement{org: org, used: map[string]bool{}}
	packages := map[string][]*ast.Module{} // those of policies, by name
	for _, file := range slices.Sorted(maps.Keys(o.modules)) {
		m := o.modules[file]
		if strings.HasSuffix(file, "_test.rego") {
			continue
		}
		p.mentions(m)
		name, ok := policyOfPackage(m)
		switch {
		case !ok:
			p.outside(file, m)
		case !policyName.MatchString(name):
			p.fault(file, m.Package.Location, "", fmt.Sprintf("package %s is no policy: %q is not a policy name", packageName(m), name))
		default:
			p.inside(file, name, m)
			packages[name] = append(packages[name], m)
		}
	}
	found := o.policies()
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		_, answers := found[name]
		p.named(name, packages[name], answers)
	}
	return errors.Join(p.faults...)
}

func (p *placement) fault(file string, at *ast.Location, policy, message string) {
	p.faults = append(p.faults, &policyconfig.Error{Org: p.org, Policy: policy, File: file, Row: at.Row, Col: at.Col, Message: message})
}

// outside reports rules with the name of an answer in a package that is no
// policy. Below policies no part of a rule's name may be one: policies.x.deny
// written from above is not looked at either.
func (p *placement) outside(file string, m *ast.Module) {
	pkg := elements(m.Package.Path)
	for _, r := range m.Rules {
		ref := elements(r.Head.Ref())
		i := slices.IndexFunc(ref, isAnswer)
		if i < 0 || i > 0 && (len(pkg) == 0 || pkg[0] != ownRoot) {
			continue
		}
		message := fmt.Sprintf("%s in package %s is never evaluated: policies are packages policies.<name>", strings.Join(ref, "."), packageName(m))
		if near := nearPackage(pkg, ref[:i]); near != "" {
			message += fmt.Sprintf(", did you mean %q?", near)
		}
		p.fault(file, r.Location, "", message)
		return // one fault a file tells enough
	}
}

// inside reports answers of a policy that have not their form.
func (p *placement) inside(file, name string, m *ast.Module) {
	for _, r := range m.Rules {
		ref := elements(r.Head.Ref())
		i := slices.IndexFunc(ref, isAnswer)
		if i < 0 {
			continue
		}
		rule := strings.Join(ref, ".")
		function := ref[i] == "violations" || ref[i] == "mutations"
		switch {
		case i > 0:
			p.fault(file, r.Location, name, rule+" is never evaluated: answers have no name before theirs")
		case function && (len(ref) > 1 || len(r.Head.Args) != 1):
			p.fault(file, r.Location, name, rule+" is never evaluated: it must be a function of one parameter, the entry's params")
		case !function && len(r.Head.Args) > 0:
			p.fault(file, r.Location, name, rule+" is never evaluated: it must be a set, not a function")
		}
	}
}

// named reports a policy without any answer, and unused rules whose names
// are nearly those of answers.
func (p *placement) named(name string, modules []*ast.Module, answers bool) {
	before := len(p.faults)
	for _, m := range modules {
		for _, r := range m.Rules {
			rule := elements(r.Head.Ref())[0]
			near := nearest(rule, rulesOfOwn())
			if near == "" || isAnswer(rule) || answers && (p.used[rule] || !slip(rule, near)) {
				continue
			}
			p.fault(r.Location.File, r.Location, name, fmt.Sprintf("rule %s is no answer and never evaluated, did you mean %q?", rule, near))
			break
		}
	}
	if !answers && len(p.faults) == before {
		at := modules[0].Package.Location
		p.fault(at.File, at, name, "has no answer: "+strings.Join(rulesOfOwn(), ", ")+"; helpers belong in a package outside policies or below policies."+name)
	}
}

// mentions notes every name a module can refer to a rule by.
func (p *placement) mentions(m *ast.Module) {
	note := ast.NewGenericVisitor(func(x any) bool {
		switch v := x.(type) {
		case ast.Var:
			p.used[string(v)] = true
		case ast.String:
			p.used[string(v)] = true
		}
		return false
	})
	for _, i := range m.Imports {
		note.Walk(i.Path)
	}
	for _, r := range m.Rules {
		for ; r != nil; r = r.Else {
			note.Walk(r.Body)
			for _, t := range append(slices.Clone(r.Head.Args), r.Head.Key, r.Head.Value) {
				if t != nil {
					note.Walk(t)
				}
			}
		}
	}
}

// slip reports whether written is a likely mistyping of name: an edit, two in a long
// one, or two letters swapped.
func slip(written, name string) bool {
	if levenshtein.ComputeDistance(written, name) <= max(1, len(name)/4) {
		return true
	}
	for i := range len(name) - 1 {
		if written == name[:i]+string(name[i+1])+string(name[i])+name[i+2:] {
			return true
		}
	}
	return false
}

func isAnswer(name string) bool { return slices.Contains(rulesOfOwn(), name) }

// policyOfPackage is the <name> of a package policies.<name>.
func policyOfPackage(m *ast.Module) (name string, ok bool) {
	pkg := elements(m.Package.Path)
	if len(pkg) != 2 || pkg[0] != ownRoot {
		return "", false
	}
	return pkg[1], true
}

// elements are the constant parts a reference begins with, without data.
func elements(ref ast.Ref) []string {
	var out []string
	for i, t := range ref {
		switch v := t.Value.(type) {
		case ast.Var:
			if i > 0 {
				return out
			}
			if !t.Equal(ast.DefaultRootDocument) {
				out = append(out, string(v))
			}
		case ast.String:
			out = append(out, string(v))
		default:
			return out
		}
	}
	return out
}

// nearPackage is the policy's package that was probably meant, or "".
func nearPackage(pkg, before []string) string {
	path := slices.Concat(pkg, before)
	switch {
	case len(path) > 1 && (path[0] == ownRoot || nearest(path[0], []string{ownRoot}) != ""):
		path = path[1:]
	case len(path) > 0 && path[0] != ownRoot:
		path = path[len(path)-1:]
	default:
		return ""
	}
	if name := strings.Join(path, "_"); policyName.MatchString(name) {
		return ownPackage + name
	}
	return ""
}
