package policies_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// An entry that contradicts itself, or can never do anything, is a fault of the section.
func TestContradictions(t *testing.T) {
	entry := func(policy string, params map[string]any) policies.Config {
		return policies.Config{Policies: []policies.Entry{{Policy: policy, Params: params}}}
	}
	for name, tc := range map[string]struct {
		cfg  policies.Config
		want string
	}{
		"a default above the most": {
			entry("disk", map[string]any{"max_gb": 10, "default_gb": 11}), "policies[0].params.default_gb: 11 is more than max_gb (10)",
		},
		"a choice that is not allowed": {
			entry("data_centers", map[string]any{"allow": []any{"EU-*"}, "choose": []any{"EU-RO-1", "US-KS-2"}}),
			`policies[0].params.choose[1]: "US-KS-2" is not in allow`,
		},
		"a pattern that does not compile": {entry("naming", map[string]any{"pattern": "("}), "policies[0].params.pattern: "},
		"a team both in and out": {
			policies.Config{Policies: []policies.Entry{{Policy: "kill_switch", Teams: []string{"a", "b"}, ExceptTeams: []string{"b"}}}},
			`policies[0].except_teams[0]: "b" is both included and exempted`,
		},
		"a field that the body does not have": {
			entry("field_values", map[string]any{"force": map[string]any{"createPod": map[string]any{"/gpu/cuont": 1}}}),
			"policies[0].params.force.createPod: the body of createPod has no member /gpu/cuont",
		},
		"a field of an operation without a body": {
			entry("field_values", map[string]any{"defaults": map[string]any{"deletePod": map[string]any{"/name": "a"}}}),
			"policies[0].params.defaults.deletePod: the body of deletePod has no member /name",
		},
		"a role both in and out": {
			policies.Config{Policies: []policies.Entry{{Policy: "kill_switch", Roles: []string{"admin"}, ExceptRoles: []string{"admin"}}}},
			`policies[0].except_roles[0]: "admin" is both included and exempted`,
		},
		"a bundle over plain http": {
			policies.Config{Bundle: &policies.Bundle{URL: egress.UnrestrictedURL("http://bundles.example/a.tar.gz"), AllowUnsigned: true}},
			"bundle.url: must be https unless the host is a loopback address",
		},
	} {
		if err := policies.Validate(&tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	for _, url := range []string{"http://127.0.0.1:8080/a", "http://[::1]/a", "http://localhost/a", "https://bundles.example/a"} {
		cfg := policies.Config{Bundle: &policies.Bundle{URL: egress.UnrestrictedURL(url), AllowUnsigned: true}}
		if err := policies.Validate(&cfg); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// limitRego is an own policy that describes its parameters.
const limitRego = `# METADATA
# custom:
#   required: [most]
#   params:
#     most: {type: integer}
package policies.limit

violations(params) := {"too many" | input.resource.after.gpu.count > params.most}
`

// Own Rego that can never have its intended effect is a fault when it is
// loaded, with its place.
func TestOwnRegoThatIsWrong(t *testing.T) {
	limits := policyconfig.DefaultLimits()
	load := func(rego string, entries ...policies.Entry) error {
		dir := t.TempDir()
		write(t, dir, "mine.rego", rego)
		_, err := policies.NewEngine(limits, map[string]policies.Config{"acme": {Directory: files.UnrestrictedPath(dir), Policies: entries}}, policies.Deps{})
		return err
	}
	for name, tc := range map[string]struct {
		rego    string
		entries []policies.Entry
		want    string
	}{
		"a parameter it does not have": {
			limitRego,
			[]policies.Entry{{Policy: "limit", Params: map[string]any{"mosst": 1}}},
			`policies[0].params.mosst: unknown parameter, did you mean "most"?`,
		},
		"a parameter it needs":            {limitRego, nil, "policies.params.most: is required"},
		"a parameter of another type":     {limitRego, []policies.Entry{{Policy: "limit", Params: map[string]any{"most": "x"}}}, "policies[0].params.most: "},
		"enum has no values":              {strings.Replace(limitRego, "{type: integer}", "{enum: []}", 1), []policies.Entry{{Policy: "limit", Params: map[string]any{"most": 1}}}, "enum has no values"},
		"an answer that is true":          {"package policies.a\n\ndeny := true if input.caller.org\n", nil, "mine.rego:3:1: org acme: policy a: deny must be a set or an array, not boolean"},
		"a number in an answer":           {"package policies.a\n\ndeny contains 1 if input.caller.org\n", nil, "deny must contain strings or objects, not number"},
		"a change without a value":        {"package policies.a\n\nmutate contains {\"op\": \"force\", \"pointer\": \"/disk\"} if input.caller.org\n", nil, "mutate must contain objects with op, pointer and value"},
		"an object without a message":     {"package policies.a\n\ndeny contains {\"reason\": \"x\"} if input.caller.org\n", nil, "deny must contain strings, or objects with a message"},
		"a change of a kind there is not": {"package policies.a\n\nmutate contains {\"op\": \"set\", \"pointer\": \"/disk\", \"value\": 1} if input.caller.org\n", nil, `op is "set", want default or force`},
		"a verb that no call has":         {"package policies.a\n\ndeny contains \"x\" if input.request.verb == \"craete\"\n", nil, `mine.rego:3:22: org acme: policy a: input.request.verb: unknown verb "craete", did you mean "create"?`},
		"an operation that there is not":  {"package policies.a\n\ndeny contains \"x\" if input.request.operation in {\"createPod\", \"createPods\"}\n", nil, `unknown operation "createPods", did you mean "createPod"?`},
		"a kind, the other way round":     {"package policies.a\n\ndeny contains \"x\" if not \"pods\" == input.resource.kind\n", nil, `unknown kind "pods", did you mean "pod"?`},
		"a member that no resource has": {
			"package policies.a\n\ndeny contains \"x\" if input.resource.after.gpu.cuont > 1\n", nil,
			`mine.rego:3:22: org acme: policy a: input.resource.after.gpu.cuont: unknown member "cuont", did you mean "count"?`,
		},
		"a member that no resource has, in a local": {
			"package policies.a\n\ndeny contains \"x\" if {\n\tafter := input.resource.after\n\tafter.imgae == \"y\"\n}\n", nil, `unknown member "imgae", did you mean "image"?`,
		},
		"a member that no item has":        {"package policies.a\n\ndeny contains \"x\" if {\n\tsome m in input.resource.current.mounts.network\n\tm.volumeid == \"y\"\n}\n", nil, `unknown member "volumeid"`},
		"a member that no body has":        {"package policies.a\n\ndeny contains \"x\" if input.request.body.workers.maxx > 1\n", nil, `unknown member "maxx", did you mean "max"?`},
		"a member that the input does not": {"package policies.a\n\ndeny contains \"x\" if input.caller.teem\n", nil, "mine.rego:3:22"},
	} {
		if err := load(tc.rego, tc.entries...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	for name, rego := range map[string]string{
		"objects and strings": "package policies.a\n\ndeny contains \"x\" if input.caller.org\n\ndeny contains {\"msg\": \"y\"} if input.caller.org\n",
		"an array":            "package policies.a\n\ndeny := [\"x\"]\n",
		"a known verb":        "package policies.a\n\ndeny contains \"x\" if input.request.verb in {\"create\", \"start\", \"delete\"}\n",
		"without METADATA":    "package policies.a\n\nviolations(params) := {params.anything}\n",
		"answers from data":   "package policies.a\n\ndeny contains v if some v in data.x\n",
		"guarded":             "package policies.a\n\ndeny contains \"x\" if object.get(input.resource.after, [\"gpu\", \"interconnect\"], \"\") == \"y\"\n",
		"compared with null":  "package policies.a\n\ndeny contains \"x\" if {\n\tinput.resource.after.gpu == null\n\tnot input.resource.current.registry\n}\n",
		"of a job":            "package policies.a\n\ndeny contains \"x\" if {\n\tinput.request.body.temperature > 1\n\tinput.request.body.input.seed\n}\n",
		"of any name":         "package policies.a\n\ndeny contains name if some name, _ in input.resource.after.env\n\ndeny contains \"x\" if input.resource.after.env.FOO\n",
	} {
		if err := load(rego, policies.Entry{Policy: "a"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
