package fastcheck

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// What is not implemented exactly is a gap and says nothing of any value.
func TestGaps(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"another dialect", `{"$schema": "http://json-schema.org/draft-07/schema#"}`, "another dialect"},
		{"$dynamicRef", `{"$dynamicRef": "#x", "$defs": {"x": {"$dynamicAnchor": "x"}}}`, "dynamic reference"},
		{"a bound too long", `{"minimum": 123456789012345678901}`, "a number too long"},
		{"a constant too long", `{"const": {"a": [1.23456789012345678901]}}`, "a number too long"},
		{"an exponent too large", `{"enum": [1e1000]}`, "a number too long"},
		{
			"a loop that the compiler misses", `{"$ref": "#/$defs/b", "$defs": {
				"b": {"properties": {"x": {"$ref": "#/$defs/c"}}, "if": {"$ref": "#/$defs/c"}}, "c": {"allOf": [{"$ref": "#/$defs/b"}]}}}`,
			"applies itself",
		},
		{"unevaluatedProperties beside anyOf", `{"anyOf": [{"properties": {"a": true}}, true], "unevaluatedProperties": false}`, "depends on the value"},
		{"unevaluatedProperties beside if", `{"if": {"patternProperties": {"a": true}}, "unevaluatedProperties": false}`, "depends on the value"},
		{"unevaluatedProperties beside dependentSchemas", `{"dependentSchemas": {"a": {"additionalProperties": true}}, "unevaluatedProperties": false}`, "depends on the value"},
		{"unevaluatedProperties beside a gap", `{"oneOf": [{"const": 123456789012345678901}], "unevaluatedProperties": false}`, "depends on the value"},
		{"unevaluatedItems beside contains", `{"contains": {"const": 1}, "unevaluatedItems": false}`, "depends on the value"},
		{"unevaluatedItems beside oneOf", `{"oneOf": [{"prefixItems": [true]}], "unevaluatedItems": false}`, "depends on the value"},
		{"unevaluatedItems beside then", `{"if": true, "then": {"items": true}, "unevaluatedItems": false}`, "depends on the value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, p := mustCompile(t, tt.schema)
			if got := strings.Join(p.Gaps(), "\n"); !strings.Contains(got, tt.want) {
				t.Errorf("gaps = %q, want one about %q", got, tt.want)
			}
			for _, v := range []any{nil, true, "a", json.Number("1"), []any{}, map[string]any{}} {
				if got := p.root.judge(v); got != unsure {
					t.Errorf("%v: verdict %v, want unsure", v, got)
				}
			}
		})
	}
}

// A gap spreads to what needs its verdict and to nothing else.
func TestGapsSpread(t *testing.T) {
	const defs = `, "$defs": {"gap": {"const": 123456789012345678901}}}`
	const gap = `{"$ref": "#/$defs/gap"}`
	tests := []struct {
		name, schema, value string
		want                verdict
	}{
		{"property that is there", `{"properties": {"a": ` + gap + `}`, `{"a": 1}`, unsure},
		{"property that is not", `{"properties": {"a": ` + gap + `}`, `{"b": 1}`, yes},
		{"not", `{"not": ` + gap, `1`, unsure},
		{"anyOf with a branch that fits", `{"anyOf": [` + gap + `, true]`, `1`, yes},
		{"anyOf without", `{"anyOf": [` + gap + `, false]`, `1`, unsure},
		{"oneOf", `{"oneOf": [true, ` + gap + `]`, `1`, unsure},
		{"allOf that fails before", `{"allOf": [false, ` + gap + `]`, `1`, no},
		{"if", `{"if": ` + gap + `, "then": true, "else": true`, `1`, unsure},
		{"then", `{"if": true, "then": ` + gap, `1`, unsure},
		{"else that is not taken", `{"if": true, "else": ` + gap, `1`, yes},
		{"contains", `{"contains": ` + gap, `[1]`, unsure},
		{"propertyNames", `{"propertyNames": ` + gap, `{"a": 1}`, unsure},
		{"items", `{"items": ` + gap, `[1]`, unsure},
		{"unevaluatedProperties", `{"unevaluatedProperties": ` + gap, `{"a": 1}`, unsure},
		{"unevaluatedItems", `{"unevaluatedItems": ` + gap, `[1]`, unsure},
		{"dependentSchemas", `{"dependentSchemas": {"a": ` + gap + `}`, `{"a": 1}`, unsure},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, p := mustCompile(t, tt.schema+defs)
			if len(p.Gaps()) != 1 {
				t.Errorf("gaps = %q, want one", p.Gaps())
			}
			if got := p.root.judge(mustDecode(t, tt.value)); got != tt.want {
				t.Errorf("verdict %v, want %v", got, tt.want)
			}
		})
	}
}

// jsonschema refuses what leads it into a loop, in branches too that cannot
// change its verdict, so a loop anywhere spoils the whole program.
func TestLoopsSpoilPrograms(t *testing.T) {
	const defs = `, "$defs": {
		"b": {"properties": {"x": {"$ref": "#/$defs/c"}}, "if": {"$ref": "#/$defs/c"}}, "c": {"allOf": [{"$ref": "#/$defs/b"}]},
		"d": {"$dynamicRef": "#x", "$defs": {"x": {"$dynamicAnchor": "x"}}}}}`
	for _, schema := range []string{
		`{"anyOf": [true, {"$ref": "#/$defs/b"}]`, `{"not": {"allOf": [false, {"$ref": "#/$defs/b"}]}`,
		`{"anyOf": [true, {"$ref": "#/$defs/d"}]`, `{"properties": {"a": {"items": {"$ref": "#/$defs/b"}}}`,
		`{"not": {"properties": {"a": false}, "additionalProperties": {"prefixItems": [{"$ref": "#/$defs/b"}]}}`,
		`{"patternProperties": {"a": {"propertyNames": {"contains": {"unevaluatedItems": {"$ref": "#/$defs/d"}}}}}`,
	} {
		s, p := mustCompile(t, schema+defs)
		if len(p.Gaps()) == 0 {
			t.Errorf("%s: no gaps", schema)
		}
		for _, v := range []any{nil, "a", []any{}, map[string]any{}, map[string]any{"a": "x", "b": []any{"y"}}} {
			if got := p.root.judge(v); got != unsure {
				t.Errorf("%s: %v: verdict %v, want unsure; jsonschema says %v", schema, v, got, validate(s, v))
			}
		}
	}
}

// Values that no JSON decoder makes, and numbers too long to calculate with, are
// left open.
func TestStrangeValues(t *testing.T) {
	const schema = `{"type": ["integer", "string", "array"], "minimum": 1, "uniqueItems": true}`
	_, p := mustCompile(t, schema)
	_, one := mustCompile(t, `{"enum": [1, "a"]}`)
	long := json.Number("123456789012345678901")
	for _, v := range []any{1, 1.5, struct{}{}, []string{"a"}, long, json.Number("1e1000"), json.Number("x"), json.Number(""), []any{long, long}} {
		if got := p.root.judge(v); got != unsure {
			t.Errorf("%v: verdict %v, want unsure", v, got)
		}
		if _, list := v.([]any); list {
			continue
		}
		if got := one.root.judge(v); got != unsure {
			t.Errorf("%v against an enum: verdict %v, want unsure", v, got)
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
		{"an unknown format, not asserted", `{"format": "float"}`, func(c *jsonschema.Compiler) { c.AssertFormat = false }, 0, yes},
		{"contents not asserted", `{"contentEncoding": "base64"}`, func(*jsonschema.Compiler) {}, 0, yes},
		{"contents asserted", `{"contentEncoding": "base64"}`, func(c *jsonschema.Compiler) { c.AssertContent = true }, 1, unsure},
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
			if got := p.root.judge("x"); got != tt.want {
				t.Errorf("verdict %v, want %v", got, tt.want)
			}
		})
	}
}

// A field that jsonschema/v5 gets in a later version is a keyword that nobody
// looks at here: this test is to be changed only together with the builder.
func TestEveryFieldIsKnown(t *testing.T) {
	known := strings.Fields(`
		Location Draft Format Always Ref RecursiveAnchor RecursiveRef DynamicAnchor DynamicRef Types Constant Enum Not AllOf AnyOf OneOf
		If Then Else MinProperties MaxProperties Required Properties PropertyNames RegexProperties PatternProperties
		AdditionalProperties Dependencies DependentRequired DependentSchemas UnevaluatedProperties MinItems MaxItems UniqueItems Items
		AdditionalItems PrefixItems Items2020 Contains ContainsEval MinContains MaxContains UnevaluatedItems MinLength MaxLength Pattern
		ContentEncoding ContentMediaType ContentSchema Minimum ExclusiveMinimum Maximum ExclusiveMaximum MultipleOf Title Description
		Default Comment ReadOnly WriteOnly Examples Deprecated Extensions
		meta vocab dynamicAnchors format dynamicRefAnchor enumError decoder mediaType`)
	var fields []string
	for f := range reflect.TypeFor[jsonschema.Schema]().Fields() {
		fields = append(fields, f.Name)
	}
	inOrder := cmp.Transformer("set", func(names []string) map[string]bool {
		set := make(map[string]bool)
		for _, n := range names {
			set[n] = true
		}
		return set
	})
	if diff := cmp.Diff(known, fields, inOrder); diff != "" {
		t.Errorf("fields of jsonschema.Schema (-known +there):\n%s", diff)
	}
}
