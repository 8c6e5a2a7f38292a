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
	When        *when
	Forms       []form
	// Next is a link to the page of the decision. It may be nil.
	Next *button
}

// attentionSize is the maximum number of entries.
const attentionSize = 5

// Endpoints of the actions that are performed in place.
const (
	grantRow  = "POST /admin/approvals/grant"
	denyRow   = "POST /admin/approvals/deny"
	snoozeRow = "POST /admin/spend/snooze"
)

// newAttention lists problems first, then approval requests, then idle resources, the most expensive first.
func newAttention(v *visit, f *overviewFacts) (a attention) {
	o := &f.overview.Is
	a.Unknown = len(o.Unknown) > 0 || !f.overview.OK() || !f.idle.OK() && !offBecause(f.idle)
	a.Items = slices.Concat(gatewayItems(v, o), driftItems(v, o))
	for i := range o.Approvals {
		a.Items = append(a.Items, approvalItem(v, &o.Approvals[i]))
	}
	a.Items = append(a.Items, idleItems(v, f.idle.Is.Resources)...)
	if n := len(a.Items) - attentionSize; n > 0 {
		a.Items, a.More = a.Items[:attentionSize], n
	}
	return a
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

// approvalItem returns the entry of an approval request, with Approve and Deny. If the principal is anonymous, the decision is recorded
// under the name that the gateway assigns to anonymous principals.
func approvalItem(v *visit, a *approval.PendingApproval) item {
	until := v.When(a.Until)
	x := item{Level: levelWarn, Icon: "inbox", Title: cmp.Or(readable(a.Summary), a.Call), Path: v.Link("approvals") + "#" + a.ID, When: &until}
	x.Text = "Requested by " + callerText(a.Key, a.Team)
	x.Text += deniedBy(a.DeniedBy) + approvedFor(a.USD, a.Per) + " · request expires "
	for _, answer := range []struct{ pattern, action, button string }{{grantRow, "approvals/grant", "Approve"}, {denyRow, "approvals/deny", "Deny"}} {
		if v.may(answer.pattern) {
			f := v.post(answer.action, a.ID, answer.button)
			f.Main = answer.pattern == grantRow
			if v.scope.Anonymous {
				f.Hidden = append(f.Hidden, hiddenField{"by", v.scope.Name})
			}
			x.Forms = append(x.Forms, f)
		}
	}
	return x
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
			Text: idleReason(r.Reason) + " for " + age(v.now(),
				r.Since) + " · " + amount(r.Cost) + " so far, " + amount(r.PerMonth) + " per month if it stays idle",
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

// Rest describes the omitted entries.
func (a attention) Rest() string { return strconv.Itoa(a.More) + " more" }
