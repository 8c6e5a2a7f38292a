package ui

// trafficPages returns the pages in the Traffic group.
func trafficPages() []*page {
	return []*page{
		{name: "requests", title: "Requests", asks: decisionList, group: groupTraffic, icon: "list", period: last24Hours, load: loadRequests},
		{name: "request", title: "Request", at: "requests/{id}", under: "requests", asks: decisionRow, load: loadRequest},
		{name: "limits", title: "Rate limits", asks: limitRow, group: groupTraffic, icon: "gauge", load: loadLimits},
		legacyPage(),
	}
}

// Patterns of endpoints about traffic.
const (
	limitRow   = "GET /admin/limits"
	resetLimit = "POST /admin/limits/reset"
)
