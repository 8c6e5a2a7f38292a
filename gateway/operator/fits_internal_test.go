package operator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

func someBudgets() []money.BudgetRow {
	b := func(kind, id, team, name, limit, used, left, usedUp string) money.BudgetRow {
		r := money.BudgetRow{Kind: kind, ID: id, Team: team, Scope: strings.TrimSpace(kind + " " + id), Budget: money.Budget{Name: name, Limit: limit, Used: used, Reserved: "0", Left: left, UsedUp: usedUp}}
		return r
	}
	return []money.BudgetRow{
		b("organisation", "", "", "per_month", "1000", "100", "900", "2026-11-29"),
		b("team", "ops", "ops", "per_hour", "10", "9", "1", ""),
		b("team", "research", "research", "per_month", "100", "100", "0", ""),
		b("team", "research", "research", "gpus", "8", "1", "7", ""),
		b("key", "ann", "research", "per_day", "10", "1", "9", "2026-11-24"),
	}
}

func TestGPUsThatFit(t *testing.T) {
	t.Parallel()
	known := func(price int64) catalog.Offer {
		return catalog.Offer{Offered: true, Price: catalog.Price{Known: true, PerHour: catalog.Money(price)}}
	}
	gpus := []catalog.GPU{{ID: "H100", Secure: known(3_000_000)}, {ID: "L4", Secure: known(500_000), Community: known(400_000)}, {ID: "unknown"}}
	for _, tt := range []struct {
		p                     fitting
		left, budget, l4, h1c string
		atOnce                int64
	}{
		{fitting{}, "900", "organisation, per_month", "2250.0", "300.0", -1},
		{fitting{Team: "ops"}, "900", "organisation, per_month", "2250.0", "300.0", 2},
		{fitting{Team: "research"}, "0", "team research, per_month", "0.0", "0.0", 7},
		{fitting{Key: "ann"}, "0", "team research, per_month", "0.0", "0.0", 7},
	} {
		budgets, _ := tt.p.budgets(someBudgets())
		got := fit(budgets, gpus, time.Time{})
		if len(got.GPUs) != 2 || got.GPUs[0].GPU != "L4" || got.GPUs[0].Cloud != "community" {
			t.Fatalf("%+v: %+v", tt.p, got.GPUs)
		}
		atOnce := int64(-1)
		if n := got.GPUs[0].AtOnce; n != nil {
			atOnce = *n
		}
		if got.Left != tt.left || got.Budget != tt.budget || got.GPUs[0].Hours != tt.l4 || got.GPUs[1].Hours != tt.h1c || atOnce != tt.atOnce {
			t.Errorf("%+v: %+v, at once %d; want %+v", tt.p, got, atOnce, tt)
		}
		hourly := ""
		if tt.p.Team == "ops" {
			hourly = "team ops, per_hour"
		}
		if got.HourlyBudget != hourly {
			t.Errorf("%+v: the hourly budget is %q, want %q", tt.p, got.HourlyBudget, hourly)
		}
	}
	if got := fit(nil, gpus, time.Time{}); got.Left != "" || got.GPUs[0].Hours != "" || got.GPUs[0].AtOnce != nil {
		t.Errorf("without budgets: %+v", got)
	}
}

// GPU types and clouds that an enforced allow-list denies to a team do not fit.
func TestGPUsThatATeamMayUse(t *testing.T) {
	t.Parallel()
	offer := func(price int64) catalog.Offer {
		return catalog.Offer{Offered: true, Price: catalog.Price{Known: true, PerHour: catalog.Money(price)}}
	}
	gpus := []catalog.GPU{{ID: "H100", Secure: offer(3_000_000)}, {ID: "L4", Secure: offer(500_000), Community: offer(400_000)}, {ID: "unknown"}}
	list := func(mode policyconfig.Mode, byOffer map[string]any, teams ...string) policyconfig.Entry {
		return policyconfig.Entry{Policy: "gpu_allow_list", Mode: mode, Teams: teams, Params: map[string]any{"by_offer": byOffer}}
	}
	secure := map[string]any{"SECURE": []any{"L4"}}
	org := &settings.Org{Policies: policyconfig.Config{Policies: []policyconfig.Entry{
		list("", secure, "research"), list("shadow", nil, "ml"), {Policy: "gpu_count"},
	}}}
	for team, want := range map[string]string{"research": "L4 secure, 1 denied", "ml": "H100 secure L4 community, 0 denied", "": "H100 secure L4 community, 0 denied"} {
		left, denied := permitted(org, team, gpus)
		var got []string
		for i := range left {
			_, cloud := cheapest(&left[i])
			got = append(got, left[i].ID+" "+cloud)
		}
		if text := fmt.Sprintf("%s, %d denied", strings.Join(got, " "), denied); text != want {
			t.Errorf("%q: %s, want %s", team, text, want)
		}
	}
	if !gpus[1].Community.Offered {
		t.Error("the price list was changed")
	}
}

// A budget limits how long GPUs run only until it resets.
func TestGPUsThatFitUntilTheReset(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 22, 0, 0, 0, time.UTC)
	reset := now.Add(26 * time.Hour)
	budget := func(name, left string, ends *time.Time) money.BudgetRow {
		return money.BudgetRow{Scope: "organisation", Kind: "organisation", Budget: money.Budget{Name: name, Left: left}, Ends: ends}
	}
	gpus := []catalog.GPU{
		{ID: "L4", Secure: catalog.Offer{Offered: true, Price: catalog.Price{Known: true, PerHour: 400_000}}},
		{ID: "H200", Secure: catalog.Offer{Offered: true, Price: catalog.Price{Known: true, PerHour: 4_000_000}}},
	}
	for _, tt := range []struct {
		budgets   []money.BudgetRow
		l4, h200  string
		nl4, h2no int64
	}{
		{[]money.BudgetRow{budget("per_month", "52", &reset)}, "26.0", "13.0", 5, 0},
		{[]money.BudgetRow{budget("per_month", "52", &reset), budget("gpus", "2", nil)}, "26.0", "13.0", 2, 0},
		{[]money.BudgetRow{budget("per_month", "52", &reset), budget("per_hour", "1.2", nil)}, "26.0", "13.0", 3, 0},
		{[]money.BudgetRow{budget("total", "52", nil)}, "130.0", "13.0", -1, -1},
	} {
		got := fit(tt.budgets, gpus, now)
		count := func(n *int64) int64 {
			if n == nil {
				return -1
			}
			return *n
		}
		l4, h200 := got.GPUs[0], got.GPUs[1]
		if l4.Hours != tt.l4 || h200.Hours != tt.h200 || count(l4.UntilReset) != tt.nl4 || count(h200.UntilReset) != tt.h2no {
			t.Errorf("%+v: %+v %+v, want %+v", tt.budgets, l4, h200, tt)
		}
	}
}

// Running resources use up part of the budget before it resets. What they leave over fits, and nothing fits if they use up all of it.
func TestRunningResourcesUseTheBudget(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	reset := now.Add(10 * time.Hour)
	budget := func(scope, name, left, free, perHour string, ends *time.Time) money.BudgetRow {
		return money.BudgetRow{Scope: scope, Budget: money.Budget{Name: name, Left: left}, Free: free, PerHour: perHour, Ends: ends}
	}
	gpus := []catalog.GPU{{ID: "L4", Secure: catalog.Offer{Offered: true, Price: catalog.Price{Known: true, PerHour: 400_000}}}}
	zero, two := int64(0), int64(2)
	org := budget("organisation", "per_month", "230", "200", "1.7", &reset)
	for _, tt := range []struct {
		budgets             []money.BudgetRow
		budget, free, hours string
		atReset             *int64
	}{
		{[]money.BudgetRow{org, budget("team a", "per_month", "14.6", "-8.76", "1.3", &reset)}, "team a, per_month", "-8.76", "0.0", &zero},
		{[]money.BudgetRow{org, budget("team a", "per_month", "20", "8.2", "1.3", &reset)}, "team a, per_month", "8.2", "10.0", &two},
		{[]money.BudgetRow{org, budget("team a", "per_month", "14.6", "2", "1.3", &reset)}, "team a, per_month", "2", "5.0", &zero},
		{[]money.BudgetRow{budget("team a", "per_day", "20", "-1", "2", &reset), budget("key b", "per_day", "9", "-3", "2", &reset)}, "key b, per_day", "-3", "0.0", &zero},
		{[]money.BudgetRow{budget("team a", "total", "17.1", "", "1.3", nil)}, "team a, total", "", "10.0", nil},
	} {
		got := fit(tt.budgets, gpus, now)
		g := got.GPUs[0]
		if got.Budget != tt.budget || got.Free != tt.free || g.Hours != tt.hours || (g.UntilReset == nil) != (tt.atReset == nil) || g.UntilReset != nil && *g.UntilReset != *tt.atReset {
			t.Errorf("%+v: %+v, want %+v", tt.budgets, got, tt)
		}
	}
}
