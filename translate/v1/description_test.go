package v1

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
)

// described is the embedded description of v1, decoded.
func described(t *testing.T) map[string]any {
	t.Helper()
	return mustJSON(string(description)).(map[string]any)
}

// describedOperations lists the operations of the description as Operation
// rows, without V2.
func describedOperations(t *testing.T) map[string]Operation {
	t.Helper()
	ops := map[string]Operation{}
	for path, methods := range translate.Members(described(t), "paths") {
		for method, op := range methods.(map[string]any) {
			id := translate.Text(op, "operationId")
			if id == "" {
				continue
			}
			id = strings.ToLower(id[:1]) + id[1:]
			method = strings.ToUpper(method)
			ops[id] = Operation{
				ID: id, Method: method, Path: "/v1" + path,
				Public: translate.At(op, "security") != nil && len(translate.Items(op, "security")) == 0,
			}
		}
	}
	return ops
}

func TestEveryDescribedOperationHasARow(t *testing.T) {
	rows := map[string]Operation{}
	for _, op := range Operations() {
		if op.V2 == "" && op.ID != "getDocs" {
			t.Errorf("%s names no v2 operation", op.ID)
		}
		if act := op.V2 == "podAction"; op.IgnoresBody != act {
			t.Errorf("%s: bodiless = %t, want %t", op.ID, op.IgnoresBody, act)
		}
		op.V2, op.IgnoresBody = "", false
		rows[op.ID] = op
	}
	if len(rows) != 37 {
		t.Errorf("%d rows, want 37", len(rows))
	}
	if diff := cmp.Diff(describedOperations(t), rows); diff != "" {
		t.Errorf("rows (-described +table):\n%s", diff)
	}
}

// success returns the status that v1 answered with, which may differ from v2's.
func success(op string) int {
	switch {
	case op == "createPod":
		return 201
	case strings.HasPrefix(op, "delete"):
		return 204
	}
	return 200
}

// TestEveryOperationHasGoldens: one that succeeds as v1 did, and one that does
// not.
func TestEveryOperationHasGoldens(t *testing.T) {
	passed, failed := map[string]bool{}, map[string]bool{}
	for _, path := range goldenFiles(t) {
		g := runGolden(t, path)
		checkAnswer(t, g)
		switch {
		case g.result.Status == success(g.op):
			passed[g.op] = true
		case g.result.Status >= 400:
			failed[g.op] = true
		default:
			t.Errorf("%s: status %d, want %d or an error", g.name, g.result.Status, success(g.op))
		}
	}
	for op := range describedOperations(t) {
		if !passed[op] {
			t.Errorf("%s has no golden that succeeds", op)
		}
		if !failed[op] && op != "getDocs" && op != "getOpenAPI" { // static pages: nothing in them can fail
			t.Errorf("%s has no golden that fails", op)
		}
	}
}

// checkAnswer checks the invariants of every answer.
func checkAnswer(t *testing.T, g *golden) {
	t.Helper()
	out := g.result
	switch {
	case out.Status == 204:
		if len(out.Body) > 0 || out.ContentType != "" {
			t.Errorf("%s: a 204 with a body %q of %q", g.name, out.Body, out.ContentType)
		}
	case g.op == "getDocs":
		if !strings.HasPrefix(out.ContentType, "text/html") {
			t.Errorf("%s: content type %q", g.name, out.ContentType)
		}
	case out.ContentType != "application/json":
		t.Errorf("%s: content type %q, want application/json", g.name, out.ContentType)
	}
	if out.Status >= 400 {
		checkErrorBody(t, g.name, out)
	}
	if n := len(out.Warnings); n > 10 {
		t.Errorf("%s: %d warnings", g.name, n)
	}
	for _, line := range out.Warnings {
		if len(line) > 200 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%s: warning %q is not short printable ASCII", g.name, line)
		}
	}
	if strings.Contains(string(out.Body), "marked-secret") {
		t.Errorf("%s: the answer shows a secret: %s", g.name, out.Body)
	}
}

// checkErrorBody: every error reads as {message} and as {error, status}.
func checkErrorBody(t *testing.T, name string, out result) {
	t.Helper()
	var body struct {
		Message, Error string
		Status         int
		Problems       []string
		Detail         string
	}
	dec := json.NewDecoder(strings.NewReader(string(out.Body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&body); err != nil {
		t.Errorf("%s: error body %s: %v", name, out.Body, err)
		return
	}
	if body.Message == "" || body.Error != body.Message || body.Status != out.Status {
		t.Errorf("%s: error body %s with status %d", name, out.Body, out.Status)
	}
}

// jsonType is the described type of each kind of field.
var jsonType = map[kind]string{
	kindString: "string", kindInteger: "integer", kindNumber: "number", kindBoolean: "boolean", kindStrings: "array", kindEnv: "object", kindPorts: "array",
}

// extraKeys are accepted although not described: shipped clients send them.
var extraKeys = map[string][]string{"createPod": {"minCudaVersion", "dockerArgs", "startSsh", "startJupyter"}}

// TestFormsMatchTheDescription: every described input field is in its form with
// the described type, requirement and closed list, and nothing else is.
func TestFormsMatchTheDescription(t *testing.T) {
	doc := described(t)
	forms := map[string]form{}
	for _, row := range operations() {
		forms[row.ID] = row.form
	}
	for path, methods := range translate.Members(doc, "paths") {
		for method, op := range methods.(map[string]any) {
			id := translate.Text(op, "operationId")
			id = strings.ToLower(id[:1]) + id[1:]
			ref := translate.Text(op, "requestBody", "content", "application/json", "schema", "$ref")
			if (ref == "") != (forms[id] == nil) {
				t.Errorf("%s %s: body described: %t, read: %t", method, path, ref != "", forms[id] != nil)
			}
			if ref != "" {
				compareForm(t, id, forms[id], translate.At(doc, "components", "schemas", filepath.Base(ref)))
			}
		}
	}
}

func compareForm(t *testing.T, op string, f form, schema any) {
	t.Helper()
	properties := translate.Members(schema, "properties")
	required := translate.Texts(schema, "required")
	seen := map[string]bool{}
	for _, field := range f {
		seen[field.name] = true
		property, described := properties[field.name]
		if !described {
			if !slices.Contains(extraKeys[op], field.name) {
				t.Errorf("%s reads %s, which is not described", op, field.name)
			}
			continue
		}
		if want := translate.Text(property, "type"); jsonType[field.kind] != want {
			t.Errorf("%s.%s is read as %s, described as %s", op, field.name, jsonType[field.kind], want)
		}
		if slices.Contains(required, field.name) != field.required {
			t.Errorf("%s.%s: required %t, described otherwise", op, field.name, field.required)
		}
		if len(field.enum) > 0 && !slices.Equal(field.enum, translate.Texts(property, "enum")) {
			t.Errorf("%s.%s takes %v, described %v", op, field.name, field.enum, translate.Texts(property, "enum"))
		}
		if n := translate.Whole(property, "maxLength"); n != 0 && int64(field.maxLen) != n {
			t.Errorf("%s.%s: at most %d characters, described %d", op, field.name, field.maxLen, n)
		}
		if n := translate.Whole(property, "maximum"); n != 0 && field.atMost != n {
			t.Errorf("%s.%s: at most %d, described %d", op, field.name, field.atMost, n)
		}
	}
	for name := range properties {
		if !seen[name] {
			t.Errorf("%s does not read %s", op, name)
		}
	}
}

func TestAnywhereIsTheDescribedDefault(t *testing.T) {
	field := translate.At(described(t), "components", "schemas", "PodCreateInput", "properties", "dataCenterIds")
	if diff := cmp.Diff(translate.Texts(field, "default"), anyDataCenter); diff != "" {
		t.Errorf("default data centres (-described +code):\n%s", diff)
	}
}

// TestDescriptionMatchesTheReference compares the description with the
// reference it was written from: everything but the words.
func TestDescriptionMatchesTheReference(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "reference", "v1.openapi.json"))
	if err != nil {
		t.Skipf("the reference description is not here: %v", err)
	}
	if diff := cmp.Diff(bare(mustJSON(string(raw))), bare(described(t))); diff != "" {
		t.Errorf("description (-reference +ours):\n%s", diff)
	}
}

// bare takes the words and the examples of bodies out of a description.
func bare(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		_, media := v["schema"]
		for name, member := range v {
			if media && name == "example" {
				continue
			}
			_, isText := member.(string)
			if isText && slices.Contains([]string{"summary", "description", "title"}, name) {
				continue
			}
			out[name] = bare(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = bare(v[i])
		}
		return out
	}
	return v
}

func TestServedDescriptionHasTheBrand(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Legacy.Brand = "Acme"
	g := newGate(t, cfg)
	doc := g.do(t, "GET /v1/openapi.json", "").body
	if translate.At(doc, "components", "schemas", "Template", "properties", "isAcme") == nil || strings.Contains(indent(doc), brandMark) {
		t.Error("the served description does not carry the brand")
	}
	want := []string{"NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090", "NVIDIA L4", "NVIDIA RTX A5000", "Tesla V100-PCIE-16GB"}
	got := translate.Texts(doc, "components", "schemas", "PodCreateInput", "properties", "gpuTypeIds", "items", "enum")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("GPU types (-catalog +served):\n%s", diff)
	}
}

func TestOpenAPIWithoutACredential(t *testing.T) {
	g := newGate(t, DefaultConfig())
	serve := func(account string) []string {
		out := g.api.Serve(t.Context(), "getOpenAPI", &translate.Incoming{Account: account}, g.platform)
		return translate.Texts(mustJSON(string(out.Body)), "components", "schemas", "PodCreateInput", "properties", "dataCenterIds", "items", "enum")
	}
	if diff := cmp.Diff(anyDataCenter, serve("")); diff != "" {
		t.Errorf("before any catalog (-want +got):\n%s", diff)
	}
	if len(g.calls) != 0 {
		t.Errorf("an anonymous caller made v2 calls: %v", g.ops())
	}
	serve("acme")
	if diff := cmp.Diff([]string{"EU-RO-1", "EU-SE-1", "US-TX-3"}, serve("")); diff != "" {
		t.Errorf("after a caller's catalog (-want +got):\n%s", diff)
	}
}
