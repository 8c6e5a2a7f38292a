package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

// grown are the places of the description of this build that the platform's description of August 2026 does not have.
const grown = `
paths /v2/account/secrets
paths /v2/account/secrets/{id}
paths /v2/serverless/{id}/builds
paths /v2/serverless/{id}/builds/{buildId}
paths /v2/sandboxes
paths /v2/sandboxes/{id}
paths /v2/sandboxes/{id}/exec
paths /v2/sandboxes/{id}/logs
paths /v2/pods get parameters 2
paths /v2/pods get parameters 1
paths /v2/serverless get parameters
paths /v2/serverless/{id}/releases get parameters
paths /v2/templates get parameters
components schemas ListPodsResponse required 1
components schemas ListPodsResponse properties pagination
components schemas ListEndpointsResponse required 1
components schemas ListEndpointsResponse properties pagination
components schemas ListEndpointReleasesResponse required 2
components schemas ListEndpointReleasesResponse properties pagination
components schemas ListTemplatesResponse required 1
components schemas ListTemplatesResponse properties pagination
components schemas CreateClusterRequest allOf 1 properties templateId
paths /v2/clusters post responses 404
components schemas CreateRegistryRequest properties name maxLength
components schemas CreateRegistryRequest properties username maxLength
components schemas CreateRegistryRequest properties password maxLength
components schemas BillingAmounts properties serverlessFeeAmount deprecated
components schemas ServerlessBillingAmounts properties feeAmount deprecated`

// growth is what a comparison says about grown.
const growth = `
listSecrets new operation
createSecret new operation
deleteSecret new operation
getSecret new operation
updateSecret new operation
listBilling changed response metadata.totals.serverlessFeeAmount
listBilling changed response records[].serverlessFeeAmount
listServerlessBilling changed response metadata.totals.feeAmount
listServerlessBilling changed response records[].feeAmount
createCluster new body templateId
createCluster new status 404
listPods new query cursor
listPods new query limit
listPods new response pagination
createRegistry changed body name
createRegistry changed body password
createRegistry changed body username
listSandboxes new operation
createSandbox new operation
deleteSandbox new operation
getSandbox new operation
execSandbox new operation
getSandboxLogs new operation
listEndpoints new query cursor
listEndpoints new query limit
listEndpoints new response pagination
listEndpointBuilds new operation
getEndpointBuild new operation
listEndpointReleases new query cursor
listEndpointReleases new query limit
listEndpointReleases new response pagination
listTemplates new query cursor
listTemplates new query limit
listTemplates new response pagination`

// descriptionWithout writes the description of this build without some places, and returns the file.
func descriptionWithout(t *testing.T, places string) string {
	t.Helper()
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(api.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	for place := range strings.Lines(strings.TrimSpace(places)) {
		doc = without(doc, strings.Fields(place))
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "description.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// without removes the member or element at a path from v, and returns the rest.
func without(v any, path []string) any {
	switch node := v.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(node, path[0])
		} else {
			node[path[0]] = without(node[path[0]], path[1:])
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(err)
		}
		if len(path) == 1 {
			return slices.Delete(node, i, i+1)
		}
		node[i] = without(node[i], path[1:])
	}
	return v
}

func TestPlatformDiff(t *testing.T) {
	t.Parallel()
	older, newer := descriptionWithout(t, grown), descriptionWithout(t, "")
	const published = "../../gateway/schema/openapi.json" // which does not describe sandboxes
	served := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(newer))))
	defer served.Close()
	for _, place := range []string{newer, served.URL + "/description.json", published} {
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
		want := slices.DeleteFunc(strings.Split(strings.TrimSpace(growth), "\n"), func(line string) bool {
			return place == published && strings.Contains(line, "Sandbox")
		})
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
		{published, 0, "no differences"},
		{published + " --from " + newer, 0, "no differences"},
		{older, exitFailure, "createCluster          gone     body templateId"},
		{older + " -o csv", exitFailure, "getEndpointBuild,gone,operation,"},
		{newer + ".gone", exitFailure, "no such file"},
		{served.URL + "/nothing", exitFailure, "404"},
		{"../../go.mod", exitFailure, "newer description: not JSON"},
		{newer + " --from ../../go.mod", exitFailure, "older description: not JSON"},
		{"", exitUsage, "FILE|URL is missing"},
	} {
		var out, faults bytes.Buffer
		code := run(t.Context(), append([]string{"platform", "diff"}, strings.Fields(tc.args)...), &out, &faults)
		if text := out.String() + faults.String(); code != tc.code || !strings.Contains(text, tc.text) {
			t.Errorf("%s: exit %d, %s, want %d with %q", tc.args, code, text, tc.code, tc.text)
		}
	}
}
