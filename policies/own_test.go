package policies_test

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

const ownRego = `package policies.team_rules

import data.tollgate.gpu

# Called without parameters: always on unless an entry says otherwise.
deny contains {"message": sprintf("team %s may not use %s", [input.caller.team, named.id]), "pointer": named.pointer} if {
	some named in gpu.named
	not named.id in data.teams[input.caller.team]
}

warn contains "two GPUs are dear" if input.resource.after.gpu.count == 2

mutate contains {"op": "default", "pointer": "/disk", "value": data.disk, "message": "our default"} if {
	input.request.verb == "create"
}
`

func ownDirectory(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	write(tb, dir, "rules.rego", ownRego)
	write(tb, dir, "rules_test.rego", "not Rego at all")
	write(tb, dir, "data.json", `{"disk": 20}`)
	write(tb, dir, "teams/data.yaml", "research: [NVIDIA L4]\n")
	write(tb, dir, ".git/x.rego", "neither")
	write(tb, dir, "limits.rego", `package policies.limits

violations(params) := {{"message": "too many", "pointer": "/gpu/count"} | input.resource.after.gpu.count > params.most}
`)
	return dir
}

func TestOwnRego(t *testing.T) {
	e := newEngine(t, policies.Config{
		Directory: files.UnrestrictedPath(ownDirectory(t)),
		Policies:  []policies.Entry{{Policy: "limits", Mode: policies.ModeShadow, Params: map[string]any{"most": 1}}},
	})
	d, err := e.Decide(t.Context(), "acme", call(t, "createPod", `{"gpu":{"id":"NVIDIA H100 80GB HBM3","count":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	d.Revision = ""
	want := policies.Decision{
		Deny: []policies.Violation{{
			Policy: "team_rules", Message: "team research may not use NVIDIA H100 80GB HBM3", Pointer: "/gpu/id",
		}},
		Warn:   []policies.Violation{{Policy: "team_rules", Message: "two GPUs are dear"}},
		Shadow: []policies.Violation{{Policy: "limits", Message: "too many", Pointer: "/gpu/count"}},
		Mutate: []policies.Mutation{{
			Policy: "team_rules", Op: policies.OpDefault, Pointer: "/disk", Value: json.Number("20"), Message: "our default",
		}},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}

// TestMutationsSettle: once applied, a change is not asked for again.
func TestMutationsSettle(t *testing.T) {
	e := newEngine(t, policies.Config{Policies: []policies.Entry{
		{Policy: "disk", Params: map[string]any{"max_gb": 100, "default_gb": 20}},
		{Policy: "field_values", Params: map[string]any{
			"defaults": map[string]any{"createPod": map[string]any{"/cloud": "COMMUNITY", "/gpu/count": 2}},
			"force":    map[string]any{"createPod": map[string]any{"/cloud": "SECURE", "/env/TEAM": "research"}},
		}},
	}})
	in := call(t, "createPod", `{"gpu":{"id":"NVIDIA L4"}}`)
	d, err := e.Decide(t.Context(), "acme", in)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := policies.Apply(in.Request.Body, d.Mutate)
	if err != nil {
		t.Fatal(err)
	}
	want := decode(t, `{"gpu":{"id":"NVIDIA L4","count":2},"cloud":"SECURE","disk":20,"env":{"TEAM":"research"}}`)
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("changed body (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(decode(t, `{"gpu":{"id":"NVIDIA L4"}}`), in.Request.Body); diff != "" {
		t.Errorf("the body itself changed (-want +got):\n%s", diff)
	}
	in.Request.Body, in.Resource.After = changed, changed
	if d, err := e.Decide(t.Context(), "acme", in); err != nil || len(d.Mutate) != 0 {
		t.Errorf("second decision: got %+v, %v; want no more changes", d.Mutate, err)
	}
}

func TestApplyRefuses(t *testing.T) {
	for _, tt := range []struct{ name, body, pointer string }{
		{"no place", `{"a":"text"}`, "/a/b"},
		{"no such item", `{"a":[1]}`, "/a/1"},
		{"not an index", `{"a":[1]}`, "/a/01"},
		{"no body", `null`, "/a"},
		{"no pointer", `{}`, "a"},
		{"bad escape", `{}`, "/a~2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := policies.Apply(decode(t, tt.body), []policies.Mutation{{Op: policies.OpForce, Pointer: tt.pointer, Value: true}})
			if err == nil {
				t.Errorf("got %v, want an error", got)
			}
		})
	}
}

// TestReloadUnderLoad swaps the engines of two states while calls are judged: every decision
// is of one state, and names it.
func TestReloadUnderLoad(t *testing.T) {
	set := func(max int) map[string]policies.Config {
		return map[string]policies.Config{"acme": {Policies: []policies.Entry{
			{Policy: "gpu_count", Params: map[string]any{"max_per_pod": max}},
			{Policy: "disk", Params: map[string]any{"max_gb": 10 * max}},
		}}}
	}
	limits := policyconfig.DefaultLimits()
	limits.Deadline = 1e10
	first, err := policies.NewEngine(limits, set(1), policies.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	var e atomic.Pointer[policies.Engine]
	e.Store(first)
	const body = `{"gpu":{"id":"NVIDIA L4","count":2},"disk":15}` // 1: both refuse, 2: neither
	refusals := sync.Map{}                                        // revision to number of denials
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			in := call(t, "createPod", body)
			for !stop.Load() {
				d, err := e.Load().Decide(t.Context(), "acme", in)
				if err != nil {
					t.Error(err)
					return
				}
				if was, seen := refusals.LoadOrStore(d.Revision, len(d.Deny)); seen && was != len(d.Deny) {
					t.Errorf("revision %s: %v denials and %d", d.Revision, was, len(d.Deny))
				}
				if n := len(d.Deny); n != 0 && n != 2 {
					t.Errorf("mixed state: %+v", d.Deny)
				}
			}
		})
	}
	for i := range 20 {
		next, err := policies.NewEngine(limits, set(1+i%2), policies.Deps{Previous: e.Load()})
		if err != nil {
			t.Error(err)
			break
		}
		e.Store(next)
		before, _ := next.Revision("acme")
		bad := set(1)
		bad["acme"].Policies[0].Policy = "nonsense"
		if _, err := policies.NewEngine(limits, bad, policies.Deps{Previous: next}); err == nil {
			t.Error("a bad state was loaded")
		}
		if after, _ := next.Revision("acme"); after != before {
			t.Errorf("a bad state changed the revision from %s to %s", before, after)
		}
	}
	stop.Store(true)
	wg.Wait()
}
