package graphql_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/tollgate-dev/tollgate/translate"
)

// described is the API description of v2, read as a file: sent bodies must fit
// it, independently of the gateway's code.
type described struct {
	raw        []byte
	operations map[string]operation
}

type operation struct {
	body       string // JSON pointer of the request schema, "" for none
	parameters []string
}

func v2API(t *testing.T) described {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "gateway", "schema", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	d := described{raw: raw, operations: map[string]operation{}}
	doc := decode(t, string(raw))
	for path, item := range translate.Members(doc, "paths") {
		for method, op := range translate.Members(item) {
			id := translate.Text(op, "operationId")
			if id == "" {
				continue
			}
			o := operation{}
			if translate.At(op, "requestBody") != nil {
				o.body = "#/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path) +
					"/" + method + "/requestBody/content/application~1json/schema"
			}
			for _, p := range append(translate.Items(item, "parameters"), translate.Items(op, "parameters")...) {
				if ref := translate.Text(p, "$ref"); ref != "" {
					p = translate.At(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
				}
				o.parameters = append(o.parameters, translate.Text(p, "name"))
			}
			d.operations[id] = o
		}
	}
	return d
}

// TestRequestsFitV2 plays the golden cases and holds every v2 call against the
// description: known operation, known parameters, a valid body.
func TestRequestsFitV2(t *testing.T) {
	api := v2API(t)
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	if err := compiler.AddResource("v2.json", bytes.NewReader(api.raw)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	bodies := 0
	for _, file := range files {
		parts := sections(t, file)
		v2 := newScript(t, parts["v2"])
		newRig(t).api.Serve(t.Context(), goldenRequest(t, parts), v2)
		for _, call := range v2.calls {
			op, ok := api.operations[call.Operation]
			if !ok {
				t.Errorf("%s: v2 has no operation %s", file, call.Operation)
				continue
			}
			for name := range call.Query {
				if !slices.Contains(op.parameters, name) {
					t.Errorf("%s: %s has no parameter %s", file, call.Operation, name)
				}
			}
			if (call.Body != nil) != (op.body != "") {
				t.Errorf("%s: %s: body %v, the description has one: %v", file, call.Operation, call.Body, op.body != "")
			}
			if call.Body == nil || op.body == "" {
				continue
			}
			bodies++
			s, err := compiler.Compile("v2.json" + op.body)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(call.Body)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(decode(t, string(raw))); err != nil {
				t.Errorf("%s: %s %s: %v", file, call.Operation, raw, err)
			}
			contradictions(t, file, call)
		}
	}
	if bodies < 30 {
		t.Errorf("only %d bodies were checked", bodies)
	}
}

// contradictions looks for what no schema says: v2 refuses both of a kind.
func contradictions(t *testing.T, file string, call *translate.Request) {
	t.Helper()
	for _, pair := range [][2][]string{
		{{"gpu"}, {"cpu"}},
		{{"mounts", "persistent"}, {"mounts", "network"}},
		{{"gpu", "minCudaVersion"}, {"gpu", "allowedCudaVersions"}},
	} {
		a, b := translate.At(call.Body, pair[0]...), translate.At(call.Body, pair[1]...)
		if a != nil && a != "" && b != nil && len(translate.Members(b))+len(translate.Items(b)) > 0 {
			t.Errorf("%s: %s has both %v and %v", file, call.Operation, pair[0], pair[1])
		}
	}
}

// TestSchemaHasTheReferences compares the schema with the schema of the reference, where that is at hand: it has all of its types, fields and
// arguments, of the same types. It has more: what public clients know besides, see TestKnownNames.
func TestSchemaHasTheReferences(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "reference", "graphql-to-v2.md"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the reference is not beside this checkout")
	}
	if err != nil {
		t.Fatal(err)
	}
	_, sdl, _ := strings.Cut(string(raw), "```graphql\n")
	sdl, _, _ = strings.Cut(sdl, "```")
	want, err := gqlparser.LoadSchema(&ast.Source{Input: strings.ReplaceAll(sdl, "__BRAND__", "Acme")})
	if err != nil {
		t.Fatal(err)
	}
	got := schema(t)
	for name, w := range want.Types {
		g := got.Types[name]
		if g == nil || g.Kind != w.Kind {
			t.Errorf("type %s is missing or of another kind", name)
			continue
		}
		has := signatures(g)
		for _, want := range signatures(w) {
			if !slices.Contains(has, want) {
				t.Errorf("type %s lacks %s", name, want)
			}
		}
	}
}

func signatures(def *ast.Definition) []string {
	var out []string
	for _, f := range def.Fields {
		out = append(out, f.Name+":"+f.Type.String())
		for _, a := range f.Arguments {
			out = append(out, f.Name+"("+a.Name+"):"+a.Type.String())
		}
	}
	return out
}
