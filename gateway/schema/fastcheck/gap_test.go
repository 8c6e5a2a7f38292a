package fastcheck

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// A keyword that is not implemented is a gap, wherever it stands, and a program with a gap
// accepts nothing.
func TestGaps(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"dialect other", `{"$schema": "http://json-schema.org/draft-07/schema#"}`, "dialect other than 2020-12"},
		{"$dynamicRef", `{"$dynamicRef": "#x", "$defs": {"x": {"$dynamicAnchor": "x"}}}`, "keyword dynamic"},
		{"exclusiveMinimum", `{"exclusiveMinimum": 1}`, "keyword exclusiveMinimum"},
		{"exclusiveMaximum", `{"exclusiveMaximum": 1}`, "keyword exclusiveMaximum"},
		{"multipleOf", `{"multipleOf": 1}`, "keyword multipleOf"},
		{"prefixItems", `{"prefixItems": [true]}`, "keyword prefixItems"},
		{"contains", `{"contains": true}`, "keyword contains"},
		{"unevaluatedItems", `{"unevaluatedItems": false}`, "keyword unevaluatedItems"},
		{"patternProperties", `{"patternProperties": {"a": false}}`, "keyword patternProperties"},
		{"propertyNames", `{"propertyNames": false}`, "keyword propertyNames"},
		{"maxProperties", `{"maxProperties": 1}`, "keyword maxProperties"},
		{"dependentSchemas", `{"dependentSchemas": {"a": false}}`, "keyword dependentSchemas"},
		{"dependencies", `{"dependencies": {"a": false}}`, "keyword dependencies"},
		{"anyOf", `{"anyOf": [true]}`, "keyword anyOf"},
		{"else", `{"if": true, "else": false}`, "keyword else"},
		{"contentEncoding", `{"contentEncoding": "base64"}`, "keyword contentEncoding"},
		{"in a branch that cannot matter", `{"not": {"oneOf": [false, {"maxProperties": 1}]}}`, "keyword maxProperties"},
		{"in a part", `{"additionalProperties": {"items": {"properties": {"a": {"maxProperties": 1}}}}}`, "keyword maxProperties"},
		{"a number as a constant", `{"const": 1}`, "not a string"},
		{"null among the allowed", `{"enum": ["a", null]}`, "not a string"},
		{"a bound too long", `{"minimum": 123456789012345678901}`, "number that"},
		{"a bound of no float64", `{"maximum": 0.1}`, "number that"},
		{
			"a loop that the compiler misses", `{"$ref": "#/$defs/b", "$defs": {
				"b": {"properties": {"x": {"$ref": "#/$defs/c"}}, "if": {"$ref": "#/$defs/c"}}, "c": {"allOf": [{"$ref": "#/$defs/b"}]}}}`,
			"applies itself",
		},
		{"a loop in a branch that cannot matter", `{"not": {"allOf": [false, {"$ref": "#/$defs/b"}]}, "$defs": {
			"b": {"properties": {"x": {"$ref": "#/$defs/c"}}, "if": {"$ref": "#/$defs/c"}}, "c": {"allOf": [{"$ref": "#/$defs/b"}]}}}`, "applies itself"},
		{"unevaluatedProperties beside oneOf", `{"oneOf": [{"properties": {"a": true}}, false], "unevaluatedProperties": false}`, "depend on the value"},
		{"unevaluatedProperties beside if", `{"if": {"additionalProperties": true}, "unevaluatedProperties": false}`, "depend on the value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, p := mustCompile(t, tt.schema)
			if got := strings.Join(p.Gaps(), "\n"); !strings.Contains(got, tt.want) {
				t.Errorf("gaps = %q, want one about %q", got, tt.want)
			}
			for _, v := range []any{nil, true, "a", json.Number("1"), []any{}, map[string]any{}} {
				if got := p.root.check(v); got != unsure {
					t.Errorf("%v: verdict %v, want unsure", v, got)
				}
			}
		})
	}
}

// Values that no JSON decoder makes, and numbers and arrays that are not
// compared, are left open.
func TestUndecidedValues(t *testing.T) {
	_, p := mustCompile(t, `{"type": ["integer", "string", "array"], "minimum": 1, "uniqueItems": true}`)
	long := json.Number("123456789012345678901")
	for _, v := range []any{1, 1.5, struct{}{}, []string{"a"}, long, json.Number("1e0"), json.Number("x"), json.Number(""), []any{long, long}, make([]any, maxUnique+1)} {
		if got := p.root.check(v); got != unsure {
			t.Errorf("%v: verdict %v, want unsure", v, got)
		}
	}
}

type accepting struct{ accepts bool }

func (accepting) Validate(jsonschema.ValidationContext, any) error { return nil }
func (a accepting) Accepts(any) bool                               { return a.accepts }

type opaque struct{}

func (opaque) Validate(jsonschema.ValidationContext, any) error { return nil }

type extension struct{ schema jsonschema.ExtSchema }

func (e extension) Compile(jsonschema.CompilerContext, map[string]any) (jsonschema.ExtSchema, error) {
	return e.schema, nil
}

// The compiler's settings that its schemas do not tell.
func TestSettings(t *testing.T) {
	noX := func(v any) bool { return v != "x" }
	tests := []struct {
		name, schema string
		set          func(c *jsonschema.Compiler)
		gaps         int
		want         verdict // on "x"
	}{
		{"a format of one's own", `{"format": "no-x"}`, func(c *jsonschema.Compiler) { c.Formats["no-x"] = noX }, 0, no},
		{"a format replaced", `{"format": "uuid"}`, func(c *jsonschema.Compiler) { c.Formats["uuid"] = func(any) bool { return true } }, 0, yes},
		{"a format switched off", `{"format": "uuid"}`, func(c *jsonschema.Compiler) { c.Formats["uuid"] = nil }, 0, yes},
		{"formats not asserted", `{"format": "uuid"}`, func(c *jsonschema.Compiler) { c.AssertFormat = false }, 1, unsure},
		{"an extension that accepts", `{}`, func(c *jsonschema.Compiler) { c.RegisterExtension("e", nil, extension{accepting{true}}) }, 0, yes},
		{"an extension that does not", `{}`, func(c *jsonschema.Compiler) { c.RegisterExtension("e", nil, extension{accepting{false}}) }, 0, no},
		{"an extension that only explains", `{}`, func(c *jsonschema.Compiler) { c.RegisterExtension("e", nil, extension{opaque{}}) }, 1, unsure},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := newCompiler(tt.schema)
			if err != nil {
				t.Fatal(err)
			}
			tt.set(c)
			s, err := c.Compile("mem:///schema.json")
			if err != nil {
				t.Fatal(err)
			}
			p := Compile(c, s)
			if len(p.Gaps()) != tt.gaps {
				t.Errorf("gaps = %q, want %d", p.Gaps(), tt.gaps)
			}
			if got := p.root.check("x"); got != tt.want {
				t.Errorf("verdict %v, want %v", got, tt.want)
			}
		})
	}
}

// A program knows every field of jsonschema.Schema that a later version may add,
// except for one that is not exported.
func TestUnexportedFieldsAreKnown(t *testing.T) {
	known := []string{"meta", "vocab", "dynamicAnchors", "format", "dynamicRefAnchor", "enumError", "decoder", "mediaType"}
	var fields []string
	for f := range reflect.TypeFor[jsonschema.Schema]().Fields() {
		if !f.IsExported() {
			fields = append(fields, f.Name)
		}
	}
	if diff := cmp.Diff(known, fields); diff != "" {
		t.Errorf("unexported fields of jsonschema.Schema (-known +there):\n%s", diff)
	}
}
