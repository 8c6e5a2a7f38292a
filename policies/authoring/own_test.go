package authoring_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/authoring"
	"github.com/tollgate-dev/tollgate/policies/compiler"
)

func writeTo(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOwn: pages of own policies, with METADATA and without.
func TestOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTo(t, "limits.rego", `# METADATA
# title: Few GPUs | here
# description: No more than a team needs.
# custom:
#   required: [most]
#   params:
#     most: {description: Most GPUs of one pod., type: integer}
package policies.limits

violations(params) := {"too many" | input.resource.after.gpu.count > params.most}
`)
	writeTo(t, "sizes.rego", "package policies.sizes\n\nmutate contains {\"op\": \"default\", \"pointer\": \"/disk\", \"value\": 20} if input.request.verb == \"create\"\n\ndeny contains \"x\" if false\n")
	writeTo(t, "helpers.rego", "package policies.helpers\n\nx := 1\n")
	writeTo(t, "limits_test.rego", "package policies.limits_test\n\ntest_x if true\n")
	w, err := compiler.ReadWorkspace(".")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := authoring.OwnPolicies(w)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, text := range pages {
		got[name] = string(text)
	}
	want := map[string]string{
		"README.md": "# Own policies\n\nGenerated from Rego.\n\n| policy | description | rules |\n|---|---|---|\n" +
			"| [`limits`](limits.md) | Few GPUs \\| here | violations |\n| [`sizes`](sizes.md) | sizes | deny, mutate |\n",
		"limits.md": "# Few GPUs | here\n\nPolicy `limits`, generated from `limits.rego`.\n\nNo more than a team needs.\n\nDefines the rules `violations`.\n\n" +
			"| parameter, type, default | meaning |\n|---|---|\n" +
			"| `most`<br>integer, **required** | Most GPUs of one pod. |\n",
		"sizes.md": "# sizes\n\nPolicy `sizes`, generated from `sizes.rego`.\n\nDefines the rules `deny`, `mutate`.\n\n" +
			"The policy can change the body of a call. The response names each change.\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}
