package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
)

// ownRequest holds the data of the page about one request of a caller.
type ownRequest struct {
	head
	selfservice.Decision

	Facts []fact
	// Asked is the request for approval, or nil without one.
	Asked *selfservice.Request
}

func myDecision(v *visit) (any, int, string) {
	x := own[selfservice.Decision](v, "decisions/"+url.PathEscape(v.r.PathValue("id")), nil)
	if !x.OK() {
		return nil, x.Status, x.Fault
	}
	d := newOwnRequest(v, &x.Is)
	if d.Approval != "" {
		list := own[selfservice.RequestList](v, "approvals", nil).Is.Approvals
		if i := slices.IndexFunc(list, func(r selfservice.Request) bool { return r.ID == d.Approval }); i >= 0 {
			d.Asked = &list[i]
		}
	}
	return d, 0, ""
}

// Approved describes what an approved request for approval permits.
func (v *visit) Approved(r *selfservice.Request) string {
	return "Approved until " + moment(v.When(r.Until).At) + ". Send the same request again."
}

func newOwnRequest(v *visit, d *selfservice.Decision) ownRequest {
	x := ownRequest{Decision: *d}
	x.head = head{Title: d.Operation, Badge: new(statusOf(string(d.Verdict))), Parents: v.parents("Requests", "requests")}
	x.Detail = readable(withoutAdvice(x.Detail))
	x.ToPass = slices.DeleteFunc(slices.Clone(x.ToPass),
		func(line string) bool { return x.Approval != "" && strings.HasPrefix(line, "or have it approved") })
	var policies []explain.Policy
	for i := range x.Calls {
		x.Calls[i].Detail = withoutAdvice(x.Calls[i].Detail)
		policies = append(policies, x.Calls[i].Policies...)
	}
	x.ToPass = changesFor(policies, x.ToPass)
	x.Facts = []fact{
		{"Time", v.exactCell(d.Time)},
		{"Key", textCell(d.Key)},
		{"Request", textCell(d.Method+" "+d.Path, d.Dialect)},
		{"Status", textCell(cmp.Or(statusCode(d.Status), "–"), words(d.Refusal))},
		{"Request ID", codeCell(d.DecisionID)},
	}
	if d.Stage != "" {
		x.Facts = append(x.Facts, fact{"Decided at stage", textCell(d.Stage)})
	}
	if d.Approval != "" {
		x.Facts = append(x.Facts, fact{"Request for approval", linkCell(d.Approval, v.Link("approvals")+"#"+d.Approval)})
	}
	return x
}

// approvalCard shows an approval request with its resolution or the forms that resolve it.
type approvalCard struct {
	ID, Title string
	Status    status
	Facts     []fact
	// Refusals lists the reasons for denial that an approval overrides.
	Refusals []string
	// Answer describes the resolution. It is empty for pending requests. Effect describes the effect of an approval.
	Answer, Effect string
	Effects        table
	Forms          []form
}

// approvalPage holds the data of the page that lists a caller's approval requests.
type approvalPage struct {
	paging

	Cards []approvalCard
	Empty empty
}

func myApprovals(v *visit) (any, int, string) {
	var list part[selfservice.RequestList]
	var me part[selfservice.Me]
	together(
		func() { list = own[selfservice.RequestList](v, "approvals", nil) },
		func() { me = own[selfservice.Me](v, "me", url.Values{"forecast": {"true"}}) },
	)
	return newApprovalPage(v, list.Is.Approvals, &me.Is), list.Status, list.Fault
}

func newApprovalPage(v *visit, list []selfservice.Request, me *selfservice.Me) approvalPage {
	shown, paging := cut(v, list)
	p := approvalPage{paging: paging}
	for i := range shown {
		p.Cards = append(p.Cards, newApprovalCard(v, &shown[i], me))
	}
	p.Empty = empty{
		Icon: "inbox", Title: "No requests for approval",
		Text: "This page lists denied requests that a lead or an operator can approve. You can send an approved request again once.",
	}
	return p
}

func newApprovalCard(v *visit, r *selfservice.Request, me *selfservice.Me) approvalCard {
	c := approvalCard{ID: r.ID, Title: cmp.Or(readable(r.Summary), r.Operation), Status: statusOf(string(r.State))}
	price := priceOf(r.USD, r.Per, "Unknown")
	c.Facts = []fact{
		{"Key", textCell(r.Key)},
		{"Cost at most", textCell(price)},
		{"Requested", v.exactCell(r.Asked)},
		{"Request", cell{Text: r.Call, Code: true, Path: v.Link("requests/" + url.PathEscape(r.Decision))}},
		{"ID", codeCell(r.ID)},
	}
	if r.State == approval.Pending {
		c.Facts = append(c.Facts, fact{"Expires", v.exactCell(r.Until)})
		c.Effects = effectTable(v, effectsOf(v, ownBudgetRows(me.Budgets), r.Team, r.Key, r.USD, r.Per))
		if r.MayGrant && me.Grants != nil {
			c.Facts = append(c.Facts, fact{"You may approve", textCell(mayApprove(me.Grants))})
			c.Effect = "If you approve, the caller can send the same request once within the chosen time"
			if r.USD != "" {
				c.Effect += ", for at most " + price
			}
			c.Effect += "."
		}
	}
	for _, refusal := range r.Refusals {
		c.Refusals = append(c.Refusals, refusal.By+": "+refusal.Message)
	}
	if a := r.Answer; a != nil {
		c.Answer = "Answered by " + a.By + ", " + moment(v.When(a.At).At)
		if a.Reason != "" {
			c.Answer += ": " + a.Reason
		}
		if a.MaxUSD != "" {
			c.Answer += " (at most " + amount(a.MaxUSD) + " per " + string(r.Per) + ")"
		}
		if r.State == approval.Granted {
			c.Answer += ". " + v.Approved(r)
		}
	}
	c.Forms = answerForms(v, r)
	return c
}

// answerForms returns the forms that approve and deny a request, if the caller may resolve it.
func answerForms(v *visit, r *selfservice.Request) (out []form) {
	if r.MayGrant {
		f := v.post("approvals/grant", r.ID, "Approve",
			field{Name: "for", Label: "Valid for", Type: "select", Options: []option{{"1h", "1 hour", true}, {"24h", "1 day", false}, {"168h", "1 week", false}}},
			field{Name: "max_usd", Label: "Price limit, USD per " + string(r.Per), Type: "number", Placeholder: usdLimit(r.USD), Required: r.USD == ""},
			field{Name: "reason", Label: "Note, shown to the caller (optional)", Max: 500, Wide: true})
		f.Main = true
		out = append(out, f)
	}
	if r.MayDeny {
		button := "Deny"
		if r.State == approval.Granted {
			button = "Withdraw"
		}
		out = append(out, v.post("approvals/deny", r.ID, button,
			field{Name: "reason", Label: "Reason, shown to the caller", Max: 500, Wide: true}))
	}
	return out
}

func myKeys(v *visit) (any, int, string) {
	list := own[struct {
		Keys []callers.TeamKey `json:"keys"`
	}](v, "keys", nil)
	return teamKeyList(v, list.Is.Keys), list.Status, list.Fault
}

// teamKeyList returns the page that lists the keys of a team.
func teamKeyList(v *visit, list []callers.TeamKey) (l listing) {
	l.Actions = []button{{Title: "Create key", Icon: "plus", Path: v.Link("create-key"), Main: true}}
	l.Table = newTable(v, list, tableSpec[callers.TeamKey]{
		Name: "keys", Caption: "Keys of your team", Whole: true, Muted: func(k *callers.TeamKey) bool { return k.State != "in force" },
		Columns: []column[callers.TeamKey]{
			{
				Key: "key", Title: "Key", Sort: true, Value: func(k *callers.TeamKey) any { return k.ID },
				Cell: func(k *callers.TeamKey) cell { return textCell(k.ID, present(k.Owner)...) },
			},
			{Key: "state", Title: "State", Cell: func(k *callers.TeamKey) cell { return statusCell(k.State) }},
			{Key: "roles", Title: "Roles", Value: func(k *callers.TeamKey) any { return joined(k.Roles) }},
			{Key: "used", Title: "Last used", Value: func(k *callers.TeamKey) any { return k.Used }},
			{Key: "expires", Title: "Expires", Cell: func(k *callers.TeamKey) cell { return v.whenOr(k.Expires, "Never") }},
			{Key: "limits", Title: "Rate limits", Cell: func(k *callers.TeamKey) cell { return cell{Lines: limitLines(k.Limits)} }},
			{Key: "budget", Title: "Budgets", Cell: func(k *callers.TeamKey) cell {
				if len(k.Budget) == 0 {
					return textCell("Team budget")
				}
				return cell{Lines: budgetLines(k.Budget)}
			}},
			{Key: "created", Title: "Created", Off: true, Cell: func(k *callers.TeamKey) cell { return v.createdCell(&k.KeyRecord) }},
			{Title: "Actions", Cell: func(k *callers.TeamKey) cell { return teamKeyActions(v, k) }},
		},
		Empty: empty{Icon: "key", Title: "No keys", Text: "Keys of your team appear here. Create one for each program that calls the gateway."},
	})
	return l
}

// teamKeyActions shows the actions on a key, or who else can change an active key.
func teamKeyActions(v *visit, k *callers.TeamKey) cell {
	forms := teamKeyForms(v, k)
	switch {
	case len(forms) > 0 || k.State != "in force":
		return cell{Menu: "Actions", Forms: forms}
	case k.Created.IsZero():
		return textCell("", "Set in the configuration; an operator can revoke it")
	}
	return textCell("", "Only an operator can change it")
}

// teamKeyForms returns the forms that rotate and revoke a key, if the lead may do so.
func teamKeyForms(v *visit, k *callers.TeamKey) (out []form) {
	if k.MayRotate {
		out = append(out, v.post("keys/rotate", k.ID, "Rotate",
			field{Name: "overlap", Label: "Old secret ends after", Value: "24h", Required: true}))
	}
	if k.MayRevoke {
		revoke := v.post("keys/revoke", k.ID, "Revoke")
		revoke.Danger = true
		out = append(out, revoke)
	}
	return out
}

func myNewKey(v *visit) (any, int, string) {
	if !v.session.Lead {
		return nil, http.StatusForbidden, "only a lead can create keys for a team"
	}
	return v.newKeyForm(nil, "viewer", "operator"), 0, ""
}
