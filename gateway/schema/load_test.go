package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small is a description with one operation, whose parts the tests replace.
const small = `{"openapi": "3.1.0",
	"paths": {"/v2/things": {"post": {
		"operationId": "createThing", "tags": ["Things"], "parameters": [{"$ref": "#/components/parameters/Page"}],
		"requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
		"responses": {"201": {"description": "x"}, "default": {"description": "x"}}
	}}},
	"components": {
		"parameters": {"Page": {"name": "page", "in": "query", "required": true, "schema": {"type": "integer"}}},
		"schemas": {"Thing": {"type": "object", "properties": {
			"either": {"anyOf": [{"type": "string"}, {"type": "integer", "exclusiveMinimum": 3}]},
			"one": {"oneOf": [{"type": "string"}, {"enum": ["a", "b"]}]},
			"odd": {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 9, "multipleOf": 3},
			"fixed": {"const": true},
			"list": {"type": "array", "minItems": 2, "maxItems": 3},
			"text": {"type": "string", "minLength": 2, "maxLength": 3},
			"map": {"type": "object", "minProperties": 2, "maxProperties": 3},
			"not": {"not": {"type": "string"}},
			"never": false
		}}}
	}}`

func TestLoadRefusesBrokenDescriptions(t *testing.T) {
	if _, err := load([]byte(small)); err != nil {
		t.Fatalf("the description that the cases break is broken: %v", err)
	}
	tests := []struct{ name, old, new, want string }{
		{"no JSON", `{"openapi"`, `"openapi"`, "parse the API description"},
		{"unknown schema", `schemas/Thing"`, `schemas/Nothing"`, "Nothing"},
		{"remote schema", `"#/components/schemas/Thing"`, `"https://example.test/thing.json"`, "example.test"},
		{"a body of anything", `"Thing": {"type": "object"`, `"Thing": {"type": ["object", "array"]`, "must allow only objects"},
		{"unknown parameter", `parameters/Page"`, `parameters/Size"`, "unknown parameter"},
		{"a list in no form", `"schema": {"type": "integer"}`, `"schema": {"type": "array", "items": {"type": "string"}}`, "explode"},
		{"no operationId", `"operationId": "createThing"`, `"operationId": ""`, "must have an operationId"},
		{"no tag", `["Things"]`, `[]`, "one tag"},
		{"the same operation twice", `"paths": {`, `"paths": {"/v2/other": {"get": {"operationId": "createThing", "tags": ["Things"]}},`, "duplicate operationId"},
		{"a method that is no object", `{"post": {`, `{"get": 1, "post": {`, "GET"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(small, tt.old) {
				t.Fatalf("the description does not contain %s", tt.old)
			}
			_, err := load([]byte(strings.Replace(small, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("load = %v, want an error about %q", err, tt.want)
			}
		})
	}
}

// A schema that does not compile, which TestEverySchemaCompiles keeps out of the embedded
// ones, refuses everything, and reads nothing outside the description.
func TestBrokenSchemasRefuse(t *testing.T) {
	for name, broken := range map[string]string{
		"local file": `{"$ref": "file:///etc/passwd"}`, "broken schema": `{"type": "integral"}`, "broken pattern": `{"pattern": "("}`,
	} {
		api, err := load([]byte(strings.Replace(small, `{"const": true}`, broken, 1)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for range 2 {
			got := api.Operation("createThing").ValidateBody(map[string]any{})
			if len(got) != 1 || got[0].String() != "$: cannot be validated" {
				t.Errorf("%s: violations are %v", name, got)
			}
		}
	}
}

// Keywords that the API does not use today have messages too.
func TestMessages(t *testing.T) {
	api, err := load([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	op := api.Operation("createThing")
	tests := []struct {
		member string
		value  any
		want   []string
	}{
		{"either", true, []string{"$.either: does not match any allowed form"}},
		{"one", "a", []string{"$.one: matches more than one allowed form"}},
		{"fixed", "x", []string{"$.fixed: must be true"}},
		{"list", []any{}, []string{"$.list: must have at least 2 elements"}},
		{"list", []any{"", "", "", ""}, []string{"$.list: must have at most 3 elements"}},
		{"text", "x", []string{"$.text: must have at least 2 characters"}},
		{"text", "xxxx", []string{"$.text: must have at most 3 characters"}},
		{"map", map[string]any{}, []string{"$.map: must have at least 2 members"}},
		{"odd", json.Number("3"), []string{"$.odd: must be more than 3"}},
		{"odd", json.Number("9"), []string{"$.odd: must be less than 9"}},
		{"odd", json.Number("4"), []string{"$.odd: must be a multiple of 3"}},
		{"not", "x", []string{"$.not: is not allowed here"}},
		{"never", "x", []string{"$.never: is not allowed here"}},
		{"text", struct{}{}, []string{"$: cannot be validated"}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %v", tt.member, tt.value), func(t *testing.T) {
			var got []string
			for _, v := range op.ValidateBody(map[string]any{tt.member: tt.value}) {
				got = append(got, v.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
	if _, vs := op.CanonicalQuery(nil); len(vs) != 1 || vs[0].String() != "query.page: is missing" {
		t.Errorf("CanonicalQuery without the required parameter = %v", vs)
	}
}

// A validator that breaks down refuses.
func TestValidatePanics(t *testing.T) {
	got := (*validator)(nil).validate(map[string]any{})
	want := []Violation{{Location: "$", Keyword: "internal", Message: "cannot be validated", Status: 400}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestNumberFault(t *testing.T) {
	for _, ok := range []json.Number{"0", "0.5", "-1", "-0.5", "1.000000", "9007199254740991", "9007199254740991.5"} {
		if fault := numberFault(ok); fault != "" {
			t.Errorf("numberFault(%s) = %q, want none", ok, fault)
		}
	}
	for _, bad := range []json.Number{"", "-", "-0", "-0.0", "1e0", "1E5", "0.1234567", "01", ".5", "5.", "9007199254740992", "-9007199254740992.0"} {
		if numberFault(bad) == "" {
			t.Errorf("numberFault(%s) = none, want a fault", bad)
		}
	}
	for _, ok := range []json.Number{"0", "7", "-7", "9007199254740991", "-9007199254740991"} {
		if fault := integerFault(ok); fault != "" {
			t.Errorf("integerFault(%s) = %q, want none", ok, fault)
		}
	}
	for _, bad := range []json.Number{"", "-", "-0", "00", "01", "1.0", "1e0", "80e-1", "+1", " 1", "9007199254740992", "-9007199254740992", "18446744073709551617"} {
		if integerFault(bad) == "" {
			t.Errorf("integerFault(%s) = none, want a fault", bad)
		}
	}
}

func TestComparePointers(t *testing.T) {
	ordered := []string{"", "/a", "/a/2", "/a/10", "/a/b", "/b", "/b/", "/b/c"}
	for i, a := range ordered {
		for j, b := range ordered {
			got := comparePointers(a, b)
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("comparePointers(%q, %q) = %d", a, b, got)
			}
		}
	}
}

// Until a fault has to be explained, the description is held as text alone.
func TestTheTreeIsForFaults(t *testing.T) {
	api, err := load([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	op, d, held := api.Operation("createThing"), api.document, false
	src := d.src
	d.src = func() *source {
		held = true
		return src()
	}
	if got := op.ValidateBody(map[string]any{"fixed": true}); len(got) != 0 || held {
		t.Errorf("a valid body has the faults %v, and the tree is held: %t", got, held)
	}
	if got := op.ValidateBody(map[string]any{"fixed": "x"}); len(got) != 1 || !held {
		t.Errorf("the faults are %v, and the tree is held: %t", got, held)
	}
}
