package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// ownRequest holds the data of the page about one request of a caller.
type ownRequest struct {
	selfservice.Decision

	Facts []fact
	// Asked is the request for approval, or nil without one.
	Asked   *selfservice.Request
	parents []link
}

// Head implements headed.
func (d ownRequest) Head(*frame) head {
	badge := statusOf(string(d.Verdict))
	return head{Title: d.Operation, Badge: &badge, Parents: d.parents}
}

func myDecision(v *visit) (any, int, string) {
	x := own[selfservice.Decision](v, "decisions/"+url.PathEscape(v.r.PathValue("id")), nil)
	if !x.OK() {
		return nil, x.Status, x.Fault
	}
	d := newOwnRequest(v, &x.Is)
	if d.Approval != "" {
		list := own[ownApprovals](v, "approvals", nil).Is.Approvals
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
	x := ownRequest{Decision: *d, parents: []link{{Title: "Requests", Path: v.Link("requests")}}}
	x.Detail = readable(withoutAdvice(x.Detail))
	x.ToPass = slices.DeleteFunc(slices.Clone(x.ToPass),
		func(line string) bool { return x.Approval != "" && strings.HasPrefix(line, "or have it approved") })
	for i := range x.Calls {
		x.Calls[i].Detail = withoutAdvice(x.Calls[i].Detail)
	}
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
	Forms          []form
}

// approvalPage holds the data of the page that lists a caller's approval requests.
type approvalPage struct {
	Cards             []approvalCard
	Shown, Prev, Next string
	Empty             empty
}

func myApprovals(v *visit) (any, int, string) {
	var list part[ownApprovals]
	var me part[selfservice.Me]
	together(
		func() { list = own[ownApprovals](v, "approvals", nil) },
		func() { me = own[selfservice.Me](v, "me", nil) },
	)
	return newApprovalPage(v, list.Is.Approvals, &me.Is), list.Status, list.Fault
}

func newApprovalPage(v *visit, list []selfservice.Request, me *selfservice.Me) approvalPage {
	e := cut(v, list)
	p := approvalPage{Shown: e.Shown(), Prev: pageLink(v, e.Before), Next: pageLink(v, e.After)}
	for i := range e.Rows {
		p.Cards = append(p.Cards, newApprovalCard(v, &e.Rows[i], me))
	}
	p.Empty = empty{
		Icon: "inbox", Title: "No requests for approval",
		Text: "Denied requests that can be approved appear here. After a lead or an operator approves a request, you can send it again once.",
	}
	return p
}

func newApprovalCard(v *visit, r *selfservice.Request, me *selfservice.Me) approvalCard {
	c := approvalCard{ID: r.ID, Title: cmp.Or(readable(r.Summary), r.Operation), Status: statusOf(string(r.State))}
	price := "Unknown"
	if r.USD != "" {
		price = amount(r.USD) + " per " + string(r.Per)
	}
	c.Facts = []fact{
		{"Key", textCell(r.Key)},
		{"Cost at most", textCell(price)},
		{"Requested", v.exactCell(r.Asked)},
		{"Request", cell{Text: r.Call, Code: true, Path: v.Link("requests/" + url.PathEscape(r.Decision))}},
		{"ID", codeCell(r.ID)},
	}
	if r.State == approval.Pending {
		c.Facts = append(c.Facts, fact{"Expires", v.exactCell(r.Until)})
		room := cell{}
		for i := range me.Budgets {
			if b := &me.Budgets[i]; b.Left != "" && b.Scope == "team "+r.Team && !countBudget(b.Name) {
				room.Lines = append(room.Lines, amount(b.Left)+" of "+amount(b.Limit)+" "+words(b.Name))
			}
		}
		if len(room.Lines) > 0 {
			c.Facts = append(c.Facts, fact{"Remaining budget of team " + r.Team, room})
		}
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
			field{Name: "max_usd", Label: "Price limit, USD per " + string(r.Per), Type: "number", Placeholder: usd(r.USD), Required: r.USD == ""},
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

// teamKey is a key of a lead's team in the response of the route.
type teamKey struct {
	settings.KeyRecord

	MayRotate bool `json:"may_rotate"`
	MayRevoke bool `json:"may_revoke"`
}

func myKeys(v *visit) (any, int, string) {
	list := own[struct {
		Keys []teamKey `json:"keys"`
	}](v, "keys", nil)
	return teamKeyList(v, list.Is.Keys), list.Status, list.Fault
}

// teamKeyList returns the page that lists the keys of a team.
func teamKeyList(v *visit, list []teamKey) (l listing) {
	l.About.Actions = []button{{Title: "Create key", Icon: "plus", Path: v.Link("create-key"), Main: true}}
	l.Table = newTable(v, list, tableSpec[teamKey]{
		Name: "keys", Caption: "Keys of your team", Whole: true, Muted: func(k *teamKey) bool { return k.State != "in force" },
		Columns: []column[teamKey]{
			{
				Key: "key", Title: "Key", Compare: byText(func(k *teamKey) string { return k.ID }),
				Cell: func(k *teamKey) cell { return textCell(k.ID, present(k.Owner)...) },
			},
			{Key: "state", Title: "State", Cell: func(k *teamKey) cell { return statusCell(k.State) }},
			{Key: "roles", Title: "Roles", Cell: func(k *teamKey) cell { return textCell(roleNames(&k.KeyRecord)) }},
			{Key: "used", Title: "Last used", Cell: func(k *teamKey) cell { return v.whenCell(k.Used) }},
			{Key: "expires", Title: "Expires", Cell: func(k *teamKey) cell { return v.whenOr(k.Expires, "Never") }},
			{Key: "limits", Title: "Rate limits", Cell: func(k *teamKey) cell { return cell{Lines: limitLines(k.Limits)} }},
			{Key: "budget", Title: "Budgets", Cell: func(k *teamKey) cell { return cell{Lines: budgetLines(k.Budget)} }},
			{Key: "created", Title: "Created", Off: true, Cell: func(k *teamKey) cell { return v.createdCell(&k.KeyRecord) }},
			{Title: "Actions", Cell: func(k *teamKey) cell { return cell{Menu: "Actions", Forms: teamKeyForms(v, k)} }},
		},
		Empty: empty{Icon: "key", Title: "No keys", Text: "Keys of your team appear here. Create one for each program that calls the gateway."},
	})
	return l
}

// teamKeyForms returns the forms that rotate and revoke a key, if the lead may do so.
func teamKeyForms(v *visit, k *teamKey) (out []form) {
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
	parents := []link{{Title: "Keys", Path: v.Link("keys")}}
	return newKeyForm{v.keyForm(nil, strings.Fields("viewer operator")), parents}, 0, ""
}
