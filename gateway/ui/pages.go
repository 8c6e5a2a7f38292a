package ui

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
	return []*page{
		{name: "overview", title: "Overview", at: first, asks: overviewRow, icon: "home", period: last30Days, costs: true, counts: true, load: loadOverview},

		{name: "cost", title: "Cost explorer", asks: history, group: groupCost, icon: "chart", period: last30Days, costs: true, load: costExplorer},
		{name: "budgets", title: "Budgets", asks: budgetRow, group: groupCost, icon: "wallet", load: loadBudgets},
		{name: "resources", title: "Resources", asks: resourceRow, group: groupCost, icon: "server", load: loadResources},
		{name: "reservations", title: "Reservations", under: "resources", asks: holdRow, load: shows(holdRow, reservations)},
		{
			name: "resource", title: "Resource", at: "resources/{id}", under: "resources", asks: resourceRow,
			period: last30Days, costs: true, load: loadResource,
		},
		{name: "idle", title: "Idle", asks: idle, group: groupCost, icon: "moon", load: loadIdle},
		{name: "search", title: "Search", asks: searchRow, load: loadSearch},

		{name: "requests", title: "Requests", asks: decisionList, group: groupTraffic, icon: "list", period: last24Hours, load: loadRequests},
		{name: "request", title: "Request", at: "requests/{id}", under: "requests", asks: decisionRow, load: loadRequest},
		{name: "limits", title: "Rate limits", asks: limitRow, group: groupTraffic, icon: "gauge", load: shows(limitRow, newLimitData)},
		{name: "legacy", title: "Legacy APIs", asks: legacyRow, group: groupTraffic, icon: "clock", load: shows(legacyRow, newLegacyData)},

		{name: "policies", title: "Policies", asks: policyRow, group: groupPolicy, icon: "shield", load: loadPolicies},
		{name: "policy", title: "Policy", at: "policies/{id}", under: "policies", asks: policyRow, load: loadPolicy},
		{name: "playground", title: "Playground", asks: tryRow, group: groupPolicy, icon: "flask", load: loadPlayground},
		{name: "dryrun", title: "Dry run", at: "dry-run", asks: explainRow, group: groupPolicy, icon: "play", load: blank},
		{name: "approvals", title: "Approvals", asks: approvalList, group: groupPolicy, icon: "inbox", load: loadApprovals},
		{name: "exceptions", title: "Exceptions", asks: exceptionRow, group: groupPolicy, icon: "hourglass", load: loadExceptions},

		{name: "keys", title: "Keys", asks: keyRow, group: groupAccess, icon: "key", load: shows(keyRow, keyList)},
		{name: "newkey", title: "Create key", at: "create-key", under: "keys", asks: createKey, load: newKey},
		{name: "key", title: "Key", at: "keys/{id}", under: "keys", asks: keyRow, load: keyPage},
		{name: "audit", title: "Audit log", asks: auditLog, group: groupAccess, icon: "book", period: last7Days, load: shows(auditLog, changeList)},

		{name: "gateways", title: "Gateways and Envoys", asks: statusRow, group: groupSystem, icon: "network", load: loadGateways},
		{name: "configuration", title: "Configuration", asks: configRow, group: groupSystem, icon: "file", load: configuration},
		{name: "alerts", title: "Alerts", asks: alertRow, group: groupSystem, icon: "bell", period: last7Days, load: loadAlerts},
	}
}

// policyRetention is the retention of policy counts, in days.
const policyRetention = 30

// Patterns of endpoints that the pages call.
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
	policyRow      = "GET /admin/policies"
	policyCountRow = "GET /admin/policies/counts"
	grantApproval  = "POST /admin/approvals/grant"
	denyApproval   = "POST /admin/approvals/deny"
	limitRow       = "GET /admin/limits"
	resetLimit     = "POST /admin/limits/reset"
	legacyRow      = "GET /admin/legacy"
	statusRow      = "GET /admin/status"
	envoyRow       = "GET /admin/envoy"
	diffRow        = "GET /admin/config/diff"
	revisionRow    = "GET /admin/config/revisions"
	snoozeRow      = "POST /admin/spend/snooze"
	reconcileRow   = "POST /admin/spend/reconcile"
	createKey      = "POST /admin/keys/create"
	rotateKey      = "POST /admin/keys/rotate"
)
