package policies

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// TestSchemaDescribesTheDocument holds the published schema to the members the
// document has, and the document to the schema.
func TestSchemaDescribesTheDocument(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(InputSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	ten := Money(10)
	in := &Input{
		Request:  Request{Operation: "createPod", Body: map[string]any{"a": "b"}, Params: map[string]string{"id": "x"}, Query: map[string]any{}},
		Resource: Resource{After: map[string]any{}, Template: &Template{ID: "t", Record: map[string]any{}}},
		Catalog:  catalog.NewSnapshot([]catalog.GPU{{ID: "g", Pool: "p"}}, []catalog.CPU{{ID: "c"}}, catalog.Rates{}, time.Unix(1, 0)),
		Spend:    Spend{Known: true, Org: Account{BurnLimit: &ten}},
		Cost:     Cost{Known: true, AsOf: time.Unix(1, 0)},
		Time:     time.Unix(1, 0),
	}
	compareMembers(t, "input", schema, document{in: in, kind: operation.KindPod, verb: operation.VerbCreate})

	term, err := converter{func(s *catalog.Snapshot) (*ast.Term, error) {
		return converter{}.term(catalogObject(s), wholeProjection())
	}}.term(document{in: in, kind: operation.KindPod, verb: operation.VerbCreate}, wholeProjection())
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal([]byte(term.String()), &doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := jsonschema.CompileString("input.json", string(InputSchema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(doc); err != nil {
		t.Errorf("the document is not of the schema: %#v", err)
	}
}

func compareMembers(t *testing.T, at string, schema map[string]any, n node) {
	t.Helper()
	props, _ := schema["properties"].(map[string]any)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(props)), slices.Sorted(slices.Values(n.members()))); diff != "" {
		t.Errorf("%s (-schema +document):\n%s", at, diff)
	}
	if !slices.IsSorted(n.members()) {
		t.Errorf("%s: members are not in order", at)
	}
	for _, name := range n.members() {
		if kid, ok := n.member(name).(node); ok {
			sub, _ := props[name].(map[string]any)
			compareMembers(t, at+"."+name, sub, kid)
		}
		if n.member(name) == absent {
			t.Errorf("%s.%s: announced and absent", at, name)
		}
	}
}
