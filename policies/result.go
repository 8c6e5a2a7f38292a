package policies

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// add adds the result of one policy call to d.
func (d *Decision) add(c compiler.Call, got *ast.Term) error {
	if c.Rule == "mutations" || c.Rule == "mutate" {
		return each(got, func(item *ast.Term) error { return d.addMutation(c, item) })
	}
	return each(got, func(item *ast.Term) error {
		v, err := violation(item)
		if err != nil {
			return err
		}
		v.Policy, v.Doc, v.Approvable = c.Entry.Policy, cmp.Or(v.Doc, c.Doc), c.Entry.Approvable
		switch mode := c.Entry.Mode.OrDefault(); {
		case mode == ModeShadow:
			d.Shadow = append(d.Shadow, v)
		case mode == ModeWarn || c.Rule == "warn":
			d.Warn = append(d.Warn, v)
		default:
			d.Deny = append(d.Deny, v)
		}
		return nil
	})
}

// each calls visit for the items of a set or an array, and returns an error for any other value.
func each(t *ast.Term, visit func(*ast.Term) error) error {
	switch v := t.Value.(type) {
	case ast.Set:
		return v.Iter(visit)
	case *ast.Array:
		return v.Iter(visit)
	default:
		return fmt.Errorf("result must be a set or an array, got %s", ast.ValueName(t.Value))
	}
}

// violation parses a message, or an object with message (or msg), pointer, doc and excess.
func violation(t *ast.Term) (Violation, error) {
	switch v := t.Value.(type) {
	case ast.String:
		if v == "" {
			return Violation{}, errors.New("message of the violation is empty")
		}
		return Violation{Message: string(v)}, nil
	case ast.Object:
		message, err1 := stringMember(v, "message")
		short, err2 := stringMember(v, "msg")
		pointer, err3 := stringMember(v, "pointer")
		doc, err4 := stringMember(v, "doc")
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return Violation{}, err
		}
		excess, err := excessOf(v)
		if err != nil {
			return Violation{}, err
		}
		out := Violation{Message: cmp.Or(message, short), Pointer: pointer, Doc: doc, Excess: excess}
		if out.Message == "" {
			return Violation{}, errors.New("message of the violation is missing")
		}
		if pointer != "" && pointer[0] != '/' {
			return Violation{}, fmt.Errorf("pointer %q must start with /", pointer)
		}
		return out, nil
	default:
		return Violation{}, fmt.Errorf("violation must be a string or an object, got %s", ast.ValueName(t.Value))
	}
}

// excessOf returns the excess of a violation, or 0 if it is absent or null.
func excessOf(o ast.Object) (float64, error) {
	t := o.Get(ast.InternedTerm("excess"))
	if t == nil || t.Value.Compare(ast.Null{}) == 0 {
		return 0, nil
	}
	n, ok := t.Value.(ast.Number)
	if !ok {
		return 0, fmt.Errorf("excess must be a number, got %s", ast.ValueName(t.Value))
	}
	return json.Number(n).Float64()
}

// stringMember returns a string member of an object, or "" if it is absent.
func stringMember(o ast.Object, name string) (string, error) {
	t := o.Get(ast.InternedTerm(name))
	if t == nil {
		return "", nil
	}
	s, ok := t.Value.(ast.String)
	if !ok {
		return "", fmt.Errorf("%s must be a string, got %s", name, ast.ValueName(t.Value))
	}
	return string(s), nil
}

// sort sorts the violations so that their order does not depend on the configuration, and removes duplicates.
func (d *Decision) sort() {
	for _, list := range []*[]Violation{&d.Deny, &d.Warn, &d.Shadow} {
		slices.SortFunc(*list, func(a, b Violation) int {
			return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Message, b.Message))
		})
		*list = slices.Compact(*list)
	}
}
