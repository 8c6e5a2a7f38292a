package compiler

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// docs is the prefix of the links to the pages of policies.
const docs = "docs/policies/"

// planner collects the policy calls of an organisation and the errors found.
type planner struct {
	lib    *library
	org    string
	mine   map[string]ownPolicy
	calls  []Call
	faults []error
}

// ownPolicy is a package policies.<name> of an organisation: the policy rules it defines, and its position.
type ownPolicy struct {
	at    *ast.Location // of its package
	rules []string
	// custom is the part of the package's METADATA that describes parameters. If nil, any parameters are allowed.
	custom map[string]any
}

// rulesOfOwn returns the names of the rules that make a package a policy.
func rulesOfOwn() []string { return []string{"violations", "mutations", "deny", "warn", "mutate"} }

// policies returns the organisation's policy packages with their policy rules.
func (o OrgRego) policies() map[string]ownPolicy {
	out := map[string]ownPolicy{}
	for _, file := range slices.Sorted(maps.Keys(o.modules)) {
		m := o.modules[file]
		name, ok := policyOfPackage(m)
		if !ok {
			continue
		}
		p := out[name]
		for _, a := range m.Annotations {
			if a.Scope == "package" && a.Custom["params"] != nil {
				p.custom = a.Custom
			}
		}
		for _, rule := range rulesOfOwn() {
			isFunction := rule == "violations" || rule == "mutations"
			if defines(m, rule, isFunction) && !slices.Contains(p.rules, rule) {
				p.rules = append(p.rules, rule)
				p.at = m.Package.Location
			}
		}
		if len(p.rules) > 0 {
			out[name] = p
		}
	}
	return out
}

// defines reports whether a module defines a rule, or a function with one parameter.
func defines(m *ast.Module, name string, function bool) bool {
	if function {
		return definesFunction(m, name)
	}
	return slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool {
		ref := r.Head.Ref()
		return len(ref) > 0 && ref[0].Equal(ast.VarTerm(name)) && len(r.Head.Args) == 0
	})
}

// fault records an error in the organisation's configuration.
func (p *planner) fault(policy string, err error) {
	for _, f := range fault.List(err) {
		p.faults = append(p.faults, &policyconfig.Error{Org: p.org, Policy: policy, Path: f.Path, Message: f.Err.Error()})
	}
}

// entry adds the calls of one configured entry.
func (p *planner) entry(path string, e policyconfig.Entry) {
	if faults := validate(&e, path); len(faults) > 0 {
		p.fault("", errors.Join(faults...))
		return
	}
	if mine, ok := p.mine[e.Policy]; ok {
		p.own(path, e, mine)
		return
	}
	policy := p.lib.policy(e.Policy)
	if policy == nil {
		known := slices.Concat(p.lib.names, slices.Collect(maps.Keys(p.mine)))
		p.fault("", fault.At(path+".policy", Unknown("policy", e.Policy, known)))
		return
	}
	params, faults := policy.params.check(e.Params)
	p.fault(e.Policy, fault.At(path+".params", errors.Join(faults...)))
	for _, rule := range policy.rules {
		p.calls = append(p.calls, Call{
			Entry: e, params: params, from: libraryPackage + policy.Name, path: path, Rule: rule, Doc: docs + policy.Name + ".md",
		})
	}
}

// own adds the calls of one of the organisation's own policies.
func (p *planner) own(path string, e policyconfig.Entry, mine ownPolicy) {
	params, err := mine.params(&e)
	if err != nil {
		p.fault(e.Policy, fault.At(path+".params", err))
		return
	}
	for _, rule := range mine.rules {
		p.calls = append(p.calls, Call{Entry: e, params: params, from: ownPackage + e.Policy, path: path, Rule: rule})
	}
}

// params returns the parameters of an entry, validated against the METADATA.
func (mine ownPolicy) params(e *policyconfig.Entry) (map[string]any, error) {
	if mine.custom == nil {
		v, err := policyinput.Plain(e.Params)
		object, _ := v.(map[string]any)
		return object, err
	}
	described, err := newParams(e.Policy, mine.custom)
	if err != nil {
		return nil, fmt.Errorf("METADATA of %s: %w", e.Policy, err)
	}
	params, faults := described.check(e.Params)
	return params, errors.Join(faults...)
}

// files returns the library files that the calls need, or all library files if all is set because the organisation's own Rego refers to the
// library or may do so.
func (p *planner) files(all bool) []string {
	if all {
		return slices.Sorted(maps.Keys(p.lib.files))
	}
	var policies []string
	for _, c := range p.calls {
		policies = append(policies, c.Entry.Policy)
	}
	return p.lib.closure(policies)
}
