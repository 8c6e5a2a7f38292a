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
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

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
		Columns: []column[operator.Instance]{
			{Key: "gateway", Title: "Gateway", Value: func(g *operator.Instance) any { return g.Instance }},
			{Key: "state", Title: "State", Cell: func(g *operator.Instance) cell { return cell{Status: gatewayState(g)} }},
			{Key: "version", Title: "Version", Value: func(g *operator.Instance) any { return g.Version }},
			{Key: "revision", Title: "Configuration", Cell: func(g *operator.Instance) cell { return codeCell(short(g.Revision)) }},
			{Key: "loaded", Title: "Loaded", Value: func(g *operator.Instance) any { return g.Loaded }},
			{Key: "since", Title: "Started", Value: func(g *operator.Instance) any { return g.Since }},
			{Key: "envoys", Title: "Envoys", Number: true, Value: func(g *operator.Instance) any { return strconv.Itoa(g.Envoys) }},
			{Key: "seen", Title: "Last seen", Value: func(g *operator.Instance) any { return g.At }},
			{Key: "unserved", Title: "Unserved operations", Off: true, Cell: func(g *operator.Instance) cell { return cell{Lines: g.Unserved} }},
		}, Whole: true,
	})
	d.Policies = newTable(v, r.Policies, tableSpec[operator.PolicyStatus]{
		Name: "policies", Caption: "Policies by organisation", Columns: []column[operator.PolicyStatus]{
			{Key: "org", Title: "Organisation", Value: func(p *operator.PolicyStatus) any { return p.Org }},
			{Key: "revision", Title: "Revision", Cell: func(p *operator.PolicyStatus) cell { return codeCell(short(p.Revision)) }},
			{Key: "bundle", Title: "Bundle", Cell: func(p *operator.PolicyStatus) cell { return textCell(p.Bundle, present(p.Fetched)...) }},
			{
				Key: "problems", Title: "Problems",
				Cell: func(p *operator.PolicyStatus) cell { return orNone(cell{Text: p.Fault, Lines: p.Unlisted}) },
			},
		}, Whole: true,
		Empty: empty{Title: "No organisations", Text: "Each organisation in the configuration has its own policies."},
	})
	d.Groups = newTable(v, envoys.Is.Groups, tableSpec[envoy.GroupStatus]{
		Name: "groups", Caption: "Groups of Envoys", Columns: []column[envoy.GroupStatus]{
			{Key: "group", Title: "Group", Value: func(g *envoy.GroupStatus) any { return g.Group }},
			{Key: "nodes", Title: "Envoys", Number: true, Value: func(g *envoy.GroupStatus) any { return g.Nodes }},
			{Key: "here", Title: "At this gateway", Number: true, Value: func(g *envoy.GroupStatus) any { return g.Here }},
			{Key: "state", Title: "Configuration", Cell: func(g *envoy.GroupStatus) cell {
				if g.Refused == nil {
					return cell{Status: &status{levelGood, "Accepted"}}
				}
				since := v.When(g.Refused.Since)
				return cell{Status: &status{levelBad, "Rejected"}, When: &since, Sub: g.Refused.Reason}
			}},
		}, Whole: true,
		Empty: empty{
			Icon: "network", Title: "No Envoy groups",
			Text: "Set envoy.xds.groups in the configuration to let this gateway configure Envoys. The Envoys then appear here.",
		},
	})
	d.Nodes = newTable(v, envoys.Is.Nodes, tableSpec[envoy.Node]{
		Name: "nodes", Caption: "Envoys connected to this gateway",
		Columns: []column[envoy.Node]{
			{Key: "node", Title: "Envoy", Cell: func(n *envoy.Node) cell { return textCell(n.ID, present(n.Address)...) }},
			{Key: "group", Title: "Group", Value: func(n *envoy.Node) any { return n.Group }},
			{Key: "version", Title: "Version", Value: func(n *envoy.Node) any { return n.Version }},
			{Key: "since", Title: "Connected", Value: func(n *envoy.Node) any { return n.Since }},
			{Key: "refused", Title: "Rejected resources", Cell: func(n *envoy.Node) (c cell) {
				for i := range n.Resources {
					if r := &n.Resources[i]; r.Refused != "" {
						c.Lines = append(c.Lines, r.Type+": "+r.Reason)
					}
				}
				return orNone(c)
			}},
		}, Whole: true,
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

// gatewayState returns the most severe problem of a gateway.
func gatewayState(g *operator.Instance) *status {
	switch {
	case g.Fault != "":
		return &status{levelBad, "Configuration rejected"}
	case len(g.Restart) > 0:
		return &status{levelWarn, "Restart required"}
	case len(g.Undelivered) > 0:
		return &status{levelWarn, "Log problem"}
	}
	return &status{levelGood, "Healthy"}
}

// orNone returns c, or a cell with the text None if c has neither text nor lines.
func orNone(c cell) cell {
	if c.Text == "" && len(c.Lines) == 0 {
		c.Text = "None"
	}
	return c
}

// configData holds the data of the Configuration page, which has several views.
type configData struct {
	head
	operator.ActiveConfig

	// Diff is the difference from another configuration. It is nil in the view of the current configuration.
	Diff *part[operator.ConfigDiff]
	// Lines holds the lines of Diff.
	Lines []diffLine
	// First reports that the gateway knows no earlier configuration.
	First bool
	// Against names the configuration to compare with.
	Against   string
	Revisions table
}

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
	d.Text = "Revision " + short(c.Revision) + " has been in force since " + moment(v.When(c.Loaded).At) + "."
	for _, t := range []struct{ title, view string }{{"Changes", viewChanges}, {"Pending in the file", viewFile}, {"In force", viewInForce}} {
		d.Tabs = append(d.Tabs, tab{Title: t.title, Path: v.With("view", t.view, "with", ""), Here: view == t.view})
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
		Caption: "Configurations that were in force, latest first", Columns: []column[operator.Revision]{
			{Key: "revision", Title: "Revision", Cell: func(r *operator.Revision) cell {
				if r.Revision == c.Revision {
					return cell{Text: short(r.Revision), Code: true, Sub: "in force"}
				}
				return cell{Text: short(r.Revision), Code: true, Path: v.With("with", r.Revision)}
			}},
			{Key: "loaded", Title: "In force since", Value: func(r *operator.Revision) any { return r.Loaded }},
			{
				Key: "gateway", Title: "First loaded by",
				Cell: func(r *operator.Revision) cell { return textCell(r.Gateway, "version "+cmp.Or(r.Version, "unknown")) },
			},
		}, Whole: true,
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

// alertData holds the data of the Alerts page: the budgets that are expected to run out, which are a state, and the sent alerts.
type alertData struct {
	listing

	Now attention
}

func loadAlerts(v *visit) (any, int, string) {
	var list part[alerts.AlertList]
	var budgets part[money.BudgetList]
	together(
		func() { list = ask[alerts.AlertList](v, alertRow, v.since(v.query(alertRow))) },
		func() {
			budgets = ask[money.BudgetList](v, budgetRow, url.Values{"at_risk": {"true"}, "limit": {"200"}})
		},
	)
	var states map[string]status
	if slices.ContainsFunc(list.Is.Alerts, func(a alerts.Alert) bool { return strings.HasPrefix(a.Kind, "approval.") }) {
		states = approvalStates(v)
	}
	return newAlertData(v, &list.Is, budgets, states), list.Status, list.Fault
}

// newAlertData returns the data of the page, given the known states of approval requests by ID.
func newAlertData(v *visit, list *alerts.AlertList, budgets part[money.BudgetList], states map[string]status) alertData {
	kinds := []option{{"", "All alerts", false}}
	for k := range strings.FieldsSeq("budget.threshold budget.over budget.stopped spend.unusual resource.idle resource.stopped resource.unowned " +
		"resource.changed resource.removed approval.requested exception.expiring report.weekly") {
		kinds = append(kinds, option{k, title(strings.ReplaceAll(k, ".", " ")), false})
	}
	l := v.filtered(field{Name: "kind", Label: "Kind", Type: "select", Options: kinds})
	if slices.ContainsFunc(list.Alerts, func(a alerts.Alert) bool { return !a.Delivered && a.Failure == "" }) {
		l.Notes = append(l.Notes, note{
			levelWarn,
			"Alerts with the status “Logged only” were not sent to a receiver. To configure a receiver, set orgs[].alerts.webhook.",
		})
	}
	l.Table = newTable(v, list.Alerts, tableSpec[alerts.Alert]{
		Name: "alerts", Caption: "Alerts of " + v.org + ", newest first", Columns: []column[alerts.Alert]{
			{Key: "at", Title: "Time", Cell: func(a *alerts.Alert) cell { return v.exactCell(a.At) }},
			{Key: "alert", Title: "Alert", Cell: func(a *alerts.Alert) cell {
				kind := title(strings.ReplaceAll(a.Kind, ".", " "))
				out := cell{Text: cmp.Or(a.Text, kind), Path: alertPath(v, a, states)}
				if a.Text != "" {
					out.Sub = kind
				}
				return out
			}},
			{Key: "state", Title: "State", Cell: func(a *alerts.Alert) cell { return cell{Status: approvalState(a, states)} }},
			{Key: "severity", Title: "Severity", Cell: func(a *alerts.Alert) cell { return cell{Status: alertSeverity(a)} }},
			{Key: "delivery", Title: "Delivery", Cell: func(a *alerts.Alert) cell { return deliveryCell(a) }},
			{
				Key: "details", Title: "Details",
				Cell: func(a *alerts.Alert) cell { return cell{Details: cmp.Or(pretty(a.Data), "{}"), Menu: "Data"} },
			},
		},
		Next: v.older("cursor", list.Next), Prev: v.newest("cursor"),
		Empty: l.empty(v, empty{
			Icon: "bell", Title: "No alerts in this period",
			Text: "Alerts about budgets, unusual costs, idle resources and expiring exceptions appear here, even if no receiver is configured.",
		}),
	})
	d := alertData{listing: l}
	for _, b := range willRunOut(budgets.Is.Budgets) {
		d.Now.Items = append(d.Now.Items, budgetItem(v, b, v.Link("budgets", "team", b.Team)))
	}
	d.Now.shorten()
	if !budgets.OK() && !offBecause(budgets) {
		d.Notes = append(d.Notes, note{levelWarn, "Budgets that will run out are unknown: " + budgets.Fault})
	}
	return d
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

// approvalState returns the state of the approval request of an alert, or nil for other alerts.
func approvalState(a *alerts.Alert, states map[string]status) *status {
	if !strings.HasPrefix(a.Kind, "approval.") {
		return nil
	}
	if s, known := states[subjectOf(a).Approval]; known {
		return &s
	}
	return &status{levelNeutral, "No longer pending"}
}

// alertPath returns the address of the page of an alert's subject, or "". An approval request has a page if its state is known.
func alertPath(v *visit, a *alerts.Alert, states map[string]status) string {
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
		if _, known := states[s.Approval]; !known {
			return ""
		}
		return approvalPath(v, s.Approval)
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
