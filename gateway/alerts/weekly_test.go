package alerts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

func TestWeekly(t *testing.T) {
	t.Parallel()
	budget := []money.Budget{{Name: "per_month", Limit: "100", Used: "80", Reserved: "0", Left: "20"}}
	ledger := &money.Ledger{Scopes: []money.Balance{{Scope: "organisation", Budgets: budget}, {Scope: "team research", Budgets: budget}, {Scope: "key ann", Budgets: budget}}}
	forecasts := &money.Forecasts{Scopes: []money.Forecast{{Scope: "organisation", Month: money.Estimate{Expected: "300"}}, {Scope: "team research", Month: money.Estimate{Expected: "200"}}}}
	idle := &money.IdleList{Resources: []money.IdleResource{{ID: "p1", Team: "research", Idle: money.Idle{PerMonth: "10"}}, {ID: "p2", Idle: money.Idle{PerMonth: "5.5"}}, {ID: "p3", Team: "research", Idle: money.Idle{PerMonth: "7", SnoozedUntil: new(time.Now())}}}}
	shares := map[string][]money.Cost{
		"":         {{CostGroup: money.CostGroup{Team: "research"}, USD: "12"}, {USD: "0.5"}},
		"research": {{CostGroup: money.CostGroup{Key: "ann"}, USD: "12"}},
	}
	counts := []decisions.PolicyCount{
		{Policy: "gpu_count", Verdict: "denies", Team: "research", Calls: 2},
		{Policy: "gpu_count", Verdict: "denies", Team: "ops", Calls: 1},
		{Policy: "disk", Verdict: "denies", Team: "ops", Calls: 9},
		{Policy: "disk", Verdict: "warns", Team: "ops", Calls: 99},
	}
	for team, want := range map[string]string{
		"": `*acme: 2026-11-16 to 2026-11-22*
Cost: 1,234.56 USD (previous week 10.00); this month about 300.00
Teams: research 12.00; no owner 0.50
Most expensive: train p1 (NVIDIA L4, research) 12.00
Budgets: organisation per_month 80 %, 20.00 left; team research per_month 80 %, 20.00 left
Idle: 2 resources, 15.50 USD a month
Refused by policies: disk 9; gpu_count 3`,
		"research": `*acme, team research: 2026-11-16 to 2026-11-22*
Cost: 1,234.56 USD (previous week 10.00); this month about 200.00
Keys: ann 12.00
Most expensive: train p1 (NVIDIA L4, research) 12.00
Budgets: team research per_month 80 %, 20.00 left
Idle: 1 resources, 10.00 USD a month
Refused by policies: gpu_count 2`,
	} {
		w := newWeekly("acme", team, time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC))
		w.addShares(&money.Costs{Total: "1234.5600", Rows: shares[team]})
		w.Before = "10"
		w.addMostExpensive(&money.Costs{Rows: []money.Cost{{
			CostGroup: money.CostGroup{Name: "train", Resource: "p1", Team: "research", GPU: "NVIDIA L4"}, USD: "12",
		}}})
		w.addBudgets(ledger)
		w.addForecast(forecasts)
		w.Idle = idle.Sum("acme", team)
		w.addDenied(counts)
		if diff := cmp.Diff(want, w.Text()); diff != "" {
			t.Errorf("team %q (-want +got):\n%s", team, diff)
		}
	}
}
