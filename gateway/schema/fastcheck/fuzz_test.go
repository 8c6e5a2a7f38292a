package fastcheck

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// TestRandomSchemas judges random values by random schemas, with both
// validators.
func TestRandomSchemas(t *testing.T) {
	const schemas = 4_000
	g := generator{rand.New(rand.NewPCG(7, 11))}
	counts := make(map[verdict]int)
	for range schemas {
		text, err := json.Marshal(g.root())
		if err != nil {
			t.Fatal(err)
		}
		s, p, err := compile(string(text))
		if err != nil {
			continue // a reference that leads back to itself
		}
		for range 8 {
			v := mustDecode(t, g.value(3))
			if d := disagreement(s, p, v); d != "" {
				t.Fatalf("%s: %v: %s", text, v, d)
			}
			counts[p.root.check(v)]++
		}
	}
	for v, least := range map[verdict]int{yes: schemas / 2, no: schemas / 2, unsure: schemas / 2} {
		if counts[v] < least {
			t.Errorf("verdict %v came up %d times, want at least %d: the generator is out of tune", v, counts[v], least)
		}
	}
}

// FuzzCompiled checks that jsonschema agrees with a program's verdict on a value,
// for any schema.
func FuzzCompiled(f *testing.F) {
	g := generator{rand.New(rand.NewPCG(3, 5))}
	for range 200 {
		text, err := json.Marshal(g.root())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), g.value(3))
	}
	f.Fuzz(func(t *testing.T, schema, value string) {
		v, err := decode(value)
		if err != nil || len(schema) > 2048 || len(value) > 2048 || hugeNumber.MatchString(schema+value) {
			return
		}
		s, p, err := compileRecovered(schema)
		if err != nil {
			return
		}
		if d := disagreement(s, p, v); d != "" {
			t.Fatalf("%s: %s: %s", schema, value, d)
		}
	})
}

// hugeNumber matches numbers that strictjson refuses. They keep jsonschema
// busy for long, or make it panic.
var hugeNumber = regexp.MustCompile(`[eE][-+]?[0-9]{4}`)

// generator makes schemas with every keyword and values that have a chance with
// them, out of few names and numbers.
type generator struct{ *rand.Rand }

// gapKeywords are those that a program does not implement.
var gapKeywords = []string{
	"$dynamicRef", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "prefixItems", "contains", "minContains", "maxContains",
	"unevaluatedItems", "patternProperties", "propertyNames", "maxProperties", "dependentSchemas", "dependencies", "anyOf", "else",
}

func pick[T any](g generator, of ...T) T { return of[g.IntN(len(of))] }

func (g generator) name() string { return pick(g, "a", "b", "c", "ab") }

func (g generator) number() string {
	return pick(g, "0", "1", "2", "3", "-1", "1.0", "0.5", "15e-1", "1e1", "-0", "20e-1", "0.1", "1e20", "-2.50")
}

// root returns a schema together with those it may refer to.
func (g generator) root() any {
	s, _ := g.schema(3).(map[string]any)
	if s == nil {
		s = map[string]any{"$ref": "#/$defs/a"}
	}
	defs := make(map[string]any)
	for _, name := range []string{"a", "b"} {
		defs[name] = g.schema(2)
	}
	s["$defs"] = defs
	return s
}

func (g generator) schema(depth int) any {
	if depth == 0 || g.IntN(12) == 0 {
		return pick[any](g, true, false, map[string]any{"type": g.typeName()}, map[string]any{"$ref": "#/$defs/a"})
	}
	s := make(map[string]any)
	for range 1 + g.IntN(4) {
		g.keyword(s, depth-1)
	}
	return s
}

func (g generator) typeName() string {
	return pick(g, "null", "boolean", "integer", "number", "string", "array", "array", "object", "object", "object")
}

func (g generator) keyword(s map[string]any, depth int) {
	sub := func() any { return g.schema(depth) }
	byName := func() any { return map[string]any{g.name(): sub(), g.name(): sub()} }
	list := func() any { return []any{sub(), sub()} }
	limit := func() any { return json.Number(g.number()) }
	size := func() any { return g.IntN(4) }
	keyword := pick(g,
		"type", "type", "const", "enum", "format", "$ref", "$ref", "minimum", "maximum", "minLength", "maxLength", "pattern",
		"items", "minItems", "maxItems", "uniqueItems", "properties", "properties", "additionalProperties", "required", "minProperties",
		"dependentRequired", "unevaluatedProperties", "unevaluatedProperties", "allOf", "allOf", "oneOf", "not", "if", "then")
	if g.IntN(40) == 0 {
		keyword = pick(g, gapKeywords...)
	}
	switch keyword {
	case "type":
		s[keyword] = pick[any](g, g.typeName(), []string{"object", pick(g, "string", "integer", "array")})
	case "const":
		s[keyword] = json.RawMessage(pick(g, `"a"`, `"ab"`, `"b"`, g.value(1)))
	case "enum":
		s[keyword] = []json.RawMessage{json.RawMessage(pick(g, `"b"`, `"abc"`, g.value(1))), json.RawMessage(`"a"`)}
	case "format":
		s[keyword] = pick(g, "date", "ipv4", "regex", "float")
	case "$ref":
		s[keyword] = pick(g, "#/$defs/a", "#/$defs/b")
	case "$dynamicRef":
		s[keyword] = "#/$defs/a"
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		s[keyword] = limit()
	case "multipleOf":
		s[keyword] = json.Number(pick(g, "1", "2", "0.5", "1e1", "0.1"))
	case "minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties":
		s[keyword] = size()
	case "pattern":
		s[keyword] = pick(g, "^a", "b$", "^[ab]*$")
	case "uniqueItems":
		s[keyword] = true
	case "required":
		s[keyword] = []string{g.name()}
	case "dependentRequired":
		s[keyword] = map[string]any{g.name(): []string{g.name()}}
	case "dependencies":
		s[keyword] = map[string]any{g.name(): pick[any](g, sub(), []string{g.name()})}
	case "properties", "dependentSchemas":
		s[keyword] = byName()
	case "patternProperties":
		s[keyword] = map[string]any{pick(g, "^a", "b$"): sub()}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		s[keyword] = list()
	default:
		s[keyword] = sub()
	}
}

// value returns a JSON text.
func (g generator) value(depth int) string {
	n := g.IntN(4)
	switch kind := g.IntN(10); {
	case depth > 0 && kind < 4:
		members := make(map[string]json.RawMessage)
		for range n {
			members[g.name()] = json.RawMessage(g.value(depth - 1))
		}
		text, _ := json.Marshal(members) //nolint:errchkjson // all members are JSON
		return string(text)
	case depth > 0 && kind < 6:
		if g.IntN(8) == 0 {
			n = 22 // beyond maxUnique
		}
		items := make([]string, n)
		for i := range items {
			items[i] = g.value(depth - 1)
		}
		return "[" + strings.Join(items, ",") + "]"
	case kind < 8:
		return g.number()
	case kind < 9:
		return fmt.Sprintf("%q", pick(g, "", "a", "b", "ab", "abc", "é", "2026-08-01", "10.0.0.1", "("))
	}
	return pick(g, "null", "true", "false")
}

// compileRecovered returns a panic of the compiler, which trusts its input in
// places, as an error.
func compileRecovered(schema string) (s *jsonschema.Schema, p *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return compile(schema)
}
