package operator

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/policies/catalog"
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
		got := fit(tt.p.budgets(someBudgets()), gpus)
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
	}
	if got := fit(nil, gpus); got.Left != "" || got.GPUs[0].Hours != "" || got.GPUs[0].AtOnce != nil {
		t.Errorf("without budgets: %+v", got)
	}
}
