package compiler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// checkResultTypes reports rules of an organisation's own Rego whose type cannot be a policy result. Otherwise the error would appear only
// when the rules are evaluated. c must have compiled the rules.
func (o OrgRego) checkResultTypes(org string, c *ast.Compiler) error {
	var faults []error
	for _, file := range slices.Sorted(maps.Keys(o.modules)) {
		m := o.modules[file]
		name, ok := policyOfPackage(m)
		if !ok || strings.HasSuffix(file, "_test.rego") {
			continue
		}
		seen := map[string]bool{}
		for _, r := range m.Rules {
			rule := elements(r.Head.Ref())[0]
			if !isAnswer(rule) || seen[rule] {
				continue
			}
			seen[rule] = true
			t := c.TypeEnv.GetByRef(m.Package.Path.Append(ast.StringTerm(rule)))
			if f, isFunction := t.(*types.Function); isFunction {
				t = f.Result()
			}
			if wrong := wrongAnswer(rule, t); wrong != "" {
				faults = append(faults, faultAt(org, name, r.Location, rule+" "+wrong))
			}
		}
	}
	return errors.Join(faults...)
}

// wrongAnswer explains why a type cannot be a policy result, or returns "".
func wrongAnswer(rule string, t types.Type) string {
	switch t.(type) {
	case nil, types.Any: // several types, or unknown
		return ""
	case *types.Set, *types.Array:
	default:
		return "must be a set or an array, not " + types.Sprint(t)
	}
	changes := rule == "mutate" || rule == "mutations"
	items := []types.Type{types.Values(t)}
	if several, ok := items[0].(types.Any); ok {
		items = several
	}
	for _, item := range items {
		switch x := item.(type) {
		case nil, types.Any:
		case types.String:
			if changes {
				return "must contain objects with op, pointer and value, not strings"
			}
		case *types.Object:
			if x.DynamicProperties() != nil {
				continue
			}
			if changes && (x.Select("op") == nil || x.Select("pointer") == nil || x.Select("value") == nil) {
				return "must contain objects with op, pointer and value, not " + types.Sprint(x)
			}
			if !changes && x.Select("message") == nil && x.Select("msg") == nil {
				return "must contain strings, or objects with a message, not " + types.Sprint(x)
			}
		default:
			return "must contain strings or objects, not " + types.Sprint(item)
		}
	}
	return ""
}

// checkConstants reports strings in an organisation's own Rego that can never equal the input member they are compared with, and
// mutations with an unknown op.
func (o OrgRego) checkConstants(org string) error {
	known := vocabulary()
	var faults []error
	for _, file := range slices.Sorted(maps.Keys(o.modules)) {
		m := o.modules[file]
		policy, _ := policyOfPackage(m)
		fault := func(at *ast.Location, err error) {
			faults = append(faults, faultAt(org, policy, at, err.Error()))
		}
		compare := func(terms []*ast.Term, at *ast.Location) {
			if len(terms) < 3 || !slices.Contains([]string{"equal", "eq", "neq", "internal.member_2"}, terms[0].String()) {
				return
			}
			for i, t := range terms[1:3] {
				member, words := t.String(), strings.TrimPrefix(t.String(), "input.")
				names := known[words]
				if names == nil || member == words {
					continue
				}
				for _, word := range literals(terms[2-i]) {
					if !slices.Contains(names, word) {
						fault(at, fmt.Errorf("%s: %w", member, Unknown(words[strings.LastIndex(words, ".")+1:], word, names)))
					}
				}
			}
		}
		ast.NewGenericVisitor(func(x any) bool {
			switch v := x.(type) {
			case *ast.Expr:
				if terms, ok := v.Terms.([]*ast.Term); ok {
					compare(terms, v.Location)
				}
			case *ast.Term:
				switch value := v.Value.(type) {
				case ast.Call:
					compare(value, v.Location)
				case ast.Object:
					op := value.Get(ast.InternedTerm("op"))
					if op == nil || value.Get(ast.InternedTerm("pointer")) == nil {
						return false
					}
					if word, isString := op.Value.(ast.String); isString && policy != "" && word != "default" && word != "force" {
						fault(v.Location, fmt.Errorf("op must be default or force, got %q", string(word)))
					}
				}
			}
			return false
		}).Walk(m)
	}
	return errors.Join(faults...)
}

// literals returns the strings in a term: the term itself, or the items of a list or set.
func literals(t *ast.Term) []string {
	var out []string
	add := func(item *ast.Term) {
		if s, ok := item.Value.(ast.String); ok {
			out = append(out, string(s))
		}
	}
	switch v := t.Value.(type) {
	case *ast.Array:
		v.Foreach(add)
	case ast.Set:
		v.Foreach(add)
	default:
		add(t)
	}
	return out
}

// vocabulary maps paths of the input to the possible values of the member.
func vocabulary() map[string][]string {
	kinds, verbs, ids := map[string]bool{}, map[string]bool{}, []string{}
	for _, row := range append(operation.All(), operation.Undescribed()...) {
		ids = append(ids, row.ID)
		kinds[string(row.Kind)] = true
		verbs[string(row.Verb)] = true
	}
	delete(verbs, string(operation.VerbAction))
	for _, v := range operation.Actions() {
		verbs[string(v)] = true
	}
	return map[string][]string{
		"request.operation": ids,
		"request.verb":      slices.Sorted(maps.Keys(verbs)),
		"resource.kind":     slices.Sorted(maps.Keys(kinds)),
		"request.dialect":   {"v2", "v1", "graphql", "run"},
	}
}
