package filter

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// takes is a counter that admits everything and notes its questions.
type takes []ratelimit.Take

// Take implements Counter.
func (c *takes) Take(_ context.Context, t ratelimit.Take) (ratelimit.Decision, error) {
	*c = append(*c, t)
	return ratelimit.Decision{Allowed: true}, nil
}

// A class is counted for those who share its quota, and not at all for callers who
// are exempt.
func TestClassesCountWhomTheySay(t *testing.T) {
	providers, err := telemetry.NewProviders(t.Context(), settings.Telemetry{}, telemetry.Process{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = providers.Shutdown(context.WithoutCancel(t.Context())) })
	recorder, err := telemetry.NewRecorder(nil, providers.Tracer(), providers.Meter(), nil)
	if err != nil {
		t.Fatal(err)
	}
	limit := ratelimit.Limit{Minute: 10}
	f := &Count{Recorder: recorder}
	tenant := &Tenant{ID: "acme", Limits: map[ratelimit.Ref]ratelimit.Limit{{Kind: ratelimit.KindKey, ID: "ann"}: limit}, Classes: map[string][]Class{"createPod": {
		{ID: "k", Per: ratelimit.KindKey, Limit: limit, Cost: 3},
		{ID: "t", Per: ratelimit.KindTeam, Limit: limit},
		{ID: "o", Per: ratelimit.KindOrg, Limit: limit},
	}}}
	for _, tt := range []struct {
		name      string
		operation string
		exempt    bool
		nested    bool
		want      []string
	}{
		{"a caller", "createPod", false, false, []string{"key:ann x0", "class:k/key/ann x3", "class:t/team/research x0", "class:o x0"}},
		{"another operation", "listPods", false, false, []string{"key:ann x0"}},
		{"an exempt caller", "createPod", true, false, nil},
		{"a call that a legacy request became", "createPod", false, true, []string{"class:k/key/ann x3", "class:t/team/research x0", "class:o x0"}},
		{"another such", "listPods", false, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked takes
			ex := &Exchange{
				Tenant: tenant, Ports: &Ports{Counter: &asked}, Event: &telemetry.Event{}, Operation: &schema.Operation{ID: tt.operation, Mutates: true}, Path: Path{Nested: tt.nested}, Admission: Admission{counted: tt.nested},
				Caller: &identity.Caller{Org: "acme", Key: "ann", Team: "research", Exempt: tt.exempt},
			}
			if err := f.Request(t.Context(), ex); err != nil {
				t.Fatal(err)
			}
			if len(asked) > 1 {
				t.Errorf("asked %d times, want once, so that it is one step", len(asked))
			}
			var got []string
			for _, take := range asked {
				if take.Org != "acme" || take.Class != ratelimit.ClassWrite {
					t.Errorf("asked for %+v, want scopes of acme, as a write", take)
				}
				for _, s := range take.Scopes {
					got = append(got, fmt.Sprintf("%s x%d", s.Ref(), s.Cost))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("scopes (-want +got):\n%s", diff)
			}
		})
	}
}
