package decisions

import (
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// counting returns the decisions of a process that shares a store.
func counting(t *testing.T, server *miniredis.Miniredis, now *time.Time) *Decisions {
	t.Helper()
	deps := Deps{Current: configured(now), Logger: slog.New(slog.DiscardHandler)}
	return &Decisions{
		deps: deps, History: explain.NewHistory(4, nil),
		counter: newCounter(NewCountStore(redistest.Once(t, server.Addr()), "t:"), deps.Logger),
	}
}

// refuse ends an exchange with a refusal.
func refuse(d *Decisions, e telemetry.Event) {
	e.Org, e.Start, e.Method = "acme", d.deps.Now(), "POST"
	d.Ended(&filter.Exchange{Caller: &identity.Caller{Org: "acme"}, Event: &e})
}

// Each refusal of today is counted once: more than are kept, of all processes, with a store that was away, and without those of yesterday or of dry
// runs.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	server, now := miniredis.RunT(t), time.Date(2026, 11, 20, 23, 59, 0, 0, time.UTC)
	blue, green := counting(t, server, &now), counting(t, server, &now)
	limited := telemetry.Event{Refusal: string(problem.RateLimited), DecisionID: "1"}
	refuse(blue, limited)
	blue.counter.write(t.Context(), blue.today)
	now = now.Add(time.Hour)
	for range 2000 {
		refuse(blue, limited)
		refuse(blue, telemetry.Event{DryRun: &telemetry.Prediction{Refusal: string(problem.BudgetExceeded)}})
	}
	server.SetError("LOADING")
	blue.counter.write(t.Context(), blue.today)
	own := []RefusalCount{{Org: "acme", Reason: "limit", Calls: 2000, Decision: "1"}}
	if got, err := blue.RefusalCounts(t.Context(), "acme"); err == nil || !cmp.Equal(got, own) {
		t.Errorf("without the store: %v (%v), want an error and %v", got, err, own)
	}
	server.SetError("")
	limited.DecisionID = "2"
	refuse(green, limited)
	refuse(green, telemetry.Event{Refusal: string(problem.Overloaded), DecisionID: "3"})
	for range 2 { // a write that is repeated adds nothing
		blue.counter.unstored[orgDay{"acme", "2026-11-21"}] = true
		blue.counter.write(t.Context(), blue.today)
		green.counter.write(t.Context(), green.today)
	}
	want := []RefusalCount{{Org: "acme", Reason: "limit", Calls: 2001, Decision: "2"}, {Org: "acme", Reason: "overloaded", Calls: 1, Decision: "3"}}
	for name, d := range map[string]*Decisions{"blue": blue, "green": green, "another": counting(t, server, &now)} {
		got, err := d.RefusalCounts(t.Context(), "acme")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if n := len(blue.counter.refused); n != 1 {
		t.Errorf("%d days are kept, want one", n)
	}
	server.FlushAll()
	for _, d := range []*Decisions{blue, green} {
		d.counter.rewrite()
		d.counter.write(t.Context(), d.today)
	}
	got, err := counting(t, server, &now).RefusalCounts(t.Context(), "acme")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("after the store was emptied: %v (-want +got):\n%s", err, diff)
	}
}
