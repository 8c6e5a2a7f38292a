package policies_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies"
)

// TestWorkspaceDocs: pages of own policies, with METADATA and without.
func TestWorkspaceDocs(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "limits.rego", `# METADATA
# title: Few GPUs | here
# description: No more than a team needs.
# custom:
#   required: [most]
#   params:
#     most: {description: Most GPUs of one pod., type: integer}
package policies.limits

violations(params) := {"too many" | input.resource.after.gpu.count > params.most}
`)
	write(t, dir, "sizes.rego", "package policies.sizes\n\nmutate contains {\"op\": \"default\", \"pointer\": \"/disk\", \"value\": 20} if input.request.verb == \"create\"\n\ndeny contains \"x\" if false\n")
	write(t, dir, "helpers.rego", "package policies.helpers\n\nx := 1\n")
	write(t, dir, "limits_test.rego", "package policies.limits_test\n\ntest_x if true\n")
	w, err := policies.ReadWorkspace(".")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := w.Docs()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, text := range pages {
		got[name] = string(text)
	}
	want := map[string]string{
		"README.md": "# Own policies\n\nGenerated from Rego.\n\n| policy | what it does | answers |\n|---|---|---|\n" +
			"| [`limits`](limits.md) | Few GPUs \\| here | violations |\n| [`sizes`](sizes.md) | sizes | deny, mutate |\n",
		"limits.md": "# Few GPUs | here\n\nPolicy `limits`, generated from `limits.rego`.\n\nNo more than a team needs.\n\nAnswers with `violations`.\n\n" +
			"## Parameters\n\n| parameter | type | required | default | meaning |\n|---|---|---|---|---|\n" +
			"| `most` | integer | yes |  | Most GPUs of one pod. |\n",
		"sizes.md": "# sizes\n\nPolicy `sizes`, generated from `sizes.rego`.\n\nAnswers with `deny`, `mutate`.\n\n" +
			"It may change the body of a call; the caller is told.\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

// TestWorkspaceModules: the library is there, and never the workspace's own.
func TestWorkspaceModules(t *testing.T) {
	w, err := policies.ReadWorkspace(ownDirectory(t))
	if err == nil || !strings.Contains(err.Error(), "rules_test.rego:1:1") {
		t.Errorf("got %v, want the fault of the test that is no Rego", err)
	}
	modules, err := w.Modules()
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for file, m := range modules {
		if w.Own(file) {
			own++
		} else if !strings.HasPrefix(m.Package.Path.String(), "data.tollgate.") {
			t.Errorf("%s is neither the workspace's nor the library's", file)
		}
	}
	if own != 2 || own != len(w.Sources()) || modules["rego/support/testing_test.rego"] == nil {
		t.Errorf("got %d own files of %d, %d sources; want 2 beside the library and its inputs for tests", own, len(modules), len(w.Sources()))
	}
}
