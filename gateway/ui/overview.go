package ui

import (
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// overviewData is the data of the overview.
type overviewData struct {
	Overview part[operator.Overview]
	Ledger   part[money.Ledger]
	// Dearest are the greatest costs of seven days.
	Dearest   part[money.Costs]
	Forecasts part[money.Forecasts]
	// Refused are refusals of the last hour, Alerts those of the last week, and Exceptions those that end in the next one.
	Refused    part[decisions.List]
	Alerts     part[alerts.AlertList]
	Exceptions part[alerts.ExceptionList]
}

// Knows reports whether a part of the overview was read.
func (d overviewData) Knows(part string) bool { return d.Overview.OK() && d.Overview.Is.Knows(part) }

func loadOverview(v *visit) (any, int, string) {
	var d overviewData
	week := v.now().UTC().AddDate(0, 0, -7).Format(time.DateOnly)
	together(
		func() { d.Overview = ask[operator.Overview](v, overviewRow, nil) },
		func() { d.Ledger = ask[money.Ledger](v, ledger, nil) },
		func() { d.Forecasts = ask[money.Forecasts](v, forecastRow, nil) },
		func() {
			d.Refused = ask[decisions.List](v, decisionList, url.Values{"refused": {"true"}, "since": {"1h"}, "limit": {"20"}})
		},
		func() { d.Alerts = ask[alerts.AlertList](v, alertRow, url.Values{"since": {"7d"}, "limit": {"10"}}) },
		func() {
			d.Exceptions = ask[alerts.ExceptionList](v, exceptionRow, url.Values{"within": {"7d"}, "limit": {"10"}})
		},
		func() {
			d.Dearest = ask[money.Costs](v, history, url.Values{"by": {"resource,team"}, "bucket": {"total"}, "limit": {"10"}, "from": {week}})
		},
	)
	d.Ledger.Is.Scopes = withoutKeys(d.Ledger.Is.Scopes, func(b *money.Balance) string { return b.Scope })
	d.Forecasts.Is.Scopes = withoutKeys(d.Forecasts.Is.Scopes, func(f *money.Forecast) string { return f.Scope })
	return d, d.Overview.Status, d.Overview.Fault
}
