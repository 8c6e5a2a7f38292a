package policies_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// fine is a policy with nothing wrong.
const fine = "package policies.fine\n\ndeny contains \"x\" if false\n"

// TestMisplacedRego: Rego that would never be evaluated does not load, in the
// engine and in a workspace.
func TestMisplacedRego(t *testing.T) {
	const answer = "\n\ndeny contains \"no\" if input.request.settles\n"
	tests := []struct{ name, rego, want string }{
		{"a root of another name", "package policy.gpu" + answer, `mine.rego:3:1: org acme: deny in package policy.gpu is never evaluated: policies are packages policies.<name>, did you mean "policies.gpu"?`},
		{"no root", "package gpu" + answer, `did you mean "policies.gpu"?`},
		{"too deep", "package policies.team.gpu" + answer, `mine.rego:3:1: org acme: deny in package policies.team.gpu is never evaluated: policies are packages policies.<name>, did you mean "policies.team_gpu"?`},
		{"the root itself", "package policies\n\nmine.deny contains \"no\" if input.request.settles\n", `mine.rego:3:1: org acme: mine.deny in package policies is never evaluated: policies are packages policies.<name>, did you mean "policies.mine"?`},
		{"the root alone", "package policies" + answer, "deny in package policies is never evaluated: policies are packages policies.<name>"},
		{"a function elsewhere", "package lib.gpu\n\nviolations(params) := {params.x}\n", "violations in package lib.gpu is never evaluated"},
		{"a default elsewhere", "package lib.gpu\n\ndefault warn := set()\n", "warn in package lib.gpu is never evaluated"},
		{"no name of a policy", "package policies[\"my-gpu\"]" + answer, `mine.rego:1:1: org acme: package policies["my-gpu"] is not a policy: "my-gpu" is not a valid policy name`},
		{"a capital", "package policies.Gpu" + answer, `"Gpu" is not a valid policy name`},
		{"a slip in a name", "package policies.typo\n\ndenny contains \"no\" if input.request.settles\n", `mine.rego:3:1: org acme: policy typo: rule denny is never evaluated, did you mean "deny"?`},
		{"a slip beside an answer", "package policies.mine" + answer + "\nwran contains \"no\" if input.request.settles\n", `mine.rego:5:1: org acme: policy mine: rule wran is never evaluated, did you mean "warn"?`},
		{"a slip in a function", "package policies.mine\n\nviolation(params) := {params.x}\n", `did you mean "violations"?`},
		{"no answer", "package policies.mine\n\nx := 1\n", "mine.rego:1:1: org acme: policy mine: defines none of the rules violations, mutations, deny, warn, mutate; helpers belong"},
		{"below another name", "package policies.mine" + answer + "\nnight.deny contains \"no\" if input.request.settles\n", "mine.rego:5:1: org acme: policy mine: night.deny is never evaluated"},
		{"violations as a set", "package policies.mine" + answer + "\nviolations contains \"no\" if input.request.settles\n", "violations is never evaluated: must be a function with one parameter"},
		{"violations of two", "package policies.mine" + answer + "\nviolations(a, b) := {a, b}\n", "violations is never evaluated: must be a function with one parameter"},
		{"deny as a function", "package policies.mine\n\nwarn contains \"x\" if deny(1)\n\ndeny(x) if x == 2\n", "deny is never evaluated: must be a set"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "fine.rego", fine)
			write(t, dir, "mine.rego", tt.rego)
			_, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{"acme": {Directory: files.UnrestrictedPath(dir)}}, policies.Deps{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant a fault with %s", err, tt.want)
			}
			w, err := compiler.ReadWorkspace(dir)
			if err == nil {
				err = w.Compile()
			}
			if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(tt.want, "org acme: ", "")) {
				t.Errorf("workspace: got %v\nwant a fault with %s", err, tt.want)
			}
		})
	}
}

// TestHelpers: a helper of policies is not a fault in any place.
func TestHelpers(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "mine.rego", `package policies.mine

import data.lib.gpu
import data.policies.mine.parts

deny contains "x" if {
	gpu.dear
	parts.few
	denied
	data.policies.mine.warned
}

denied if input.request.settles

warned if input.request.settles

many if input.request.settles
`)
	write(t, dir, "more.rego", "package policies.mine\n\nhelp := 1\n")
	write(t, dir, "lib.rego", "package lib.gpu\n\ndear if input.resource.after.gpu.count > 2\n\nmodes := {\"deny\": 1}\n\nlevels.warn := 2\n")
	write(t, dir, "parts.rego", "package policies.mine.parts\n\nfew if input.resource.after.gpu.count < 9\n")
	write(t, dir, "mine_test.rego", "package policies.mine_test\n\ntest_x if true\n")
	if _, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{"acme": {Directory: files.UnrestrictedPath(dir)}}, policies.Deps{}); err != nil {
		t.Error(err)
	}
	w, err := compiler.ReadWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Compile(); err != nil {
		t.Errorf("workspace: %v", err)
	}
}

// TestDirectoriesWithoutPolicies: a directory that switches nothing on is a
// mistake, not a choice.
func TestDirectoriesWithoutPolicies(t *testing.T) {
	for name, texts := range map[string]map[string]string{
		"empty": {}, "only data": {"data.json": "{}"}, "only tests": {"x_test.rego": fine}, "only helpers": {"x.rego": "package lib\n\nx := 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range texts {
				write(t, dir, file, text)
			}
			_, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{"acme": {Directory: files.UnrestrictedPath(dir)}}, policies.Deps{})
			if err == nil || !strings.Contains(err.Error(), dir+": org acme: contains no policy") {
				t.Errorf("got %v, want a fault of the directory", err)
			}
		})
	}
}
