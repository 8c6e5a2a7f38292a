package ui

// costPages returns the pages in the Cost group.
func costPages() []*page {
	return []*page{
		{name: "cost", title: "Cost explorer", asks: history, group: groupCost, icon: "chart", period: last30Days, load: costExplorer},
		{name: "budgets", title: "Budgets", asks: budgetRow, group: groupCost, icon: "wallet", load: loadBudgets},
		{name: "resources", title: "Resources", asks: resourceRow, group: groupCost, icon: "server", load: loadResources},
		{name: "reservations", title: "Reservations", under: "resources", asks: holdRow, group: groupCost, load: loadReservations},
		{
			name: "resource", title: "Resource", at: "resources/{id}", under: "resources", asks: resourceRow, group: groupCost,
			period: last30Days, load: loadResource,
		},
		{name: "idle", title: "Idle", asks: idle, group: groupCost, icon: "moon", load: loadIdle},
		{name: "search", title: "Search", asks: searchRow, load: loadSearch},
	}
}
