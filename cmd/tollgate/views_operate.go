package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// diffText formats the difference between two configurations.
func diffText(d *operator.ConfigDiff) string {
	switch {
	case d.Fault != "":
		return "The file would be rejected: " + d.Fault
	case d.Diff == "":
		return "No visible differences between " + d.From + " and " + d.To + "."
	}
	return strings.TrimSuffix(d.Diff, "\n")
}

// overviewPage lists unavailable parts first, and then gateways with an old configuration. For each list, it adds a table or, if the list
// is empty, a sentence. It omits the sentence if the list is empty because a part is unavailable.
func overviewPage(o *operator.Overview, _ asked) (p page) {
	for _, what := range o.Unknown {
		p.text = append(p.text, "Unknown: "+what+".")
	}
	for _, g := range o.Gateways {
		if g.Fault != "" {
			p.text = append(p.text, fmt.Sprintf("Gateway %s has refused the newest configuration: %s", g.Instance, g.Fault))
		}
		if len(g.Restart) > 0 {
			p.text = append(p.text, fmt.Sprintf("Gateway %s must be restarted for changed settings: %s", g.Instance, strings.Join(g.Restart, ", ")))
		}
	}
	for _, part := range []struct {
		list        any
		known, none string
	}{
		{o.Gateways, "", ""},
		{o.Approvals, operator.PartApprovals, "No pending approval requests."},
		{o.Budgets, operator.PartBudgets, "No budget is nearly used up."},
		{o.Refused, operator.PartRefusals, "No refusals today."},
		{o.Idle, operator.PartIdle, "No money is spent on idle resources."},
		{o.Drift, operator.PartBudgets, "No ledger differs from the platform."},
	} {
		if list := reflect.ValueOf(part.list); list.Len() > 0 {
			p.sheets = append(p.sheets, plainSheet(list))
		} else if part.none != "" && o.Knows(part.known) {
			p.text = append(p.text, part.none)
		}
	}
	for _, what := range o.Off {
		p.text = append(p.text, "Switched off: "+what+".")
	}
	if len(p.text) > 0 {
		p.text = append(p.text, "")
	}
	return p
}

func limitsPage(l *operator.LimitList, _ asked) page {
	t := sheet{{"scope", "window", "used", "limit", "left", "resets in", "throttled in 24 h", "leased"}}
	for _, w := range l.Windows {
		var limit, left any = "none", ""
		if w.Limit > 0 {
			limit, left = w.Limit, w.Remaining
		}
		leases := make([]string, len(w.Leases))
		for i, l := range w.Leases {
			leases[i] = fmt.Sprintf("%s: %d", l.Gateway, l.Held)
		}
		t.add(w.Scope, w.Window, w.Used, limit, left, time.Duration(w.ResetSeconds)*time.Second, w.Throttled, strings.Join(leases, ", "))
	}
	return page{sheets: []sheet{t}}
}

func envoysPage(l *envoy.Status, _ asked) page {
	groups := sheet{{"group", "envoys", "here", "refused since", "why"}}
	for _, g := range l.Groups {
		since, why := time.Time{}, ""
		if r := g.Refused; r != nil {
			since, why = r.Since, r.Type+" by "+r.Node+": "+r.Reason
			if r.Withdrawn {
				why = "withdrawn, " + why
			}
		}
		groups.add(g.Group, g.Nodes, g.Here, since, why)
	}
	t := sheet{{"node", "group", "envoy", "resources", "served", "accepted", "refused"}}
	for _, n := range l.Nodes {
		for _, r := range n.Resources {
			refused := ""
			if r.Refused != "" {
				refused = r.Refused + ": " + r.Reason
			}
			t.add(n.ID, n.Group, n.Version, r.Type, r.Serving, r.Accepted, refused)
		}
	}
	return page{sheets: []sheet{groups, t}}
}
