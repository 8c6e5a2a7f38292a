package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

// earlier writes the description of this build as it was before some operations and members came, and returns the file.
func earlier(t *testing.T, change func(paths, schemas map[string]any)) string {
	t.Helper()
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	doc := map[string]any{}
	if err := json.Unmarshal(api.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	components, _ := doc["components"].(map[string]any)
	change(doc["paths"].(map[string]any), components["schemas"].(map[string]any))
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "older.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// withoutBuilds takes builds, clusters by template and the bound of a registry's name away.
func withoutBuilds(paths, schemas map[string]any) {
	delete(paths, "/v2/serverless/{id}/builds")
	delete(paths, "/v2/serverless/{id}/builds/{buildId}")
	part := func(v any, name string) map[string]any { m, _ := v.(map[string]any)[name].(map[string]any); return m }
	cluster, _ := part(schemas, "CreateClusterRequest")["allOf"].([]any)
	delete(part(cluster[1], "properties"), "templateId")
	delete(part(part(schemas["CreateRegistryRequest"], "properties"), "name"), "maxLength")
}

func TestPlatformDiff(t *testing.T) {
	t.Parallel()
	older := earlier(t, withoutBuilds)
	newer := earlier(t, func(map[string]any, map[string]any) {})
	served := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(newer))))
	defer served.Close()
	for _, place := range []string{newer, served.URL + "/older.json"} {
		var out, faults bytes.Buffer
		if code := run(t.Context(), []string{"platform", "diff", place, "--from", older, "-o", "json"}, &out, &faults); code != exitFailure || faults.Len() > 0 {
			t.Fatalf("exit %d, %s, want 1 for differences", code, faults.String())
		}
		var list []needed
		if err := json.Unmarshal(out.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range list {
			got = append(got, strings.TrimSpace(n.Operation+" "+n.What+" "+n.In+" "+n.Name))
			if n.Needs == "" || n.Method == "" || n.Path == "" {
				t.Errorf("%+v lacks what it needs", n)
			}
		}
		want := []string{
			"createCluster new body templateId", "createRegistry changed body name",
			"listEndpointBuilds new operation", "getEndpointBuild new operation",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: changes (-want +got):\n%s", place, diff)
		}
	}
	for _, tc := range []struct {
		args string
		code int
		text string
	}{
		{newer, 0, "no differences"},
		{"../../gateway/schema/openapi.json", 0, "no differences"}, // a platform that does not describe sandboxes
		{older, exitFailure, "createCluster       gone     body templateId"},
		{older + " -o csv", exitFailure, "getEndpointBuild,gone,operation,"},
		{newer + ".gone", exitFailure, "no such file"},
		{served.URL + "/nothing", exitFailure, "404"},
		{"../../go.mod", exitFailure, "newer description: not JSON"},
		{newer + " --from ../../go.mod", exitFailure, "older description: not JSON"},
		{"", exitUsage, "accepts 1 arg"},
	} {
		var out, faults bytes.Buffer
		code := run(t.Context(), append([]string{"platform", "diff"}, strings.Fields(tc.args)...), &out, &faults)
		if text := out.String() + faults.String(); code != tc.code || !strings.Contains(text, tc.text) {
			t.Errorf("%s: exit %d, %s, want %d with %q", tc.args, code, text, tc.code, tc.text)
		}
	}
}
