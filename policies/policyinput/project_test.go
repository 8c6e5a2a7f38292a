package policyinput

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// anyJSON draws small decoded JSON, from few names and values so that equal
// and nearly equal ones come up.
func anyJSON(t *rapid.T, depth int) any {
	kinds := []string{"null", "bool", "string", "number", "list", "object"}
	if depth == 0 {
		kinds = kinds[:4]
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "bool":
		return rapid.Bool().Draw(t, "bool")
	case "string":
		return rapid.SampledFrom([]string{"", "a", "b", "}", "\"\x01a", "{", "#\x011"}).Draw(t, "string")
	case "number":
		return json.Number(rapid.SampledFrom([]string{"0", "1", "11", "1.0"}).Draw(t, "number"))
	case "list":
		list := make([]any, rapid.IntRange(0, 2).Draw(t, "length"))
		for i := range list {
			list[i] = anyJSON(t, depth-1)
		}
		return list
	case "object":
		object := map[string]any{}
		for range rapid.IntRange(0, 2).Draw(t, "members") {
			object[rapid.SampledFrom([]string{"a", "b", "a\x01", ""}).Draw(t, "name")] = anyJSON(t, depth-1)
		}
		return object
	default:
		return nil
	}
}

// TestEqualKeysMeanEqualValues: two inputs of one key are one value to a policy that reads
// them through the same projection.
func TestEqualKeysMeanEqualValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var paths [][]string
		for range rapid.IntRange(0, 3).Draw(t, "paths") {
			paths = append(paths, rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "path"))
		}
		p := NewProjection(paths)
		var c Converter
		a, b := anyJSON(t, 3), anyJSON(t, 3)
		keyA, errA := appendKey(nil, a, p)
		keyB, errB := appendKey(nil, b, p)
		termA, err1 := c.term(a, p)
		termB, err2 := c.term(b, p)
		if errA != nil || errB != nil || err1 != nil || err2 != nil {
			t.Fatal(errA, errB, err1, err2)
		}
		if string(keyA) == string(keyB) && termA.Value.Compare(termB.Value) != 0 {
			t.Fatalf("one key %q for %v and %v", keyA, termA, termB)
		}
	})
}
