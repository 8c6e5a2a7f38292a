package ui

import "github.com/tollgate-dev/tollgate/gateway/money"

func hostileCosts() part[money.Costs] {
	costs := of[money.Costs]()
	costs.Is.Rows[0].USD, costs.Is.Rows[1].USD = "2", "1"
	return costs
}

func hostileSpend() spendData {
	costs := hostileCosts()
	sums := groups(&costs.Is, &costs.Is, "team,label:x")
	return spendData{
		Costs: costs, Before: costs, Forecasts: of[money.Forecasts](), Groups: sums, Shown: excerpt[sum]{Rows: sums},
		Chart: newChart(&costs.Is, "team,label:x", sums), By: hostile, Bucket: hostile, CSV: "/ui/cost.csv?" + hostile,
	}
}

func hostileCost() map[string]any {
	ledger := of[money.Ledger]()
	return map[string]any{
		"cost": hostileSpend(),
		"resources": resourceData{
			Ledger: ledger, Shown: excerpt[money.Resource]{Rows: ledger.Is.Resources, Before: hostile, After: hostile}, Holds: excerpt[money.Hold]{Rows: ledger.Is.Holds},
			Idle: of[money.IdleList](), idle: map[string]money.IdleResource{hostile: filled[money.IdleResource]().(money.IdleResource)},
		},
	}
}
