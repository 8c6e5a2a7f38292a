package fastcheck

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each schema with values that it accepts and values that it refuses, in the
// opinion of both validators.
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
			"type integer", `{"type": "integer"}`, `[0, -0, -7, 1.0, 1e2, 80e-1, 1.50e1, -0.0, 0e-5, 18446744073709551610]`,
			`[1.5, 1e-1, 15e-2, "1", null, 0.1e0]`,
		},
		{"type string", `{"type": "string"}`, `["", "a"]`, `[1, null, ["a"]]`},
		{"type array", `{"type": "array"}`, `[[], [1]]`, `[{}, "[]", null]`},
		{"type object", `{"type": "object"}`, `[{}, {"a": 1}]`, `[[], "{}", null]`},
		{"several types", `{"type": ["string", "null", "integer"]}`, `["", null, 3.0]`, `[3.5, [], true]`},
		{"integer beside number", `{"type": ["integer", "number"]}`, `[3.5, 3]`, `["3"]`},

		{"const string", `{"const": "a"}`, `["a"]`, `["A", "", null, ["a"]]`},
		{"const null", `{"const": null}`, `[null]`, `[false, 0, ""]`},
		{"const number", `{"const": 1.0}`, `[1, 1.0, 1e0, 10e-1]`, `[1.1, "1", true, -1]`},
		{"const zero", `{"const": 0}`, `[0, -0, 0.0, 0e9]`, `[false, null, ""]`},
		{"const false", `{"const": false}`, `[false]`, `[0, true, null]`},
		{"const object", `{"const": {"a": [1, {"b": null}]}}`, `[{"a": [1.0, {"b": null}]}]`, `[{}, {"a": [1, {"b": 0}]}, {"a": [1]}, {"a": [1, {"c": null}]}]`},
		{"enum of strings", `{"enum": ["a", "b"]}`, `["a", "b"]`, `["c", "", 1, null]`},
		{"enum of all sorts", `{"enum": [1, "1", null, [2], {"x": 3}]}`, `[1e0, "1", null, [2.0], {"x": 3}]`, `[2, "2", false, [], [2, 2], {"x": 4}]`},

		{"minimum", `{"minimum": 0.5}`, `[0.5, 5e-1, 0.50, 1, 1e300, "x", null]`, `[0.49, 0, -1, 4.9e-1, -1e300, 1e-300]`},
		{"minimum below zero", `{"minimum": -1.5}`, `[-1.5, -1, 0]`, `[-1.6, -15, -1.5000001]`},
		{"maximum", `{"maximum": 100}`, `[100, 1e2, 1.0e2, -1e300, 99.999999]`, `[101, 100.000001, 1e3, 1e300]`},
		{"exclusiveMinimum", `{"exclusiveMinimum": 0}`, `[0.001, 1, 1e-300]`, `[0, -0, -1, 0e5]`},
		{"exclusiveMaximum", `{"exclusiveMaximum": 1e3}`, `[999.999, -1e9]`, `[1000, 1e3, 1001]`},
		{"multipleOf", `{"multipleOf": 3}`, `[0, 3, -9, 6.0, 3e20, "x"]`, `[1, 4, 3.5, 1e20, 0.3]`},
		{"multipleOf a fraction", `{"multipleOf": 0.01}`, `[0, 0.07, 19.99, 1e5, -3]`, `[0.075, 1e-3, 19.999]`},
		{"multipleOf a large number", `{"multipleOf": 4e3}`, `[8000, 8e3, 0, 4e300]`, `[4, 400, 4001, 4e2, 1e-300]`},

		{"minLength", `{"minLength": 2}`, `["ab", "éé", "日本", 1, []]`, `["", "a", "é", "😀"]`},
		{"maxLength", `{"maxLength": 2}`, `["", "ab", "éé", "😀😀"]`, `["abc", "日本語"]`},
		{"combining marks", `{"maxLength": 1}`, `["\u00e9"]`, `["e\u0301"]`},
		{"pattern", `{"pattern": "^\\d+\\.\\d+$"}`, `["12.8", 12, null]`, `["12", "", "12.8\n", "v12.8"]`},
		{"pattern within", `{"pattern": "b"}`, `["abc"]`, `["ac"]`},

		{"format", `{"format": "date-time"}`, `["2026-08-01T10:00:00Z", 1, null]`, `["2026-08-01", "", "2026-13-01T10:00:00Z"]`},
		{"format uuid", `{"format": "uuid"}`, `["123e4567-e89b-12d3-a456-426614174000"]`, `["123"]`},
		{"a format nobody knows", `{"format": "float"}`, `[1, "x"]`, `[]`},

		{"properties", `{"properties": {"a": {"type": "integer"}, "b": false}}`, `[{}, {"a": 1}, {"c": 1}, {"a": 1, "c": 2, "d": 3}, 1]`, `[{"a": ""}, {"b": 1}, {"a": 1, "b": 1, "c": 1}]`},
		{"additionalProperties false", `{"properties": {"a": true}, "additionalProperties": false}`, `[{}, {"a": 1}]`, `[{"b": 1}, {"a": 1, "b": 1}, {"A": 1}]`},
		{"additionalProperties true", `{"additionalProperties": true}`, `[{}, {"a": 1}]`, `[]`},
		{"additionalProperties schema", `{"properties": {"a": true}, "additionalProperties": {"type": "string"}}`, `[{"a": 1, "b": ""}]`, `[{"b": 1}]`},
		{
			"patternProperties", `{"patternProperties": {"^x": {"type": "string"}, "y$": {"minLength": 2}}, "additionalProperties": false}`,
			`[{}, {"x": ""}, {"xy": "ab"}, {"y": 1}]`, `[{"x": 1}, {"xy": "a"}, {"z": 1}]`,
		},
		{"patternProperties beside properties", `{"properties": {"ab": {"minLength": 1}}, "patternProperties": {"a": {"maxLength": 1}}}`, `[{"ab": "x"}, {"b": "xxx"}]`, `[{"ab": ""}, {"ab": "xx"}]`},
		{"required", `{"required": ["a", "b"]}`, `[{"a": null, "b": 1}, [], "x"]`, `[{}, {"a": 1}, {"A": 1, "b": 1}]`},
		{"minProperties", `{"minProperties": 1}`, `[{"a": 1}, []]`, `[{}]`},
		{"maxProperties", `{"maxProperties": 1}`, `[{}, {"a": 1}]`, `[{"a": 1, "b": 1}]`},
		{"propertyNames", `{"propertyNames": {"pattern": "^[a-z]+$", "maxLength": 2}}`, `[{}, {"ab": 1}]`, `[{"A": 1}, {"abc": 1}, {"": 1}]`},
		{"propertyNames that are no strings", `{"propertyNames": {"type": "integer"}}`, `[{}]`, `[{"1": 1}]`},
		{"dependentRequired", `{"dependentRequired": {"a": ["b"], "c": []}}`, `[{}, {"b": 1}, {"a": 1, "b": 1}, {"c": 1}]`, `[{"a": 1}]`},
		{"dependentSchemas", `{"dependentSchemas": {"a": {"maxProperties": 1}}}`, `[{"b": 1, "c": 1}, {"a": 1}, 1]`, `[{"a": 1, "b": 1}]`},
		{"dependencies", `{"dependencies": {"a": ["b"], "c": {"maxProperties": 1}, "d": false}}`, `[{}, {"a": 1, "b": 1}, {"c": 1}]`, `[{"a": 1}, {"c": 1, "b": 1}, {"d": 1}]`},

		{"items", `{"items": {"type": "integer"}}`, `[[], [1, 2.0], {}]`, `[[""], [1, 2.5]]`},
		{"items false", `{"items": false}`, `[[]]`, `[[1]]`},
		{"prefixItems", `{"prefixItems": [{"type": "string"}, {"type": "null"}]}`, `[[], ["a"], ["a", null], ["a", null, 1]]`, `[[1], ["a", 1]]`},
		{"prefixItems and items", `{"prefixItems": [{"type": "string"}], "items": {"type": "null"}}`, `[[], ["a"], ["a", null, null]]`, `[[null], ["a", 1]]`},
		{"minItems", `{"minItems": 1}`, `[[1], {}]`, `[[]]`},
		{"maxItems", `{"maxItems": 1}`, `[[], [1]]`, `[[1, 2]]`},
		{
			"uniqueItems", `{"uniqueItems": true}`, `[[], [1], [1, "1", true, null, [1], {"a": 1}], [{"a": 1}, {"a": 2}], [0, false, null, "", [], {}]]`,
			`[[1, 1.0], ["a", "b", "a"], [{"a": 1, "b": 2}, {"b": 2e0, "a": 1}], [[], []], [null, null]]`,
		},
		{"uniqueItems false", `{"uniqueItems": false}`, `[[1, 1]]`, `[]`},
		{"contains", `{"contains": {"type": "string"}}`, `[["a"], [1, "a"], {}]`, `[[], [1]]`},
		{"minContains", `{"contains": {"const": 1}, "minContains": 2}`, `[[1, 1.0]]`, `[[], [1], [1, 2]]`},
		{"minContains 0", `{"contains": {"const": 1}, "minContains": 0}`, `[[], [2]]`, `[]`},
		{"maxContains", `{"contains": {"const": 1}, "maxContains": 1}`, `[[1], [1, 2]]`, `[[], [1, 1]]`},

		{"allOf", `{"allOf": [{"minimum": 1}, {"maximum": 3}]}`, `[1, 3, "x"]`, `[0, 4]`},
		{"anyOf", `{"anyOf": [{"type": "string"}, {"minimum": 3}]}`, `["", 3, null]`, `[2]`},
		{"oneOf", `{"oneOf": [{"type": "string"}, {"enum": ["a", 1]}]}`, `["b", 1]`, `["a", 2, null]`},
		{"not", `{"not": {"type": "string"}}`, `[1, null]`, `["", "a"]`},
		{"not not", `{"not": {"not": {"type": "string"}}}`, `["a"]`, `[1]`},
		{"if then else", `{"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "integer"}}`, `["ab", 1]`, `["a", 1.5, null]`},
		{"if then", `{"if": {"required": ["a"]}, "then": {"required": ["b"]}}`, `[{}, {"a": 1, "b": 1}, {"b": 1}]`, `[{"a": 1}]`},
		{"if else", `{"if": {"type": "string"}, "else": {"const": 1}}`, `["x", 1]`, `[2]`},
		{"then without if", `{"then": false, "else": false}`, `[1]`, `[]`},

		{"$ref", `{"$ref": "#/$defs/n", "maximum": 5, "$defs": {"n": {"type": "integer"}}}`, `[5, 1.0]`, `[6, 1.5, "x"]`},
		{"$ref to an anchor", `{"$ref": "#n", "$defs": {"n": {"$anchor": "n", "type": "integer"}}}`, `[5]`, `["x"]`},
		{"a recursive schema", `{"properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}}`, `[{"next": {"next": {"n": 1}}}]`, `[{"next": {"next": {"n": ""}}}, {"n": ""}]`},
		{"a recursive array", `{"type": "array", "items": {"$ref": "#"}}`, `[[], [[], [[]]]]`, `[[[1]], 1]`},

		{
			"unevaluatedProperties", `{"allOf": [{"properties": {"a": true}}, {"$ref": "#/$defs/b"}], "properties": {"c": true},
				"unevaluatedProperties": false, "$defs": {"b": {"patternProperties": {"^b": true}}}}`,
			`[{}, {"a": 1, "b2": 1, "c": 1}, []]`, `[{"d": 1}, {"a": 1, "d": 1}]`,
		},
		{"unevaluatedProperties schema", `{"properties": {"a": true}, "unevaluatedProperties": {"type": "string"}}`, `[{"a": 1, "b": ""}]`, `[{"b": 1}]`},
		{"unevaluatedProperties after all", `{"allOf": [{"additionalProperties": true}], "unevaluatedProperties": false}`, `[{"a": 1}]`, `[]`},
		{"unevaluatedProperties twice", `{"allOf": [{"unevaluatedProperties": {"type": "string"}}], "unevaluatedProperties": false}`, `[{"a": ""}]`, `[{"a": 1}]`},
		{"unevaluatedProperties above a child", `{"properties": {"a": {"properties": {"b": true}}}, "unevaluatedProperties": false}`, `[{"a": {"c": 1}}]`, `[{"b": 1}]`},
		{"unevaluatedProperties looks into no sibling", `{"allOf": [{"properties": {"a": true}}, {"unevaluatedProperties": false}]}`, `[{}]`, `[{"a": 1}]`},
		{
			"unevaluatedProperties and a branch that adds nothing", `{"properties": {"a": true, "b": true}, "unevaluatedProperties": false,
				"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"properties": {"b": {"const": 2}}}}`,
			`[{}, {"a": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 3}]`, `[{"c": 1}, {"a": 1, "b": 3}, {"a": 2, "c": 1}]`,
		},
		{"unevaluatedProperties and not", `{"not": {"properties": {"a": {"type": "string"}}}, "unevaluatedProperties": false}`, `[]`, `[1, {}, {"a": 1}, {"a": ""}]`},
		{"unevaluatedItems", `{"allOf": [{"prefixItems": [true, true]}], "prefixItems": [true], "unevaluatedItems": false}`, `[[], [1, 2], {}]`, `[[1, 2, 3]]`},
		{"unevaluatedItems schema", `{"prefixItems": [true], "unevaluatedItems": {"type": "string"}}`, `[[1, ""]]`, `[[1, 2]]`},
		{"unevaluatedItems after all", `{"allOf": [{"items": true}], "unevaluatedItems": false}`, `[[1]]`, `[]`},
		{"unevaluatedItems twice", `{"allOf": [{"unevaluatedItems": {"type": "string"}}], "unevaluatedItems": false}`, `[["a"]]`, `[[1]]`},
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

// Long arrays are compared by hashes.
func TestUniqueLongArrays(t *testing.T) {
	s, p := mustCompile(t, `{"uniqueItems": true}`)
	var words, mixed []string
	for i := range 30 {
		words = append(words, fmt.Sprintf("%q", fmt.Sprint(i)))
		mixed = append(mixed, fmt.Sprint(i), fmt.Sprintf("[%d]", i), fmt.Sprintf(`{"a":%d,"b":null}`, i), words[i])
	}
	mixed = append(mixed, "true", "false", "null", "[]", "{}", `""`)
	tests := []struct {
		name, items, extra string
		want               bool
	}{
		{"words", strings.Join(words, ","), `"x"`, true},
		{"a word twice", strings.Join(words, ","), `"7"`, false},
		{"all sorts", strings.Join(mixed, ","), `30`, true},
		{"a number twice", strings.Join(mixed, ","), `70e-1`, false},
		{"an array twice", strings.Join(mixed, ","), `[7.0]`, false},
		{"an object twice", strings.Join(mixed, ","), `{"b":null,"a":7.0}`, false},
		{"a boolean twice", strings.Join(mixed, ","), `false`, false},
		{"null twice", strings.Join(mixed, ","), `null`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := mustDecode(t, "["+tt.items+","+tt.extra+"]")
			if got := p.Accepts(v); got != tt.want {
				t.Errorf("Accepts = %v, want %v", got, tt.want)
			}
			if d := disagreement(s, p, v); d != "" {
				t.Error(d)
			}
		})
	}
}
