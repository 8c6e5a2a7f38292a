package ui

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// Patterns of endpoints that the pages in the System group call.
const (
	statusRow   = "GET /admin/status"
	envoyRow    = "GET /admin/envoy"
	diffRow     = "GET /admin/config/diff"
	revisionRow = "GET /admin/config/revisions"
)

// systemPages returns the pages in the System group.
func systemPages() []*page {
	return []*page{
		{name: "gateways", title: "Gateways and Envoys", asks: statusRow, group: groupSystem, icon: "network", load: loadGateways},
		{name: "configuration", title: "Configuration", asks: configRow, group: groupSystem, icon: "file", load: configuration},
		{name: "alerts", title: "Alerts", asks: alertRow, group: groupSystem, icon: "bell", period: last7Days, load: loadAlerts},
	}
}

// gatewayData holds the data of the page about gateways and Envoys.
type gatewayData struct {
	Notes                             []note
	Facts                             []fact
	Gateways, Policies, Groups, Nodes table
	// Envoys explains why the tables of Envoys are missing.
	Envoys string
}

func loadGateways(v *visit) (any, int, string) {
	var overview part[operator.Overview]
	var report part[operator.Report]
	var envoys part[envoy.Status]
	together(
		func() { overview = ask[operator.Overview](v, overviewRow, nil) },
		func() { report = ask[operator.Report](v, statusRow, nil) },
		func() { envoys = ask[envoy.Status](v, envoyRow, nil) },
	)
	if !report.OK() {
		return nil, report.Status, report.Fault
	}
	return newGatewayData(v, &overview.Is, &report.Is, envoys), 0, ""
}

func newGatewayData(v *visit, o *operator.Overview, r *operator.Report, envoys part[envoy.Status]) gatewayData {
	d := gatewayData{Notes: problemNotes(o), Envoys: envoys.Fault}
	d.Facts = []fact{{"Revision", codeCell(r.Revision)}, {"Loaded", v.whenCell(r.Loaded)}}
	if r.Problem() != "" {
		d.Facts = append(d.Facts, fact{"Newest configuration", cell{Status: &status{levelBad, "Rejected"}, Sub: r.Problem()}})
	}
	if len(r.Restart) > 0 {
		d.Facts = append(d.Facts, fact{"Restart required for", cell{Lines: r.Restart}})
	}
	d.Gateways = newTable(v, o.Gateways, tableSpec[operator.Instance]{
		Name: "gateways", Caption: "Gateways that share the store",
		Columns: gatewayColumns(v), Whole: true,
	})
	d.Policies = newTable(v, r.Policies, tableSpec[operator.PolicyStatus]{
		Name: "policies", Caption: "Policies by organisation", Columns: policyStatusColumns(), Whole: true,
		Empty: empty{Title: "No organisations", Text: "Each organisation in the configuration has its own policies."},
	})
	d.Groups = newTable(v, envoys.Is.Groups, tableSpec[envoy.GroupStatus]{
		Name: "groups", Caption: "Groups of Envoys", Columns: groupColumns(v), Whole: true,
		Empty: empty{
			Icon: "network", Title: "No Envoy groups",
			Text: "Set envoy.xds.groups to let this gateway configure Envoys. The Envoys appear here.",
		},
	})
	d.Nodes = newTable(v, envoys.Is.Nodes, tableSpec[envoy.Node]{
		Name: "nodes", Caption: "Envoys connected to this gateway",
		Columns: nodeColumns(v), Whole: true,
	})
	return d
}

// problemNotes returns a note for each part of an overview that could not be read and for each problem of a gateway.
func problemNotes(o *operator.Overview) (out []note) {
	for _, unknown := range o.Unknown {
		out = append(out, note{levelBad, "Unknown: " + unknown})
	}
	for i := range o.Gateways {
		g := &o.Gateways[i]
		if g.Fault != "" {
			out = append(out, note{levelBad, "Gateway " + g.Instance + " rejected the newest configuration: " + g.Fault})
		}
		if len(g.Restart) > 0 {
			out = append(out, note{levelWarn, "Gateway " + g.Instance + " must be restarted for changed settings: " + strings.Join(g.Restart, ", ")})
		}
		for _, what := range g.Undelivered {
			out = append(out, note{levelWarn, "Gateway " + g.Instance + ": " + what})
		}
	}
	return out
}

func gatewayColumns(v *visit) []column[operator.Instance] {
	return []column[operator.Instance]{
		{Key: "gateway", Title: "Gateway", Cell: func(g *operator.Instance) cell { return textCell(g.Instance) }},
		{Key: "state", Title: "State", Cell: func(g *operator.Instance) cell { return cell{Status: gatewayState(g)} }},
		{Key: "version", Title: "Version", Cell: func(g *operator.Instance) cell { return textCell(g.Version) }},
		{Key: "revision", Title: "Configuration", Cell: func(g *operator.Instance) cell { return codeCell(short(g.Revision)) }},
		{Key: "loaded", Title: "Loaded", Cell: func(g *operator.Instance) cell { return v.whenCell(g.Loaded) }},
		{Key: "since", Title: "Started", Cell: func(g *operator.Instance) cell { return v.whenCell(g.Since) }},
		{Key: "envoys", Title: "Envoys", Number: true, Cell: func(g *operator.Instance) cell { return textCell(strconv.Itoa(g.Envoys)) }},
		{Key: "seen", Title: "Last seen", Cell: func(g *operator.Instance) cell { return v.whenCell(g.At) }},
		{Key: "unserved", Title: "Unserved operations", Off: true, Cell: func(g *operator.Instance) cell { return cell{Lines: g.Unserved} }},
	}
}

// gatewayState returns the most severe problem of a gateway.
func gatewayState(g *operator.Instance) *status {
	switch {
	case g.Fault != "":
		return &status{levelBad, "Configuration rejected"}
	case len(g.Restart) > 0:
		return &status{levelWarn, "Restart required"}
	case len(g.Undelivered) > 0:
		return &status{levelWarn, "Records undelivered"}
	}
	return &status{levelGood, "Healthy"}
}

func policyStatusColumns() []column[operator.PolicyStatus] {
	return []column[operator.PolicyStatus]{
		{Key: "org", Title: "Organisation", Cell: func(p *operator.PolicyStatus) cell { return textCell(p.Org) }},
		{Key: "revision", Title: "Revision", Cell: func(p *operator.PolicyStatus) cell { return codeCell(short(p.Revision)) }},
		{Key: "bundle", Title: "Bundle", Cell: func(p *operator.PolicyStatus) cell { return textCell(p.Bundle, present(p.Fetched)...) }},
		{Key: "problems", Title: "Problems", Cell: func(p *operator.PolicyStatus) cell { return cell{Text: p.Fault, Lines: p.Unlisted} }},
	}
}

func groupColumns(v *visit) []column[envoy.GroupStatus] {
	return []column[envoy.GroupStatus]{
		{Key: "group", Title: "Group", Cell: func(g *envoy.GroupStatus) cell { return textCell(g.Group) }},
		{Key: "nodes", Title: "Envoys", Number: true, Cell: func(g *envoy.GroupStatus) cell { return textCell(count(g.Nodes)) }},
		{Key: "here", Title: "At this gateway", Number: true, Cell: func(g *envoy.GroupStatus) cell { return textCell(count(g.Here)) }},
		{Key: "state", Title: "Configuration", Cell: func(g *envoy.GroupStatus) cell {
			if g.Refused == nil {
				return cell{Status: &status{levelGood, "Accepted"}}
			}
			since := v.When(g.Refused.Since)
			return cell{Status: &status{levelBad, "Rejected"}, When: &since, Sub: g.Refused.Reason}
		}},
	}
}

func nodeColumns(v *visit) []column[envoy.Node] {
	return []column[envoy.Node]{
		{Key: "node", Title: "Envoy", Cell: func(n *envoy.Node) cell { return textCell(n.ID, present(n.Address)...) }},
		{Key: "group", Title: "Group", Cell: func(n *envoy.Node) cell { return textCell(n.Group) }},
		{Key: "version", Title: "Version", Cell: func(n *envoy.Node) cell { return textCell(n.Version) }},
		{Key: "since", Title: "Connected", Cell: func(n *envoy.Node) cell { return v.whenCell(n.Since) }},
		{Key: "refused", Title: "Rejected resources", Cell: func(n *envoy.Node) (c cell) {
			for i := range n.Resources {
				if r := &n.Resources[i]; r.Refused != "" {
					c.Lines = append(c.Lines, r.Type+": "+r.Reason)
				}
			}
			return c
		}},
	}
}

// configData holds the data of the Configuration page, which has several views.
type configData struct {
	operator.ActiveConfig

	// Diff is the difference to another configuration. It is nil in the view of the current configuration.
	Diff *part[operator.ConfigDiff]
	// Lines holds the lines of Diff.
	Lines []diffLine
	// First reports that no earlier configuration is known.
	First bool
	// Against names the configuration to compare with.
	Against   string
	Revisions table
	about     head
}

// Head implements headed.
func (d configData) Head(*frame) head { return d.about }

// diffLine is a line of a diff. Level marks added and removed lines.
type diffLine struct{ Level, Text string }

// Views of the Configuration page.
const (
	viewChanges = ""
	viewFile    = "file"
	viewInForce = "inforce"
)

func configuration(v *visit) (any, int, string) {
	var c part[operator.ActiveConfig]
	var diff part[operator.ConfigDiff]
	var revisions []operator.Revision
	view := v.Query("view")
	together(
		func() { c = ask[operator.ActiveConfig](v, configRow, nil) },
		func() {
			switch view {
			case viewFile:
				diff = ask[operator.ConfigDiff](v, diffRow, url.Values{"with": {operator.AgainstFile}})
			case viewChanges:
				diff = ask[operator.ConfigDiff](v, diffRow, v.query(diffRow))
			}
		},
		func() {
			if view == viewChanges && v.may(revisionRow) {
				revisions = ask[operator.RevisionList](v, revisionRow, nil).Is.Revisions
			}
		},
	)
	return newConfigData(v, &c.Is, diff, revisions), c.Status, c.Fault
}

func newConfigData(v *visit, c *operator.ActiveConfig, diff part[operator.ConfigDiff], revisions []operator.Revision) configData {
	view, with := v.Query("view"), v.Query("with")
	d := configData{ActiveConfig: *c, Against: "the previous revision"}
	d.about.Text = "Revision " + short(c.Revision) + " is in force since " + moment(v.When(c.Loaded).At) + "."
	for _, t := range []struct{ title, view string }{{"Changes", viewChanges}, {"Pending in the file", viewFile}, {"In force", viewInForce}} {
		d.about.Tabs = append(d.about.Tabs, tab{Title: t.title, Path: v.With("view", t.view, "with", ""), Here: view == t.view})
	}
	if view == viewInForce {
		return d
	}
	if view == viewChanges && with == "" && len(revisions) == 1 {
		d.First = true
	}
	d.Diff, d.Lines = &diff, diffLines(diff.Is.Diff)
	switch {
	case view == viewFile:
		d.Against = "the file"
	case with != "":
		d.Against = "revision " + short(with)
	}
	d.Revisions = newTable(v, revisions, tableSpec[operator.Revision]{
		Name:    "revisions",
		Caption: "Configurations that were in force, latest first", Columns: revisionColumns(v, c.Revision), Whole: true,
	})
	return d
}

// diffLines parses the lines of a unified diff.
func diffLines(text string) (out []diffLine) {
	if text == "" {
		return nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		l := diffLine{"", line}
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			l.Level = levelGood
		case strings.HasPrefix(line, "-"):
			l.Level = levelBad
		}
		out = append(out, l)
	}
	return out
}

// revisionColumns returns the columns of the list of revisions. The one in force has no link, because it cannot be compared with itself.
func revisionColumns(v *visit, current string) []column[operator.Revision] {
	return []column[operator.Revision]{
		{Key: "revision", Title: "Revision", Cell: func(r *operator.Revision) cell {
			if r.Revision == current {
				return cell{Text: short(r.Revision), Code: true, Sub: "in force"}
			}
			return cell{Text: short(r.Revision), Code: true, Path: v.With("with", r.Revision)}
		}},
		{Key: "loaded", Title: "In force since", Cell: func(r *operator.Revision) cell { return v.whenCell(r.Loaded) }},
		{
			Key: "gateway", Title: "First loaded by",
			Cell: func(r *operator.Revision) cell { return textCell(r.Gateway, "version "+cmp.Or(r.Version, "unknown")) },
		},
	}
}

func loadAlerts(v *visit) (any, int, string) {
	list := ask[alerts.AlertList](v, alertRow, v.since(v.query(alertRow)))
	return alertPage(v, &list.Is), list.Status, list.Fault
}

// alertPage returns the page that lists alerts.
func alertPage(v *visit, list *alerts.AlertList) listing {
	kinds := []option{{"", "All alerts", false}}
	for k := range strings.FieldsSeq("budget.threshold budget.over budget.stopped spend.unusual resource.idle resource.stopped resource.unowned " +
		"resource.changed resource.removed approval.requested exception.expiring report.weekly") {
		kinds = append(kinds, option{k, title(strings.ReplaceAll(k, ".", " ")), false})
	}
	l := v.filtered(field{Name: "kind", Label: "Kind", Type: "select", Options: kinds})
	if slices.ContainsFunc(list.Alerts, func(a alerts.Alert) bool { return !a.Delivered && a.Failure == "" }) {
		l.Notes = append(l.Notes, note{
			levelWarn,
			"Alerts with the status Logged only were not sent to a receiver. Configure a receiver under alerts.webhook of the organisation.",
		})
	}
	l.Table = newTable(v, list.Alerts, tableSpec[alerts.Alert]{
		Name: "alerts", Caption: "Alerts of " + v.org + ", newest first", Columns: alertColumns(v),
		Next: v.older("cursor", list.Next), Prev: v.newest("cursor"),
		Empty: l.empty(v, empty{
			Icon: "bell", Title: "No alerts in this period",
			Text: "Budgets that reach a threshold, unusual spend, idle resources and expiring exceptions appear here, whether or not a receiver is configured under alerts.",
		}),
	})
	return l
}

func alertColumns(v *visit) []column[alerts.Alert] {
	return []column[alerts.Alert]{
		{Key: "alert", Title: "Alert", Cell: func(a *alerts.Alert) cell {
			kind := title(strings.ReplaceAll(a.Kind, ".", " "))
			if a.Text == "" {
				return cell{Text: kind, Path: alertPath(v, a)}
			}
			return cell{Text: a.Text, Path: alertPath(v, a), Sub: kind}
		}},
		{Key: "severity", Title: "Severity", Cell: func(a *alerts.Alert) cell { return cell{Status: alertSeverity(a)} }},
		{Key: "at", Title: "Time", Cell: func(a *alerts.Alert) cell { return v.exactCell(a.At) }},
		{Key: "delivery", Title: "Delivery", Cell: func(a *alerts.Alert) cell { return deliveryCell(a) }},
		{Key: "details", Title: "Details", Cell: func(a *alerts.Alert) cell { return cell{Details: cmp.Or(pretty(a.Data), "{}"), Menu: "Data"} }},
	}
}

// alertSubject holds the fields of an alert's data that identify its subject.
type alertSubject struct {
	Scope    string `json:"scope"`
	Percent  int    `json:"percent"`
	Resource string `json:"resource"`
	Approval string `json:"approval"`
}

// subjectOf returns the subject of an alert. Its fields are empty for data of an unknown form.
func subjectOf(a *alerts.Alert) (s alertSubject) {
	_ = json.Unmarshal(a.Data, &s)
	return s
}

// alertPath returns the address of the page of an alert's subject.
func alertPath(v *visit, a *alerts.Alert) string {
	s := subjectOf(a)
	kind, _, _ := strings.Cut(a.Kind, ".")
	switch {
	case kind == "budget":
		team, isTeam := strings.CutPrefix(s.Scope, "team ")
		if !isTeam {
			team = ""
		}
		return v.Link("budgets", "team", team)
	case kind == "approval":
		return v.Link("approvals", "view", "all") + "#" + url.PathEscape(s.Approval)
	case kind == "resource" && s.Resource != "":
		return v.Link("resources/" + url.PathEscape(s.Resource))
	}
	page := map[string]string{"spend": "cost", "report": "cost", "resource": "resources", "exception": "exceptions"}[kind]
	if page == "" {
		return ""
	}
	return v.Link(page)
}

// alertSeverity rates an alert.
func alertSeverity(a *alerts.Alert) *status {
	switch s := subjectOf(a); {
	case a.Kind == "budget.over", a.Kind == "budget.stopped", a.Kind == "budget.threshold" && s.Percent >= 100,
		strings.HasPrefix(a.Kind, "ledger."):
		return &status{levelBad, "Critical"}
	case strings.HasPrefix(a.Kind, "approval."), strings.HasPrefix(a.Kind, "report."), a.Kind == "budget.threshold" && s.Percent < 80:
		return &status{levelInfo, "Info"}
	}
	return &status{levelWarn, "Warning"}
}

// deliveryCell shows whether a receiver accepted an alert.
func deliveryCell(a *alerts.Alert) cell {
	switch {
	case a.Delivered:
		return cell{Status: &status{levelGood, "Delivered"}}
	case a.Failure != "":
		return cell{Status: &status{levelBad, "Not delivered"}, Sub: a.Failure}
	}
	return cell{Status: &status{levelNeutral, "Logged only"}}
}
