package compiler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"
)

// PolicyForms is the hint for errors about missing policies.
const PolicyForms = "a package policies.<name> with one of deny, warn, mutate, violations(params), mutations(params)"

// ownRoot is the first element of an organisation's policy packages.
const ownRoot = "policies"

// placement finds Rego that looks like a policy but would never be evaluated. Policies are found by their package and rule names, so a typo
// in either would silently disable them.
//
// Rules for helpers follow from these names: every package other than policies.<name> is a helper, unless one of its rules has the name of
// a policy rule; policies.<name> is always a policy.
type placement struct {
	org    string
	used   map[string]bool // names mentioned in bodies, values or imports
	faults []error
}

// checkPlacement reports Rego that looks like a policy but would never be evaluated, with positions. It ignores tests.
func (o OrgRego) checkPlacement(org string) error {
	p := &placement{org: org, used: map[string]bool{}}
	packages := map[string][]*ast.Module{} // modules of policies, by package name
	for _, file := range slices.Sorted(maps.Keys(o.modules)) {
		m := o.modules[file]
		if strings.HasSuffix(file, "_test.rego") {
			continue
		}
		p.mentions(m)
		name, ok := policyOfPackage(m)
		switch {
		case !ok:
			p.outside(m)
		case !policyName.MatchString(name):
			p.fault(m.Package.Location, "", fmt.Sprintf("package %s is not a policy: %q is not a valid policy name", packageName(m), name))
		default:
			p.inside(name, m)
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

func (p *placement) fault(at *ast.Location, policy, message string) {
	p.faults = append(p.faults, faultAt(p.org, policy, at, message))
}

// outside reports rules with the name of a policy rule in a package that is not a policy. In packages below policies, no part of a rule's
// name may be the name of a policy rule, because policies.x.deny defined from a parent package is not evaluated either.
func (p *placement) outside(m *ast.Module) {
	pkg := elements(m.Package.Path)
	for _, r := range m.Rules {
		ref := elements(r.Head.Ref())
		i := slices.IndexFunc(ref, isAnswer)
		if i < 0 || i > 0 && (len(pkg) == 0 || pkg[0] != ownRoot) {
			continue
		}
		message := fmt.Sprintf("%s in package %s is never evaluated: policies are packages policies.<name>", strings.Join(ref, "."),
			packageName(m))
		if near := nearPackage(pkg, ref[:i]); near != "" {
			message += fmt.Sprintf(", did you mean %q?", near)
		}
		p.fault(r.Location, "", message)
		return // one error per file is enough
	}
}

// inside reports policy rules of the wrong form.
func (p *placement) inside(name string, m *ast.Module) {
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
			p.fault(r.Location, name, rule+" is never evaluated: policy rules must not be nested in another name")
		case function && (len(ref) > 1 || len(r.Head.Args) != 1):
			p.fault(r.Location, name, rule+" is never evaluated: must be a function with one parameter, the entry's params")
		case !function && len(r.Head.Args) > 0:
			p.fault(r.Location, name, rule+" is never evaluated: must be a set, not a function")
		}
	}
}

// named reports a policy without any policy rule, and unused rules with names similar to policy rules.
func (p *placement) named(name string, modules []*ast.Module, answers bool) {
	before := len(p.faults)
	for _, m := range modules {
		for _, r := range m.Rules {
			rule := elements(r.Head.Ref())[0]
			near := nearest(rule, rulesOfOwn())
			if near == "" || isAnswer(rule) || answers && (p.used[rule] || !slip(rule, near)) {
				continue
			}
			p.fault(r.Location, name, fmt.Sprintf("rule %s is never evaluated, did you mean %q?", rule, near))
			break
		}
	}
	if !answers && len(p.faults) == before {
		p.fault(modules[0].Package.Location, name, "defines none of the rules "+strings.Join(rulesOfOwn(), ", ")+
			"; helpers belong in a package outside policies or below policies."+name)
	}
}

// mentions records every name by which a module can refer to a rule.
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

// slip reports whether written is probably a misspelling of name: one edit, two in a long name, or two swapped letters.
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

// policyOfPackage returns the <name> of a package policies.<name>.
func policyOfPackage(m *ast.Module) (name string, ok bool) {
	pkg := elements(m.Package.Path)
	if len(pkg) != 2 || pkg[0] != ownRoot {
		return "", false
	}
	return pkg[1], true
}

// elements returns the constant prefix of a reference, without data.
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

// nearPackage returns the policy package that was probably meant, or "".
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
