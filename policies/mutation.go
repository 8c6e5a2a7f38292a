package policies

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// Mutation is a change that a policy makes to the request body.
type Mutation struct {
	// Policy is the name of the policy.
	Policy string
	// Op is the kind of change.
	Op MutationOp
	// Pointer is the JSON Pointer (RFC 6901) of the field in the v2 body. Parent objects that are missing or null are created.
	Pointer string
	// Value is the new value of the field, as decoded JSON.
	Value any
	// Message explains the change, in plain text.
	Message string
}

// MutationOp is a kind of change to a body.
type MutationOp string

// Mutation operations.
const (
	// OpDefault sets the field only if it is absent.
	OpDefault MutationOp = "default"
	// OpForce sets the field and overwrites any value.
	OpForce MutationOp = "force"
)

// ErrMutation is wrapped by errors about changes that cannot be applied, because two policies require different values for one field, or
// because the body has no such field.
var ErrMutation = errors.New("policy mutation failed")

// Apply returns a copy of body with the changes applied; body is not modified. The caller must validate the result against the API
// description, determine its resource and price, and call Decide again.
func Apply(body any, changes []Mutation) (any, error) {
	for _, m := range changes {
		path, err := policyinput.SplitPointer(m.Pointer)
		if err != nil {
			return nil, fmt.Errorf("%w: policy %s: %w", ErrMutation, m.Policy, err)
		}
		if body, err = set(body, path, m); err != nil {
			return nil, fmt.Errorf("%w: policy %s: %s: %w", ErrMutation, m.Policy, m.Pointer, err)
		}
	}
	return body, nil
}

// set returns v with the value at path replaced. It copies only the objects on the path.
func set(v any, path []string, m Mutation) (any, error) {
	if len(path) == 0 {
		return m.Value, nil
	}
	switch x := operation.Decoded(v).(type) {
	case map[string]any:
		old, present := x[path[0]]
		if len(path) == 1 && m.Op == OpDefault && present {
			return x, nil
		}
		if operation.Decoded(old) == nil && len(path) > 1 { // a member that is null counts as absent
			old = map[string]any{}
		}
		changed, err := set(old, path[1:], m)
		if err != nil {
			return nil, err
		}
		out := maps.Clone(x)
		if out == nil {
			out = map[string]any{}
		}
		out[path[0]] = changed
		return out, nil
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(x) || strconv.Itoa(i) != path[0] {
			return nil, fmt.Errorf("list does not contain an item %q", path[0])
		}
		if len(path) == 1 && m.Op == OpDefault {
			return x, nil
		}
		changed, err := set(x[i], path[1:], m)
		if err != nil {
			return nil, err
		}
		out := slices.Clone(x)
		out[i] = changed
		return out, nil
	default:
		return nil, fmt.Errorf("parent of %q is not an object", path[0])
	}
}

// addMutation adds a mutation to d according to the mode of the policy entry.
func (d *Decision) addMutation(c compiler.Call, item *ast.Term) error {
	m, err := mutation(item)
	if err != nil {
		return err
	}
	m.Policy = c.Entry.Policy
	if c.Entry.Mode.OrDefault() == ModeEnforce {
		d.Mutate = append(d.Mutate, m)
		return nil
	}
	text, err := json.Marshal(m.Value)
	if err != nil {
		return err
	}
	v := Violation{
		Policy: m.Policy, Pointer: m.Pointer, Doc: c.Doc,
		Message: cmp.Or(m.Message, fmt.Sprintf("%s would be set to %s", m.Pointer, text)),
	}
	if c.Entry.Mode == ModeWarn {
		d.Warn = append(d.Warn, v)
	} else {
		d.Shadow = append(d.Shadow, v)
	}
	return nil
}

// mutation parses an object with the members op, pointer, value and message.
func mutation(t *ast.Term) (Mutation, error) {
	o, ok := t.Value.(ast.Object)
	if !ok {
		return Mutation{}, fmt.Errorf("mutation must be an object, got %s", ast.ValueName(t.Value))
	}
	op, err1 := stringMember(o, "op")
	pointer, err2 := stringMember(o, "pointer")
	message, err3 := stringMember(o, "message")
	if err := errors.Join(err1, err2, err3); err != nil {
		return Mutation{}, err
	}
	m := Mutation{Op: MutationOp(op), Pointer: pointer, Message: message}
	if m.Op != OpDefault && m.Op != OpForce {
		return Mutation{}, fmt.Errorf("op of a mutation must be default or force, got %q", op)
	}
	if _, err := policyinput.SplitPointer(pointer); err != nil {
		return Mutation{}, err
	}
	value := o.Get(ast.InternedTerm("value"))
	if value == nil {
		return Mutation{}, errors.New("value of the mutation is missing")
	}
	var err error
	if m.Value, err = ast.JSON(value.Value); err != nil {
		return Mutation{}, fmt.Errorf("value of the mutation: %w", err)
	}
	return m, nil
}

// combineMutations drops values that the body already has, prefers a force over a default for the same field, and returns an error
// if two policies conflict.
func (d *Decision) combineMutations(body any, most int) error {
	if len(d.Mutate) == 0 {
		return nil
	}
	changes := slices.SortedFunc(slices.Values(d.Mutate), func(a, b Mutation) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(b.Op, a.Op), cmp.Compare(a.Policy, b.Policy))
	})
	var kept []Mutation
	for _, m := range changes {
		path, err := policyinput.SplitPointer(m.Pointer)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrMutation, err)
		}
		if err := conflict(kept, m); err != nil {
			return err
		}
		have, present := policyinput.Lookup(body, path)
		unneeded := present && (m.Op == OpDefault || policyinput.Equal(have, m.Value))
		if !unneeded && !slices.ContainsFunc(kept, func(k Mutation) bool { return k.Pointer == m.Pointer }) {
			kept = append(kept, m)
		}
	}
	if len(kept) > most {
		return fmt.Errorf("%w: at most %d changes are allowed, got %d", ErrMutation, most, len(kept))
	}
	d.Mutate = kept
	return nil
}

// conflict returns an error if m conflicts with a kept change, that is, if m sets another value for the same field with the same operation,
// or changes a field inside a changed field.
func conflict(kept []Mutation, m Mutation) error {
	for _, k := range kept {
		same := k.Pointer == m.Pointer
		switch {
		case same && k.Op == m.Op && !policyinput.Equal(k.Value, m.Value):
			return fmt.Errorf("%w: policies %s and %s set different values for %s", ErrMutation, k.Policy, m.Policy, m.Pointer)
		case !same && (strings.HasPrefix(m.Pointer, k.Pointer+"/") || strings.HasPrefix(k.Pointer, m.Pointer+"/")):
			return fmt.Errorf("%w: policies %s and %s change the overlapping members %s and %s",
				ErrMutation, k.Policy, m.Policy, k.Pointer, m.Pointer)
		}
	}
	return nil
}
