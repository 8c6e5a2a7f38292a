package graphql

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/tollgate-dev/tollgate/translate"
)

func TestFields(t *testing.T) {
	a, err := New(DefaultConfig(), translate.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	many := "{"
	for name := range rootFields() {
		many += " " + name
	}
	for name, tc := range map[string]struct {
		body any
		want []string
	}{
		"one":                   {query("{ myself { id } }"), []string{"myself"}},
		"two, aliased":          {query("query q { a: pod(input: {podId: \"x\"}) { id } gpuTypes { id } }"), []string{"pod", "gpuTypes"}},
		"the same twice":        {query("{ a: myself { id } b: myself { email } }"), []string{"myself"}},
		"in a fragment":         {query("query { ...f } fragment f on Query { gpuTypes { id } }"), []string{"gpuTypes"}},
		"a mutation":            {query("mutation { podStop(input: {podId: \"x\"}) { id } }"), []string{"podStop"}},
		"gone":                  {query("mutation { secretCreate(input: {a: 1}) { id } }"), []string{"secretCreate"}},
		"the named operation":   {map[string]any{"query": "query a { myself { id } } query b { gpuTypes { id } }", "operationName": "b"}, []string{"gpuTypes"}},
		"introspection":         {query("{ __schema { types { name } } __typename }"), []string{fieldIntrospection}},
		"words of the caller's": {query("{ evil1 { a } evil2 { a } }"), []string{fieldUnknown}},
		"fragments in a circle": {query("{ ...a } fragment a on Query { ...a }"), []string{fieldInvalid}},
		"no document":           {map[string]any{}, []string{fieldInvalid}},
		"not a document":        {query("{"), []string{fieldInvalid}},
		"no such operation":     {map[string]any{"query": "query a { myself { id } }", "operationName": "b"}, []string{fieldInvalid}},
		"a batch":               {[]any{query("{ myself { id } }")}, []string{fieldInvalid}},
		"no body":               {nil, []string{fieldInvalid}},
	} {
		t.Run(name, func(t *testing.T) {
			got := a.Fields(&translate.Incoming{Body: tc.body, HasBody: true})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
	if got := a.Fields(&translate.Incoming{Body: query(many + "}")}); len(got) != maxFieldNames {
		t.Errorf("%d fields of a document with %d, want %d", len(got), len(rootFields()), maxFieldNames)
	}
}

func query(text string) map[string]any { return map[string]any{"query": text} }

// Every root field has a successor or is known to have none, and the golden
// cases of the field call the named successors.
func TestSuccessors(t *testing.T) {
	roots := slices.Concat(slices.Sorted(maps.Keys(queries())), slices.Sorted(maps.Keys(mutations())))
	for _, name := range roots {
		_, gone := unsupportedReason(name)
		if has := len(Successors(name)) > 0; has == gone {
			t.Errorf("%s: successors %v, gone %t; want one of the two", name, Successors(name), gone)
		}
	}
	for _, field := range roots {
		if len(Successors(field)) == 0 {
			continue
		}
		called := goldenCalls(t, field)
		for _, op := range Successors(field) {
			if !called[op] {
				t.Errorf("%s: no golden case calls %s", field, op)
			}
		}
	}
}

// goldenCalls lists the v2 operations that the golden cases of a field call.
func goldenCalls(t *testing.T, field string) map[string]bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", "*", field+".*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d golden cases, %v", field, len(names), err)
	}
	called := map[string]bool{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range txtar.Parse(data).Files {
			if f.Name != "v2.requests" {
				continue
			}
			for line := range strings.Lines(string(f.Data)) {
				op, _, _ := strings.Cut(strings.TrimSpace(line), " ")
				called[op] = true
			}
		}
	}
	return called
}
