package filter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	meternoop "go.opentelemetry.io/otel/metric/noop"
	tracernoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
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
	recorder := telemetry.NewRecorder(nil, providers.Tracer(), providers.Meter(), nil)
	limit := ratelimit.Limit{Minute: 10}
	f := &RateLimit{Recorder: recorder}
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
				Tenant: tenant, Ports: &Ports{Counter: &asked}, Event: &telemetry.Event{}, Operation: &schema.Operation{ID: tt.operation, Mutates: true}, Progress: Progress{Nested: tt.nested}, Admission: Admission{counted: tt.nested},
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

// full is a counter that refuses everything because the windows are full.
type full []ratelimit.Violation

// Take implements Counter.
func (c full) Take(context.Context, ratelimit.Take) (ratelimit.Decision, error) {
	return ratelimit.Decision{Violated: c}, nil
}

// A refusal names the windows as the headers do, and the class whose quota is used up.
func TestRefusalNamesTheClass(t *testing.T) {
	recorder := telemetry.NewRecorder(slog.New(slog.DiscardHandler), tracernoop.NewTracerProvider(), meternoop.NewMeterProvider(), time.Now)
	key := ratelimit.Violation{Scope: ratelimit.Ref{Kind: ratelimit.KindKey, ID: "ann"}, Window: "hour", Name: "hour"}
	org := ratelimit.Violation{Scope: ratelimit.Ref{Kind: ratelimit.KindOrg, ID: "acme"}, Window: "hour", Name: "hour"}
	class := ratelimit.Violation{Scope: ratelimit.Ref{Kind: ratelimit.KindClass, ID: "creates/team/research"}, Window: "hour", Name: "creates-hour"}
	for name, tt := range map[string]struct {
		violated full
		detail   string
		windows  []string
	}{
		"class": {full{class}, "rate limit exceeded for the hour window of the class creates/team/research", []string{"creates-hour"}},
		"all":   {full{key, org, class}, "rate limit exceeded for the hour window of the key", []string{"hour", "creates-hour"}},
	} {
		t.Run(name, func(t *testing.T) {
			ex := &Exchange{
				Tenant: &Tenant{ID: "acme", Limits: map[ratelimit.Ref]ratelimit.Limit{key.Scope: {Hour: 1}}}, Ports: &Ports{Counter: tt.violated},
				Event: &telemetry.Event{}, Caller: &identity.Caller{Org: "acme", Key: "ann"},
			}
			err := RateLimit{Recorder: recorder}.Request(t.Context(), ex)
			var p *problem.Problem
			if !errors.As(err, &p) || p.Detail != tt.detail || !slices.Equal(p.Windows, tt.windows) {
				t.Errorf("refusal %+v, want detail %q and windows %q", p, tt.detail, tt.windows)
			}
		})
	}
}

// While the store is away, calls that lower cost pass whatever the failure policies say; the effect
// of a call by its operation and its body decides.
func TestSpendingBefore(t *testing.T) {
	for name, c := range map[string]struct {
		ex   Exchange
		want costEffect
	}{
		"a delete":               {Exchange{Operation: &schema.Operation{ID: "deleteCluster"}}, lowers},
		"a stop":                 {Exchange{Operation: &schema.Operation{ID: "podAction"}, Body: Body{HasDoc: true, Doc: map[string]any{"action": "stop"}}}, lowers},
		"a start":                {Exchange{Operation: &schema.Operation{ID: "podAction"}, Body: Body{HasDoc: true, Doc: map[string]any{"action": "start"}}}, doesNotLower},
		"an action before body":  {Exchange{Operation: &schema.Operation{ID: "podAction"}}, undecided},
		"a job is cancelled":     {Exchange{Operation: &schema.Operation{ID: "cancelJob"}}, lowers},
		"a queue is purged":      {Exchange{Operation: &schema.Operation{ID: "purgeQueue"}}, lowers},
		"a job":                  {Exchange{Operation: &schema.Operation{ID: "run"}}, doesNotLower},
		"a create":               {Exchange{Operation: &schema.Operation{ID: "createPod"}}, doesNotLower},
		"an update with a price": {Exchange{Operation: &schema.Operation{ID: "updateEndpoint"}}, undecided},
		"an update without one":  {Exchange{Operation: &schema.Operation{ID: "updateTemplate"}}, doesNotLower},
		"a read":                 {Exchange{Operation: &schema.Operation{ID: "listPods"}}, doesNotLower},
		"a read for a change":    {Exchange{Operation: &schema.Operation{ID: "getPod"}, Admission: Admission{mutates: true}}, lowers},
		"v1, a read":             {Exchange{Dialect: route.V1, In: Inbound{Method: "GET"}}, doesNotLower},
		"v1, a change":           {Exchange{Dialect: route.V1, In: Inbound{Method: "PATCH"}}, undecided},
		"GraphQL":                {Exchange{Dialect: route.GraphQL, In: Inbound{Method: "POST"}}, undecided},
	} {
		t.Run(name, func(t *testing.T) {
			if got := effectBeforePolicies(&c.ex); got != c.want {
				t.Errorf("effect %d, want %d", got, c.want)
			}
		})
	}
}
