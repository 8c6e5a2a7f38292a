package policyinput

import (
	"testing"

	"pgregory.net/rapid"
)

// later is a deferred value.
type later struct{ v any }

func (l later) Decoded() any { return l.v }

// deferring returns v with some of its values deferred.
func deferring(t *rapid.T, v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for name, item := range x {
			out[name] = deferring(t, item)
		}
		v = out
	case []any:
		out := make([]any, len(x))
		for i, item := range x {
			out[i] = deferring(t, item)
		}
		v = out
	}
	if rapid.Bool().Draw(t, "deferred") {
		return later{v}
	}
	return v
}

// TestDeferredValuesAreValues: a policy sees no difference, and neither does what
// remembers its verdicts.
func TestDeferredValuesAreValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyJSON(t, 3)
		d := deferring(t, v)
		p := NewProjection([][]string{rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "path")})
		if _, isObject := v.(map[string]any); !isObject {
			p = everything
		}
		var c Converter
		one, err1 := c.term(v, p)
		other, err2 := c.term(d, p)
		if err1 != nil || err2 != nil || one.Value.Compare(other.Value) != 0 {
			t.Fatalf("read as %v, %v; want %v, %v", other, err2, one, err1)
		}
		key, err1 := appendKey(nil, v, p)
		same, err2 := appendKey(nil, d, p)
		if err1 != nil || err2 != nil || string(key) != string(same) {
			t.Fatalf("key %q, %v; want %q, %v", same, err2, key, err1)
		}
		path := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "0", "1"}), 0, 3).Draw(t, "at")
		want, there := Lookup(v, path)
		got, found := Lookup(d, path)
		if there != found || there && !Equal(want, got) {
			t.Fatalf("at %v: %v, %t; want %v, %t", path, got, found, want, there)
		}
	})
}
