package ui

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// attention holds the Needs attention list: template "attention".
type attention struct {
	Items []item
	// More is the number of omitted entries.
	More int
	// Unknown reports that entries may be missing.
	Unknown bool
	// Kinds names the kinds of entries that the list can have. If it is empty, the page names the kinds of entries for operators.
	Kinds string
}

// item is an entry that needs attention. Its actions are performed in place.
type item struct {
	Level, Icon string
	Title, Path string
	Text        string
	// Badge warns of a consequence of the actions. It may be nil.
	Badge *status
	When  *when
	Forms []form
}

// attentionSize is the maximum number of entries.
const attentionSize = 5

// attentionBudgets is the maximum number of entries for budgets.
const attentionBudgets = 2

// newAttention lists budgets that run out first, then problems, approval requests, then idle resources, the most expensive first.
func newAttention(v *visit, f *overviewFacts) (a attention) {
	o := &f.overview.Is
	a.Unknown = len(o.Unknown) > 0 || !f.overview.OK() || !f.idle.OK() && !offBecause(f.idle) || !f.budgets.OK() && !offBecause(f.budgets)
	budgets := willRunOut(f.budgets.Is.Budgets)
	for _, b := range budgets[:min(attentionBudgets, len(budgets))] {
		a.Items = append(a.Items, budgetItem(v, b, v.Link("budgets")))
	}
	a.More = len(budgets) - len(a.Items)
	a.Items = slices.Concat(a.Items, gatewayItems(v, o), driftItems(v, o))
	for i := range o.Approvals {
		a.Items = append(a.Items, approvalItem(v, &o.Approvals[i], f.budgets.Is.Budgets))
	}
	a.Items = append(a.Items, idleItems(v, f.idle.Is.Resources)...)
	a.shorten()
	return a
}

// shorten omits the last entries of a long list.
func (a *attention) shorten() {
	if n := len(a.Items) - attentionSize; n > 0 {
		a.Items, a.More = a.Items[:attentionSize], a.More+n
	}
}

func gatewayItems(v *visit, o *operator.Overview) (out []item) {
	for i := range o.Gateways {
		g := &o.Gateways[i]
		if s := gatewayState(g); s.Level != levelGood {
			text := strings.Join(slices.Concat(present(g.Fault), g.Restart, g.Undelivered), "; ")
			out = append(out, item{
				Level: s.Level, Icon: "network", Title: "Gateway " + g.Instance + ": " + strings.ToLower(s.Word),
				Text: text, Path: v.Link("gateways"),
			})
		}
	}
	return out
}

func driftItems(v *visit, o *operator.Overview) (out []item) {
	for _, d := range o.Drift {
		x := item{Level: levelWarn, Icon: "server", Title: "The ledger may differ from the platform's records", Path: v.Link("resources")}
		if !d.Complete {
			x.Level, x.Title, x.Text = levelBad, "The ledger is incomplete", "Calls that raise cost are refused until the ledger is rebuilt. "
		}
		if d.Unowned > 0 {
			x.Text += plural(d.Unowned, "resource") + " without an owner. "
		}
		if d.Open > 0 {
			x.Text += plural(d.Open, "reservation") + " with an unknown outcome."
		}
		out = append(out, x)
	}
	return out
}

// approvalItem returns the entry of an approval request, with Approve and Deny.
func approvalItem(v *visit, a *approval.PendingApproval, budgets []money.BudgetRow) item {
	x := item{Level: levelWarn, Icon: "inbox", Title: cmp.Or(readable(a.Summary), a.Call), Path: v.Link("approvals") + "#" + a.ID, When: new(v.When(a.Until))}
	x.Text = "Requested by " + callerText(a.Key, a.Team)
	x.Text += deniedBy(a.DeniedBy) + approvedFor(a.USD, a.Per)
	x.effect(v, effectsOf(v, budgets, a.Team, a.Key, a.USD, approval.Unit(a.Per)))
	x.Text += " · request expires "
	if v.may(grantApproval) && v.may(denyApproval) {
		f := v.post("approvals/grant", a.ID, "Approve", v.nameFields()...)
		f.Main, f.Deny = true, v.path+"approvals/deny"
		x.Forms = []form{f}
	}
	return x
}

// effect adds the effect of an approval on the budget with the smallest remaining share, and warns if the budget is exceeded.
func (x *item) effect(v *visit, list []effect) {
	if len(list) == 0 || !list[0].Known {
		return
	}
	least := func(e *effect) float64 { return min(e.After, e.AtEnd) / max(decimal(e.Limit), 0.01) }
	e := slices.MinFunc(list, func(a, b effect) int { return cmp.Compare(least(&a), least(&b)) })
	x.Text += " · " + e.Scope + ": " + amount(e.Left) + " of " + amount(e.Limit) + " " + words(e.Name) + " remaining, after approval " +
		strings.TrimSpace(leftOf(e.After)+" "+e.For)
	switch {
	case e.AtEnd < 0:
		x.Badge = &status{levelBad, leftOf(e.AtEnd) + " by " + e.Ends.In(v.zone()).Format("2 Jan") + " if everything keeps running"}
	case e.After < 0:
		x.Badge = &status{levelBad, leftOf(e.After) + " right after approval"}
	}
}

// deniedBy names the policies and budgets that denied a request.
func deniedBy(by []string) string {
	if len(by) == 0 {
		return ""
	}
	return " · denied by " + readable(strings.Join(by, ", "))
}

// approvedFor describes what an approval without further conditions permits. usd is "" for an unknown price.
func approvedFor(usd, per string) string {
	if usd == "" {
		return ""
	}
	return " · if approved: once within 1 hour, at most " + amount(usd) + " per " + per
}

// idleItems returns the idle resources that are not snoozed.
func idleItems(v *visit, list []money.IdleResource) (out []item) {
	list = slices.DeleteFunc(slices.Clone(list), func(r money.IdleResource) bool { return r.SnoozedUntil != nil })
	slices.SortStableFunc(list, func(a, b money.IdleResource) int { return cmp.Compare(decimal(b.PerMonth), decimal(a.PerMonth)) })
	for i := range list {
		r := &list[i]
		x := item{
			Level: levelInfo, Icon: "moon", Title: cmp.Or(r.Name, r.ID) + " is idle", Path: v.Link("resources/" + url.PathEscape(r.ID)),
			Text: idleText(v, &r.Idle),
		}
		if r.Team != "" {
			x.Text += " · " + r.Team
		}
		if v.may(snoozeRow) {
			f := v.post(strings.TrimPrefix(snoozeRow, "POST /admin/"), r.ID, "Snooze 7 days")
			f.Hidden = append(f.Hidden, hiddenField{"for", "7d"})
			x.Forms = []form{f}
		}
		out = append(out, x)
	}
	return out
}

// idleText describes the reason and the cost of an idle resource.
func idleText(v *visit, i *money.Idle) string {
	return idleReason(i.Reason) + " for " + lasting(v.now().Sub(i.Since)) + " · " + amount(i.Cost) + " so far, " + amount(i.PerMonth) + " per month if it stays idle"
}

// Rest describes the omitted entries.
func (a attention) Rest() string { return strconv.Itoa(a.More) + " more" }
