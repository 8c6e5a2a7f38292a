package policies_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

func h100() policies.Exception {
	return policies.Exception{
		ID: "x1", Policy: "gpu_allow_list", Teams: []string{"research"}, Roles: []string{"admin"}, Operations: []string{"createPod"},
		Where:         map[string][]any{"/gpu/id": {"NVIDIA H100 80GB HBM3"}, "/gpu/count": {1, 2}},
		MaxUSDPerHour: "6", From: noon().Add(-time.Hour), Until: noon().Add(time.Hour),
		Reason: "benchmark", GrantedBy: "ada",
	}
}

func TestExceptions(t *testing.T) {
	cfg := policies.Config{
		Policies:   []policies.Entry{{Policy: "gpu_allow_list", Params: map[string]any{"gpus": []any{"NVIDIA L4"}}}},
		Exceptions: []policies.Exception{h100()},
	}
	e := newEngine(t, cfg)
	tests := []struct {
		name   string
		change func(*policies.Input)
		lifted bool
	}{
		{"as granted", func(*policies.Input) {}, true},
		{"by key", func(in *policies.Input) { in.Caller.Team, in.Caller.Key = "other", "k2" }, false},
		{"another team", func(in *policies.Input) { in.Caller.Team = "other" }, false},
		{"by role", func(in *policies.Input) { in.Caller.Team, in.Caller.Roles = "other", []string{"viewer", "admin"} }, true},
		{"another role", func(in *policies.Input) { in.Caller.Team, in.Caller.Roles = "other", []string{"operator"} }, false},
		{"another operation", func(in *policies.Input) { in.Request.Operation = "updatePod" }, false},
		{"another shape", func(in *policies.Input) {
			in.Resource.After = map[string]any{"gpu": map[string]any{"id": "NVIDIA H100 80GB HBM3", "count": 3}}
		}, false},
		{"another GPU", func(in *policies.Input) {
			in.Resource.After = map[string]any{"gpu": map[string]any{"id": "NVIDIA H200", "count": 1}}
		}, false},
		{"a field is missing", func(in *policies.Input) {
			in.Resource.After = map[string]any{"gpu": map[string]any{"id": "NVIDIA H100 80GB HBM3"}}
		}, false},
		{"too dear", func(in *policies.Input) { in.Cost.Hourly = 6_000_001 }, false},
		{"price unknown", func(in *policies.Input) { in.Cost.Known = false }, false},
		{"first instant", func(in *policies.Input) { in.Time = noon().Add(-time.Hour) }, true},
		{"too early", func(in *policies.Input) { in.Time = noon().Add(-time.Hour - 1) }, false},
		{"last instant", func(in *policies.Input) { in.Time = noon().Add(time.Hour - 1) }, true},
		{"expired", func(in *policies.Input) { in.Time = noon().Add(time.Hour) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := call(t, "createPod", `{"gpu":{"id":"NVIDIA H100 80GB HBM3","count":2}}`)
			tt.change(in)
			d, err := e.Decide(t.Context(), "acme", in)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(d.Deny) == 0 && len(d.Excepted) == 1; got != tt.lifted {
				t.Fatalf("lifted: got %t (%+v), want %t", got, d, tt.lifted)
			}
			if !tt.lifted {
				return
			}
			got := d.Excepted[0]
			got.Violation.Message = ""
			want := policies.Excepted{
				Violation: policies.Violation{Policy: "gpu_allow_list", Pointer: "/gpu/id", Doc: "docs/policies/gpu_allow_list.md"},
				Exception: "x1", Until: noon().Add(time.Hour), Reason: "benchmark", GrantedBy: "ada",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("excepted (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExceptionLiftsMutations: a lifted policy forces no value either.
func TestExceptionLiftsMutations(t *testing.T) {
	x := h100()
	x.Policy = "field_values"
	cfg := policies.Config{Policies: []policies.Entry{{
		Policy: "field_values",
		Params: map[string]any{"force": map[string]any{"createPod": map[string]any{"/cloud": "SECURE"}}},
	}}}
	in := call(t, "createPod", `{"gpu":{"id":"NVIDIA H100 80GB HBM3","count":2},"cloud":"COMMUNITY"}`)
	in.Cost = policies.Cost{Known: true}
	for _, list := range [][]policies.Exception{nil, {x}} {
		cfg.Exceptions = list
		d, err := newEngine(t, cfg).Decide(t.Context(), "acme", in)
		if err != nil || len(d.Mutate) != 1-len(list) {
			t.Errorf("%d exceptions: got %+v, %v", len(list), d.Mutate, err)
		}
	}
}

func TestExceptionFaults(t *testing.T) {
	cfg := policies.Config{Exceptions: []policies.Exception{
		{}, {
			ID: "x", Policy: "p", Keys: []string{"k"}, From: noon(), Until: noon(), Reason: "r", GrantedBy: "g",
			Operations: []string{"fly"}, Where: map[string][]any{"gpu": {func() {}}}, MaxUSDPerHour: "-1",
		}, {ID: "x", Policy: "p", Keys: []string{"k"}, Until: noon(), Reason: "r", GrantedBy: "g"},
	}}
	err := policies.Validate(&cfg)
	if err == nil {
		t.Fatal("got no error")
	}
	want := []string{
		"exceptions[0].id: is required", "exceptions[0].policy: is required",
		"exceptions[0].reason: is required", "exceptions[0].granted_by: is required",
		"exceptions[0]: must set at least one of teams, keys and roles", "exceptions[0].until: is required",
		"exceptions[1].until: must be after from", `exceptions[1].operations: unknown operation "fly"`,
		`exceptions[1].where: "gpu" does not point into the body`,
		"exceptions[1].where.gpu: values of type func() are not allowed",
		`exceptions[1].max_usd_per_hour: must be an amount in USD, got "-1"`,
		`exceptions[2].id: "x" is used twice`,
		`exceptions[1].policy: unknown policy "p"`, `exceptions[2].policy: unknown policy "p"`,
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// TestExceptionsFromOwnPolicies: that there is nothing to lift is seen as soon as
// the organisation's own policies are known.
func TestExceptionsFromOwnPolicies(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "mine.rego", denyAbove("2"))
	x := h100()
	x.Policy = "mine"
	cfg := policies.Config{Directory: files.UnrestrictedPath(dir), Exceptions: []policies.Exception{x}}
	newEngine(t, cfg)
	cfg.Exceptions[0].Policy = "mien"
	if err := policies.Validate(&cfg); err != nil {
		t.Errorf("without reading files: %v", err)
	}
	_, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{"acme": cfg}, policies.Deps{})
	const want = `org acme: exceptions[0].policy: unknown policy "mien", did you mean "mine"?`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	pending := policies.Config{
		Bundle:     &policies.Bundle{URL: egress.UnrestrictedURL("http://127.0.0.1:1/"), AllowUnsigned: true},
		Exceptions: cfg.Exceptions,
	}
	newEngine(t, pending)
}
