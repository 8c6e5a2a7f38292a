package ui

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// The following return data full of hostile text for each page of a group, by the name of the page.

func hostileOverview() map[string]any {
	costs := hostileCosts()
	costs.Is.Total, costs.Is.From, costs.Is.To = "3", time.Unix(1_799_900_000, 0), time.Unix(1_800_100_000, 0)
	f := overviewFacts{
		overview: of[operator.Overview](), forecasts: of[money.Forecasts](), costs: costs, hours: costs, outcomes: of[decisions.OutcomeCounts](),
		budgets: of[money.BudgetList](), idle: of[money.IdleList](), denied: of[decisions.List](),
	}
	f.idle.Is.Resources[0].SnoozedUntil = nil
	return map[string]any{"overview": newOverview(hostileVisit(""), &f)}
}

func hostileAccess() map[string]any {
	v := hostileVisit("keys")
	keys, log := filled[callers.List]().(callers.List), filled[audit.Page]().(audit.Page)
	keys.Keys[0].Revoked = time.Time{}
	form, _, _ := newKey(v)
	return map[string]any{"keys": keyList(v, &keys), "audit": changeList(v, &log), "key": newKeyData(v, keys.Keys[0]), "newkey": form}
}

func hostileSystem() map[string]any {
	v := hostileVisit("configuration")
	diff := of[operator.ConfigDiff]()
	diff.Is.Fault = ""
	inForce, overview, report := filled[operator.ActiveConfig]().(operator.ActiveConfig), of[operator.Overview](), of[operator.Report]()
	list := of[alerts.AlertList]()
	return map[string]any{
		"configuration": newConfigData(v, &inForce, diff, filled[[]operator.Revision]().([]operator.Revision)),
		"gateways":      newGatewayData(v, &overview.Is, &report.Is, of[envoy.Status]()),
		"alerts":        newAlertData(v, &list.Is, of[money.BudgetList](), nil),
	}
}
