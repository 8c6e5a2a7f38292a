package ui

import (
	"net/url"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// systemPages returns the pages of the group System.
func systemPages() []*page {
	return []*page{
		{name: "gateways", title: "Gateways and Envoys", asks: "GET /admin/status", group: groupSystem, icon: "network", load: loadGateways},
		{name: "configuration", title: "Configuration", asks: configRow, group: groupSystem, icon: "file", load: configuration},
		{name: "alerts", title: "Alerts", asks: alertRow, group: groupSystem, icon: "bell", period: last7Days, load: loadAlerts},
	}
}

// gatewayData is the data of the page of gateways and Envoys.
type gatewayData struct {
	Overview part[operator.Overview]
	Status   part[operator.Report]
	Envoys   part[envoy.Status]
}

func loadGateways(v *visit) (any, int, string) {
	var d gatewayData
	together(
		func() { d.Overview = ask[operator.Overview](v, overviewRow, nil) },
		func() { d.Status = ask[operator.Report](v, "GET /admin/status", nil) },
		func() { d.Envoys = ask[envoy.Status](v, "GET /admin/envoy", nil) },
	)
	if !d.Status.OK() {
		return nil, d.Status.Status, d.Status.Fault
	}
	return d, 0, ""
}

// configData is the data of the page of the configuration.
type configData struct {
	operator.InForce

	// File and Before are the differences to the file, and to the revision before or the one that the page names.
	File, Before part[operator.ConfigDiff]
	// Revisions are those that can be named, none for admins of an organisation.
	Revisions []operator.Revision
}

func configuration(v *visit) (any, int, string) {
	const diffs, revisionRow = "GET /admin/config/diff", "GET /admin/config/revisions"
	var c part[operator.InForce]
	var d configData
	together(
		func() { c = ask[operator.InForce](v, configRow, nil) },
		func() { d.File = ask[operator.ConfigDiff](v, diffs, url.Values{"with": {operator.AgainstFile}}) },
		func() { d.Before = ask[operator.ConfigDiff](v, diffs, v.query(diffs)) },
		func() {
			if v.may(revisionRow) {
				d.Revisions = ask[operator.RevisionList](v, revisionRow, nil).Is.Revisions
			}
		},
	)
	d.InForce = c.Is
	return d, c.Status, c.Fault
}

// alertData is the data of the page of alerts.
type alertData struct{ alerts.AlertList }

func loadAlerts(v *visit) (any, int, string) {
	list := ask[alerts.AlertList](v, alertRow, v.since(v.query(alertRow)))
	return alertData{list.Is}, list.Status, list.Fault
}
