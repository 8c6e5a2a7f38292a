package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// enforced is a platform that stops pods, and a receiver of what was announced and stopped.
type enforced struct {
	*reconciled

	books *ledger.Components
	log   []string
}

func newEnforced(t *testing.T, p *ledger.Plan) *enforced {
	t.Helper()
	e := &enforced{reconciled: newReconciled(t)}
	e.Budgets = p
	e.books = ledger.New(e.deps(e))
	return e
}

// pod adds a running pod of an owner that costs so many micro-dollars per hour. Each pod is newer than the pods before it.
func (e *enforced) pod(id string, o ledger.Owner, burn int64) {
	e.Helper()
	a := ledger.Amounts{ledger.Burn: burn, ledger.GPUs: 1, ledger.Pods: 1}
	if _, err := e.Adjust(e.Context(), org, &ledger.Adjustment{Kind: "pod", Resource: id, Amounts: a, Owner: &o}); err != nil {
		e.Fatal(err)
	}
	for i := range e.found {
		e.found[i].Age += 60_000
	}
	e.found = append(e.found, ledger.PlatformResource{Kind: operation.KindPod, ID: id, Amounts: a, Priced: true, Stoppable: true, Age: 60_000})
}

// List implements ledger.Platform.
func (e *enforced) List(context.Context, string, func(operation.Kind) bool) ([]ledger.PlatformResource, error) {
	return slices.Clone(e.found), nil
}

// Announce implements ledger.Events.
func (e *enforced) Announce(_ context.Context, c *ledger.Cause, _ *ledger.Record, ended func(error)) {
	e.log = append(e.log, fmt.Sprintf("announced %s %s", c.Excess.Scope, ledger.CeilingName(c.Excess.Ceiling)))
	ended(nil)
}

// Stopped implements ledger.Events.
func (e *enforced) Stopped(_ context.Context, c *ledger.Cause, r *ledger.Record) {
	e.log = append(e.log, fmt.Sprintf("stopped %s for %s %s", r.ID, c.Excess.Scope, ledger.CeilingName(c.Excess.Ceiling)))
}

// StopPod implements ledger.Platform.
func (e *enforced) StopPod(_ context.Context, _, id string) (ledger.Amounts, error) {
	i := slices.IndexFunc(e.found, func(f ledger.PlatformResource) bool { return f.ID == id })
	e.found[i].Amounts, e.found[i].Stoppable = stopped, false
	return stopped, nil
}

// after makes a pass later and returns what it has announced and stopped.
func (e *enforced) after(d time.Duration) (log []string) {
	e.Helper()
	e.now = e.now.Add(d)
	if err := e.passOf(e.books); err != nil {
		e.Fatal(err)
	}
	log, e.log = e.log, nil
	return log
}

// wants makes a pass later, which must announce and stop want.
func (e *enforced) wants(d time.Duration, want ...string) {
	e.Helper()
	if diff := cmp.Diff(want, e.after(d)); diff != "" {
		e.Errorf("%s, want-, got+:\n%s", e.now.Format(time.TimeOnly), diff)
	}
}

// over is a plan for the team of owner.
func over(b ledger.Budget, notice time.Duration) *ledger.Plan {
	return &ledger.Plan{
		Teams:       map[string]ledger.Budget{"research": b},
		TeamActions: map[string]ledger.OverBudgetAction{"research": {Stop: "newest", Notice: notice}},
	}
}

// Each exceeded budget of a scope has its own notice, and stops only what it needs.
func TestEachBudgetHasItsOwnNotice(t *testing.T) {
	e := newEnforced(t, over(ledger.Budget{PerHour: 1_000_000, PerDay: 200_000}, 10*time.Minute))
	for _, id := range []string{"a", "b", "c"} {
		e.pod(id, owner, 430_000)
	}
	e.wants(0, "announced team research per_hour")
	e.wants(9*time.Minute+30*time.Second, "announced team research per_day")
	e.wants(30*time.Second, "stopped c for team research per_hour")
	e.wants(time.Minute)
	e.wants(8*time.Minute+30*time.Second, "stopped b for team research per_day", "stopped a for team research per_day")
	e.wants(time.Minute)
}

// A notice ends with the action that it announced, and is sent again after a long time without passes.
func TestOldNoticesAreSentAgain(t *testing.T) {
	limit := ledger.Budget{PerHour: 400_000}
	for name, between := range map[string]func(e *enforced){
		"the action was removed and set again": func(e *enforced) {
			e.Budgets = &ledger.Plan{Teams: map[string]ledger.Budget{"research": limit}}
			e.wants(time.Minute)
			e.Budgets = over(limit, 30*time.Minute)
		},
		"nothing was reconciled for a day": func(e *enforced) { e.now = e.now.Add(24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnforced(t, over(limit, 30*time.Minute))
			e.pod("a", owner, 430_000)
			e.wants(0, "announced team research per_hour")
			between(e)
			e.wants(time.Minute, "announced team research per_hour")
			e.wants(29 * time.Minute)
			e.wants(time.Minute, "stopped a for team research per_hour")
		})
	}
}

// A pod that was stopped for one budget also reduces the excess of other budgets. Team budgets are handled before those of the organisation.
func TestStopsCountForAllBudgets(t *testing.T) {
	other := ledger.Owner{Team: "training", Key: "bob"}
	for name, tt := range map[string]struct {
		// teams have a limit per hour, as has the organisation. They stop the most expensive pods first, and the organisation the newest.
		teams map[string]ledger.Budget
		org   ledger.Budget
		want  []string
	}{
		"the team's stop suffices": {
			teams: map[string]ledger.Budget{"research": {PerHour: 1_000_000}}, org: ledger.Budget{PerHour: 2_000_000},
			want: []string{"stopped expensive for team research per_hour"},
		},
		"the organisation needs one more": {
			teams: map[string]ledger.Budget{"research": {PerHour: 1_000_000}}, org: ledger.Budget{PerHour: 1_000_000},
			want: []string{"stopped expensive for team research per_hour", "stopped new for organisation per_hour"},
		},
		"GPUs and the rate": {
			teams: map[string]ledger.Budget{"research": {PerHour: 1_500_000, GPUs: 2}},
			want:  []string{"stopped expensive for team research per_hour"},
		},
		"the organisation stops all": {
			teams: map[string]ledger.Budget{"research": {PerHour: 1_000_000}}, org: ledger.Budget{PerHour: 10_000_000, PerDay: 10},
			want: []string{
				"stopped expensive for team research per_hour", "stopped new for organisation per_day", "stopped cheap for organisation per_day",
				"stopped late for organisation per_day",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnforced(t, &ledger.Plan{
				Teams: tt.teams, TeamActions: map[string]ledger.OverBudgetAction{"research": {Stop: "most_expensive", Notice: time.Minute}},
				Org: tt.org, OrgAction: ledger.OverBudgetAction{Stop: "newest", Notice: time.Minute},
			})
			e.pod("late", owner, 300_000)
			e.pod("cheap", owner, 400_000)
			e.pod("expensive", owner, 900_000)
			e.pod("new", other, 500_000)
			e.now = e.now.Add(time.Minute)
			for _, s := range e.after(0) {
				if !strings.HasPrefix(s, "announced") {
					t.Error(s)
				}
			}
			running := slices.Clone(e.found)
			e.wants(time.Minute, tt.want...)
			after := e.found
			e.found = running // the list lags behind
			e.wants(time.Second)
			e.found = after
			e.wants(listLag)
			e.wants(listLag)
			if noticed, err := e.Noticed(t.Context(), org); err != nil || tt.org.PerDay == 0 && len(noticed) > 0 {
				t.Errorf("%v (%v) left over", noticed, err)
			}
		})
	}
}

// listLag is longer than the platform's lists lag behind.
const listLag = 11 * time.Second
