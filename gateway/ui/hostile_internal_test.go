package ui

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// The following return data full of hostile text for each page of a group, by the name of the page.

func hostileOverview() map[string]any {
	return map[string]any{
		"overview": overviewData{
			Overview: of[operator.Overview](), Ledger: of[money.Ledger](), Dearest: hostileCosts(), Forecasts: of[money.Forecasts](),
			Refused: of[decisions.List](), Alerts: of[alerts.AlertList](), Exceptions: of[alerts.ExceptionList](),
		},
	}
}

func hostileAccess() map[string]any {
	keys := filled[callers.List]().(callers.List)
	keys.Keys[0].Revoked = time.Time{}
	return map[string]any{"keys": keys, "audit": filled[audit.Page]()}
}

func hostileSystem() map[string]any {
	config := configData{
		InForce: filled[operator.InForce]().(operator.InForce), File: of[operator.ConfigDiff](), Before: of[operator.ConfigDiff](),
		Revisions: filled[[]operator.Revision]().([]operator.Revision),
	}
	config.Before.Is.Fault = ""
	gateways := filled[gatewayData]().(gatewayData)
	gateways.Overview.Status, gateways.Status.Status, gateways.Envoys.Status = 0, 0, 0
	return map[string]any{"configuration": config, "gateways": gateways, "alerts": alertData{of[alerts.AlertList]().Is}}
}
