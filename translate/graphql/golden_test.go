package graphql_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/translate"
)

var update = flag.Bool("update", false, "rewrite the expected parts of the golden files")

// TestGolden runs each file of testdata: a request in the exact form a client
// sends it, the answers of v2, and what must come of it: the v2 calls and the
// answer. request.graphql and variables.json are the usual form, request.json a
// whole body.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, f := range a.Files {
				parts[f.Name] = string(f.Data)
			}
			v2 := newScript(t, parts["v2"])
			out := newRig(t).api.Serve(t.Context(), goldenRequest(t, parts), v2)
			if !strings.Contains(parts["v2"], " 422 ") {
				published(t, v2)
			}
			lines := v2.lines()
			if _, ok := parts["unordered"]; ok { // roots run side by side
				slices.Sort(lines)
			}
			got := map[string]string{
				"v2.requests": strings.Join(append(lines, ""), "\n"),
				"response":    goldenResponse(t, out),
			}
			if *update {
				rewrite(t, file, a, got)
				return
			}
			for name, text := range got {
				if diff := cmp.Diff(parts[name], text); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func goldenRequest(t *testing.T, parts map[string]string) *translate.Incoming {
	t.Helper()
	in := &translate.Incoming{Account: account, HasBody: true}
	if _, ok := parts["anonymous"]; ok {
		in.Account, in.CatalogAllowed = "", true
	}
	if raw, ok := parts["request.json"]; ok {
		in.Body = decode(t, raw)
		return in
	}
	body := map[string]any{"query": parts["request.graphql"]}
	if v, ok := parts["variables.json"]; ok {
		body["variables"] = decode(t, v)
	}
	in.Body = body
	return in
}

// goldenResponse is the status, the headers that depend on the request, and the
// indented body, which keeps the order of its members.
func goldenResponse(t *testing.T, out *translate.Outgoing) string {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d\n", out.Status)
	for _, name := range []string{"Retry-After", "X-Legacy-Warning"} {
		for _, v := range out.Header.Values(name) {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	if err := json.Indent(&b, out.Body, "", " "); err != nil {
		t.Fatalf("%v in %s", err, out.Body)
	}
	b.WriteByte('\n')
	return b.String()
}

func rewrite(t *testing.T, file string, a *txtar.Archive, got map[string]string) {
	t.Helper()
	kept := a.Files[:0]
	for _, f := range a.Files {
		if _, generated := got[f.Name]; !generated {
			kept = append(kept, f)
		}
	}
	for _, name := range []string{"v2.requests", "response"} {
		kept = append(kept, txtar.File{Name: name, Data: []byte(got[name])})
	}
	a.Files = kept
	if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// published holds the bodies that were sent against the platform's own description.
func published(t *testing.T, v2 *script) {
	t.Helper()
	for _, call := range v2.calls {
		body, err := json.Marshal(call.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range platform.PublishedFaults(call.Operation, body) {
			t.Errorf("%s %s: %s", call.Operation, body, fault)
		}
	}
}
