package fastcheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each schema with values that it accepts and values that it refuses, as
// both validators say.
func TestKeywords(t *testing.T) {
	tests := []struct {
		name, schema, valid, invalid string
	}{
		{"true", `true`, `[null, 1, "a"]`, `[]`},
		{"false", `false`, `[]`, `[null, 1, "a", {}]`},
		{"empty", `{}`, `[null, true, 1, "a", [], {}]`, `[]`},
		{"unknown keywords", `{"discriminator": {"propertyName": "x"}, "nullable": false}`, `[null, {}]`, `[]`},

		{"type null", `{"type": "null"}`, `[null]`, `[0, false, "", [], {}]`},
		{"type boolean", `{"type": "boolean"}`, `[true, false]`, `[0, null, "true"]`},
		{"type number", `{"type": "number"}`, `[0, -1.5, 1e400]`, `["1", null, true]`},
		{
			"type integer", `{"type": "integer"}`, `[0, -0, -7, 1.0, -0.0, 9007199254740991]`,
			`[1.5, 0.999999999999999, 1e-1, 15e-2, "1", null]`,
		},
		{"type string", `{"type": "string"}`, `["", "a"]`, `[1, null, ["a"]]`},
		{"type array", `{"type": "array"}`, `[[], [1]]`, `[{}, "[]", null]`},
		{"type object", `{"type": "object"}`, `[{}, {"a": 1}]`, `[[], "{}", null]`},
		{"several types", `{"type": ["string", "null", "integer"]}`, `["", null, 3.0]`, `[3.5, [], true]`},
		{"integer beside number", `{"type": ["integer", "number"]}`, `[3.5, 3]`, `["3"]`},

		{"const string", `{"const": "a"}`, `["a"]`, `["A", "", null, ["a"]]`},
		{"enum of strings", `{"enum": ["a", "b"]}`, `["a", "b"]`, `["c", "", 1, null]`},

		{"minimum", `{"minimum": 0.5}`, `[0.5, 0.50, 1, "x", null]`, `[0.49, 0, -1, 4.9e-1, -1e300, 1e-300]`},
		{"minimum below zero", `{"minimum": -1.5}`, `[-1.5, -1, 0]`, `[-1.6, -15, -1.5000001]`},
		{"maximum", `{"maximum": 100}`, `[100, 100.0, 99.999999]`, `[101, 100.000001, 1e3, 1e300]`},

		{"minLength", `{"minLength": 2}`, `["ab", "éé", "日本", 1, []]`, `["", "a", "é", "😀"]`},
		{"maxLength", `{"maxLength": 2}`, `["", "ab", "日本", "😀", 1, []]`, `["abc", "日本語"]`},
		{"pattern", `{"pattern": "^\\d+\\.\\d+$"}`, `["12.8", 12, null]`, `["12", "", "12.8\n", "v12.8"]`},
		{"pattern within", `{"pattern": "b"}`, `["abc"]`, `["ac"]`},

		{"format", `{"format": "date-time"}`, `["2026-08-01T10:00:00Z", 1, null]`, `["2026-08-01", "", "2026-13-01T10:00:00Z"]`},
		{"format uuid", `{"format": "uuid"}`, `["123e4567-e89b-12d3-a456-426614174000"]`, `["123"]`},
		{"an unknown format", `{"format": "float"}`, `[1, "x"]`, `[]`},

		{"properties", `{"properties": {"a": {"type": "integer"}, "b": false}}`, `[{}, {"a": 1}, {"c": 1}, {"a": 1, "c": 2, "d": 3}, 1]`, `[{"a": ""}, {"b": 1}, {"a": 1, "b": 1, "c": 1}]`},
		{"additionalProperties false", `{"properties": {"a": true}, "additionalProperties": false}`, `[{}, {"a": 1}]`, `[{"b": 1}, {"a": 1, "b": 1}, {"A": 1}]`},
		{"additionalProperties true", `{"additionalProperties": true}`, `[{}, {"a": 1}]`, `[]`},
		{"additionalProperties schema", `{"properties": {"a": true}, "additionalProperties": {"type": "string"}}`, `[{"a": 1, "b": ""}]`, `[{"b": 1}]`},
		{"required", `{"required": ["a", "b"]}`, `[{"a": null, "b": 1}, [], "x"]`, `[{}, {"a": 1}, {"A": 1, "b": 1}]`},
		{"minProperties", `{"minProperties": 1}`, `[{"a": 1}, []]`, `[{}]`},
		{"dependentRequired", `{"dependentRequired": {"a": ["b"], "c": []}}`, `[{}, {"b": 1}, {"a": 1, "b": 1}, {"c": 1}]`, `[{"a": 1}]`},

		{"items", `{"items": {"type": "integer"}}`, `[[], [1, 2.0], {}]`, `[[""], [1, 2.5]]`},
		{"items false", `{"items": false}`, `[[]]`, `[[1]]`},
		{"minItems", `{"minItems": 1}`, `[[1], {}]`, `[[]]`},
		{"maxItems", `{"maxItems": 1}`, `[[], [1]]`, `[[1, 2]]`},
		{
			"uniqueItems", `{"uniqueItems": true}`, `[[], [1], [1, "1", true, null, [1], {"a": 1}], [{"a": 1}, {"a": 2}], [0, false, null, "", [], {}]]`,
			`[[1, 1.0], ["a", "b", "a"], [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], [[], []], [null, null]]`,
		},
		{"uniqueItems false", `{"uniqueItems": false}`, `[[1, 1]]`, `[]`},

		{"allOf", `{"allOf": [{"minimum": 1}, {"maximum": 3}]}`, `[1, 3, "x"]`, `[0, 4]`},
		{"oneOf", `{"oneOf": [{"type": "string"}, {"type": ["string", "null"], "minLength": 2}]}`, `["b", null]`, `["ab", 2]`},
		{"not", `{"not": {"type": "string"}}`, `[1, null]`, `["", "a"]`},
		{"not not", `{"not": {"not": {"type": "string"}}}`, `["a"]`, `[1]`},
		{"if then", `{"if": {"required": ["a"]}, "then": {"required": ["b"]}}`, `[{}, {"a": 1, "b": 1}, {"b": 1}]`, `[{"a": 1}]`},

		{"$ref", `{"$ref": "#/$defs/n", "maximum": 5, "$defs": {"n": {"type": "integer"}}}`, `[5, 1.0]`, `[6, 1.5, "x"]`},
		{"$ref to an anchor", `{"$ref": "#n", "$defs": {"n": {"$anchor": "n", "type": "integer"}}}`, `[5]`, `["x"]`},
		{"a recursive schema", `{"properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}}`, `[{"next": {"next": {"n": 1}}}]`, `[{"next": {"next": {"n": ""}}}, {"n": ""}]`},
		{"a recursive array", `{"type": "array", "items": {"$ref": "#"}}`, `[[], [[], [[]]]]`, `[[[1]], 1]`},

		{
			"unevaluatedProperties", `{"allOf": [{"properties": {"a": true}}, {"$ref": "#/$defs/b"}], "properties": {"c": true},
				"unevaluatedProperties": false, "$defs": {"b": {"properties": {"b": true}}}}`,
			`[{}, {"a": 1, "b": 1, "c": 1}, []]`, `[{"d": 1}, {"a": 1, "d": 1}]`,
		},
		{"unevaluatedProperties schema", `{"properties": {"a": true}, "unevaluatedProperties": {"type": "string"}}`, `[{"a": 1, "b": ""}]`, `[{"b": 1}]`},
		{"unevaluatedProperties after all", `{"allOf": [{"additionalProperties": true}], "unevaluatedProperties": false}`, `[{"a": 1}]`, `[]`},
		{"unevaluatedProperties twice", `{"allOf": [{"unevaluatedProperties": {"type": "string"}}], "unevaluatedProperties": false}`, `[{"a": ""}]`, `[{"a": 1}]`},
		{"unevaluatedProperties above a child", `{"properties": {"a": {"properties": {"b": true}}}, "unevaluatedProperties": false}`, `[{"a": {"c": 1}}]`, `[{"b": 1}]`},
		{"unevaluatedProperties looks into no sibling", `{"allOf": [{"properties": {"a": true}}, {"unevaluatedProperties": false}]}`, `[{}]`, `[{"a": 1}]`},
		{
			"unevaluatedProperties and a branch that adds nothing", `{"properties": {"a": true, "b": true}, "unevaluatedProperties": false,
				"if": {"properties": {"a": {"const": "1"}}, "required": ["a"]}, "then": {"properties": {"b": {"const": "2"}}}}`,
			`[{}, {"a": "1"}, {"a": "1", "b": "2"}, {"a": 2, "b": 3}]`, `[{"c": 1}, {"a": "1", "b": 3}, {"a": 2, "c": 1}]`,
		},
		{"allOf beside what refuses the same member", `{"properties": {"a": {"type": "integer"}}, "allOf": [{"properties": {"a": true}}]}`, `[{"a": 1}]`, `[{"a": ""}]`},
		{
			"allOf beside additionalProperties", `{"properties": {"a": true}, "additionalProperties": false, "allOf": [{"properties": {"b": true}}]}`,
			`[{"a": 1}]`, `[{"b": 1}]`,
		},
		{
			"a branch that evaluates what another does not any more", `{"$ref": "#/$defs/x", "allOf": [{"properties": {"a": true, "b": {"type": "integer"}}}],
				"unevaluatedProperties": false, "$defs": {"x": {"if": {"required": ["a"]}, "then": {"properties": {"a": true}}}}}`,
			`[{"a": 1, "b": 1}]`, `[{"a": 1, "b": ""}]`,
		},
		{"unevaluatedProperties and not", `{"not": {"properties": {"a": {"type": "string"}}}, "unevaluatedProperties": false}`, `[]`, `[1, {}, {"a": 1}, {"a": ""}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, p := mustCompile(t, tt.schema)
			if diff := cmp.Diff([]string(nil), p.Gaps()); diff != "" {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
			check := func(values string, want bool) {
				for _, v := range mustDecode(t, values).([]any) {
					if got := validate(s, v) == nil; got != want {
						t.Errorf("%v: jsonschema accepts it = %v, want %v", v, got, want)
					}
					if d := disagreement(s, p, v); d != "" {
						t.Errorf("%v: %s", v, d)
					}
					if got := p.Accepts(v); got != want {
						t.Errorf("%v: Accepts = %v, want %v", v, got, want)
					}
				}
			}
			check(tt.valid, true)
			check(tt.invalid, false)
		})
	}
}
