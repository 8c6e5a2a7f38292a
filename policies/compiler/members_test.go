package compiler_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// Own Rego that reads a member the input cannot have is refused, unless an earlier compilation has checked it. Bodies of jobs may
// have any member.
func TestUnknownMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		body  string // of the rule
		known bool
		want  string // the error, "" for none
	}{
		"of the resource": {
			"input.resource.after.gpu.cuont > 1", false,
			`mine.rego:3:22: org acme: policy mine: input.resource.after.gpu.cuont: unknown member "cuont", did you mean "count"?`,
		},
		"of the body": {
			"input.request.body.workers.maxx > 1", false,
			`mine.rego:3:22: org acme: policy mine: input.request.body.workers.maxx: unknown member "maxx", did you mean "max"?`,
		},
		"checked before":         {"input.resource.after.gpu.cuont > 2", true, ""},
		"of the body of a job":   {"input.request.body.temperature > 1", false, ""},
		"a known member":         {"input.resource.after.gpu.count > 1", false, ""},
		"a name that is a value": {"input.resource.after.env.CUONT", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			const file = "mine.rego"
			own, err := compiler.Parse("acme", name, map[string]string{file: "package policies.mine\n\ndeny contains \"x\" if " + tc.body + "\n"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			options := compiler.Options{Org: "acme", Rego: own}
			if tc.known {
				options.KnownSource = own.Digest()
			}
			_, err = compiler.Compile(t.Context(), &options)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Compile: got %v, want %q", err, tc.want)
			}
		})
	}
}
