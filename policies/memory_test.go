package policies_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// everything switches the whole library on, each policy with its example. The
// ones that refuse every call are left out.
func everything(tb testing.TB) policies.Config {
	tb.Helper()
	lib := compiler.Library()
	var cfg policies.Config
	for _, p := range lib {
		if p.Name == "kill_switch" || p.Name == "read_only" {
			continue
		}
		cfg.Policies = append(cfg.Policies, policies.Entry{Policy: p.Name, Params: p.Example})
	}
	return cfg
}

// without leaves policies out by name.
func without(cfg policies.Config, names ...string) policies.Config {
	var out policies.Config
	for _, e := range cfg.Policies {
		keep := true
		for _, n := range names {
			keep = keep && e.Policy != n
		}
		if keep {
			out.Policies = append(out.Policies, e)
		}
	}
	return out
}

func engineRemembering(tb testing.TB, size int, cfg policies.Config) *policies.Engine {
	tb.Helper()
	limits := policyconfig.DefaultLimits()
	limits.Deadline, limits.Remember = 10*time.Second, size
	e, err := policies.NewEngine(limits, map[string]policies.Config{"acme": cfg}, policies.Deps{})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// anyCall draws a call from a space small enough for repetitions.
func anyCall(t *rapid.T, tb testing.TB) *policies.Input {
	tb.Helper()
	word := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	gpu := `"gpu":{"id":` + word("id", `"NVIDIA L4"`, `"NVIDIA H100 80GB HBM3"`, `"x"`, `null`) +
		`,"count":` + word("count", "1", "2", "3", `"1"`) + `}`
	var in *policies.Input
	switch word("kind", "pod", "update", "endpoint", "cluster", "run") {
	case "pod":
		in = call(tb, "createPod", `{`+gpu+`,"name":`+word("name", `"a-1"`, `"B"`)+`,"env":{"A":`+word("env", `"x"`, `"AKIAABCDEFGHIJKLMNOP"`)+`}}`)
	case "update":
		in = call(tb, "updatePod", `{`+gpu+`,"image":`+word("image", `"ghcr.io/acme/x:1"`, `"x"`, `7`)+`}`)
	case "endpoint":
		in = call(tb, "createEndpoint", `{"gpu":{"pools":[`+word("pool", `"ADA_24"`, `"ADA_80_PRO"`, `"X"`)+`]},"workers":{"max":`+word("max", "1", "9")+`}}`)
	case "cluster":
		in = call(tb, "createCluster", `{"compute":{"gpuTypeId":"NVIDIA L4","gpuCountPerPod":1,"podCount":`+word("pods", "2", "200")+`}}`)
	case "run":
		in = call(tb, "createPod", `{"input":{"prompt":"x"},"max_tokens":`+word("tokens", "1", "99999")+`}`)
		in.Request.Operation = word("op", "run", "chatCompletions")
		in.Request.Params = map[string]string{"id": word("target", "wan-2-5", "e1")}
		in.Resource.After = nil
	}
	in.Caller.Team = word("team", "research", "platform")
	in.Caller.Roles = []string{word("role", "viewer", "operator", "admin")}
	in.Spend.Known = rapid.Bool().Draw(t, "known")
	in.Spend.Team.GPUs = int64(rapid.IntRange(14, 17).Draw(t, "gpus"))
	if rapid.Bool().Draw(t, "prices") {
		in.Catalog = nil
	}
	in.Request.Path = "/v2/" + word("path", "a", "b") // read by no policy
	return in
}

// TestRememberedVerdictsAreFresh compares an engine that remembers with one
// that does not, on the whole library.
func TestRememberedVerdictsAreFresh(t *testing.T) {
	cfg := without(everything(t), "working_hours", "lifetime") // they read the time
	cfg.Policies[0].Teams = []string{"research"}
	cfg.Policies[1].ExceptRoles = []string{"admin"}
	remembering, fresh := engineRemembering(t, 4096, cfg), engineRemembering(t, 0, cfg)
	rapid.Check(t, func(rt *rapid.T) {
		in := anyCall(rt, t)
		got, gotErr := remembering.Decide(t.Context(), "acme", in)
		again, againErr := remembering.Decide(t.Context(), "acme", in)
		want, wantErr := fresh.Decide(t.Context(), "acme", in)
		if (gotErr == nil) != (wantErr == nil) || (againErr == nil) != (wantErr == nil) {
			rt.Fatalf("errors: got %v and %v, want %v", gotErr, againErr, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("remembered verdict (-fresh +remembered):\n%s", diff)
		}
		if diff := cmp.Diff(want, again); diff != "" {
			rt.Fatalf("verdict asked for again (-fresh +remembered):\n%s", diff)
		}
	})
}

// TestTimeIsNotRemembered: a policy that reads the time sees it pass.
func TestTimeIsNotRemembered(t *testing.T) {
	e := engineRemembering(t, 4096, policies.Config{Policies: []policies.Entry{{Policy: "working_hours"}}})
	in := call(t, "createPod", `{"gpu":{"id":"NVIDIA L4"}}`)
	for _, tt := range []struct {
		at   time.Time
		want int
	}{{noon(), 0}, {noon().Add(9 * time.Hour), 1}, {noon(), 0}} {
		in.Time = tt.at
		d, err := e.Decide(t.Context(), "acme", in)
		if err != nil || len(d.Deny) != tt.want {
			t.Errorf("%s: got %d denials, %v; want %d", tt.at, len(d.Deny), err, tt.want)
		}
	}
}

// A policy that reads new members leaves the other verdicts remembered.
func TestPoliciesAreRememberedApart(t *testing.T) {
	slow := "package policies.slow\n\ndeny contains \"x\" if {\n\tinput.resource.after.gpu.count > 7\n\tcount(split(input.resource.after.gpu.id, \"\")) > 0\n}\n"
	dir := t.TempDir()
	write(t, dir, "slow.rego", slow)
	e := engineRemembering(t, 64, policies.Config{Directory: files.UnrestrictedPath(dir), Policies: []policies.Entry{
		{Policy: "naming", Params: map[string]any{"pattern": "[a-z]+"}}, {Policy: "working_hours"},
	}})
	in := call(t, "createPod", `{"gpu":{"id":"NVIDIA L4","count":8}}`)
	after := in.Resource.After.(map[string]any)
	for _, tt := range []struct {
		name string
		at   time.Time
		want []string
		runs []string // the policies evaluated
	}{
		{"a", noon(), []string{"slow"}, []string{"naming", "slow", "working_hours"}},
		{"b", noon(), []string{"slow"}, []string{"naming", "working_hours"}},
		{"B", noon(), []string{"naming", "slow"}, []string{"naming", "working_hours"}},
		{"b", noon().Add(9 * time.Hour), []string{"slow", "working_hours"}, []string{"working_hours"}},
		{"a", noon(), []string{"slow"}, []string{"working_hours"}},
	} {
		after["name"], in.Time = tt.name, tt.at
		unknown, err := e.Unknown("acme", in)
		if diff := cmp.Diff(tt.runs, unknown); diff != "" || err != nil {
			t.Errorf("%s at %s: %v, to be evaluated (-want +got):\n%s", tt.name, tt.at, err, diff)
		}
		d, err := e.Decide(t.Context(), "acme", in)
		var got []string
		for _, v := range d.Deny {
			got = append(got, v.Policy)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s at %s: %v (-want +got):\n%s", tt.name, tt.at, err, diff)
		}
	}
}

// TestReadsAreNarrow pins the members that the demo's policies read: a wider set would be
// correct and slow.
func TestReadsAreNarrow(t *testing.T) {
	got, _ := newEngine(t, demo()).Reads("acme")
	want := []string{
		"catalog.pools", "cost.basis", "cost.known", "cost.reason", "cost.usd_per_gpu_hour", "cost.usd_per_hour",
		"request.settles", "resource.after.cloud", "resource.after.compute", "resource.after.gpu",
		"resource.after.workers", "resource.kind",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths read (-want +got):\n%s", diff)
	}
}
