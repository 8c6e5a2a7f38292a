package ui

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// trafficPages returns the pages of the group Traffic.
func trafficPages() []*page {
	return []*page{
		{name: "requests", title: "Requests", asks: decisionList, group: groupTraffic, icon: "list", period: last24Hours, load: loadDecisions},
		{name: "request", title: "Request", at: "requests/{id}", under: "requests", asks: decisionRow, load: decision},
		{name: "limits", title: "Rate limits", asks: "GET /admin/limits", group: groupTraffic, icon: "gauge", load: quotas},
		{name: "legacy", title: "Legacy APIs", asks: "GET /admin/legacy", group: groupTraffic, icon: "clock", load: legacyCalls},
	}
}

// decisionData is the data of the page of decisions.
type decisionData struct{ decisions.List }

// Blank is the decision that a row for later ones is made of.
func (decisionData) Blank() explain.Summary { return explain.Summary{} }

func loadDecisions(v *visit) (any, int, string) {
	q := v.since(v.query(decisionList))
	list := ask[decisions.List](v, decisionList, q)
	if n := len(list.Is.Decisions); list.Is.Next == "" && n > 0 && strconv.Itoa(n) == cmp.Or(q.Get("limit"), "50") {
		list.Is.Next = list.Is.Decisions[n-1].Time.UTC().Format(time.RFC3339Nano)
	}
	return decisionData{list.Is}, list.Status, list.Fault
}

func decision(v *visit) (any, int, string) {
	x := ask[explain.Report](v, decisionRow, url.Values{"id": {v.r.PathValue("id")}})
	if !x.OK() {
		return nil, x.Status, x.Fault
	}
	v.org = x.Is.Caller.Org
	return x.Is, 0, ""
}

func quotas(v *visit) (any, int, string) {
	list := ask[operator.LimitList](v, "GET /admin/limits", nil)
	return cut(v, list.Is.Windows), list.Status, list.Fault
}

// legacyData is the data of the page of legacy callers.
type legacyData struct {
	excerpt[legacy.Call]

	Brownouts []legacy.Brownout
}

func legacyCalls(v *visit) (any, int, string) {
	list := ask[legacy.List](v, "GET /admin/legacy", nil)
	return legacyData{cut(v, list.Is.Calls), list.Is.Brownouts}, list.Status, list.Fault
}
