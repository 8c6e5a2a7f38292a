package ui

import "slices"

// Headings of the navigation.
const (
	groupCost    = "Cost"
	groupTraffic = "Traffic"
	groupPolicy  = "Policy"
	groupAccess  = "Access"
	groupSystem  = "System"
)

// pages returns the pages of operators in the order of the navigation. Pages of one group are adjacent.
func pages() []*page {
	return slices.Concat(
		[]*page{
			{name: "overview", title: "Overview", at: first, asks: overviewRow, icon: "home", period: last30Days, counts: true, load: loadOverview},
		},
		costPages(), trafficPages(), policyPages(), accessPages(), systemPages(),
	)
}

// Patterns of endpoints that several pages call.
const (
	overviewRow  = "GET /admin/overview"
	history      = "GET /admin/spend/history"
	forecastRow  = "GET /admin/spend/forecast"
	compareRow   = "GET /admin/spend/compare"
	exportRow    = "GET /admin/spend/export"
	budgetRow    = "GET /admin/spend/budgets"
	fitsRow      = "GET /admin/spend/fits"
	resourceRow  = "GET /admin/spend/resources"
	holdRow      = "GET /admin/spend/holds"
	searchRow    = "GET /admin/search"
	outcomeRow   = "GET /admin/decisions/outcomes"
	idle         = "GET /admin/spend/idle"
	decisionList = "GET /admin/decisions"
	decisionRow  = "GET /admin/decisions/{id}"
	auditLog     = "GET /admin/audit/log"
	approvalList = "GET /admin/approvals"
	// auditResources reads from the platform and has its own timeout.
	auditResources = "GET /admin/audit"
	configRow      = "GET /admin/config"
	keyRow         = "GET /admin/keys"
	alertRow       = "GET /admin/alerts"
	exceptionRow   = "GET /admin/exceptions"
	explainRow     = "POST /admin/explain"
	tryRow         = "POST /admin/policies/try"
	replayRow      = "POST /admin/policies/replay"
)
