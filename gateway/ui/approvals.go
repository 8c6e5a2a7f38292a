package ui

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

// approvalData holds the data of the approval inbox.
type approvalData struct {
	approval.List

	// Budgets are the budgets of the organisation.
	Budgets []money.BudgetRow
}

func loadApprovals(v *visit) (any, int, string) {
	list := ask[approval.List](v, approvalList, nil)
	d := approvalData{List: list.Is}
	if v.may(budgetRow) && len(d.Approvals) > 0 {
		d.Budgets = ask[money.BudgetList](v, budgetRow, url.Values{"limit": {"1000"}}).Is.Budgets
	}
	return d, list.Status, list.Fault
}

// isPending reports whether a request is waiting for approval.
func (v *visit) isPending(r *approval.Record) bool {
	return r.State == approval.Pending && r.Until.After(v.now())
}

// all reports whether resolved requests are also shown: if the page selects them.
func (d approvalData) all(f *frame) bool { return f.Query("view") == "all" }

// Head returns the header, with tabs for pending and for all requests.
func (d approvalData) Head(f *frame) head {
	n := 0
	for i := range d.Approvals {
		if f.isPending(&d.Approvals[i]) {
			n++
		}
	}
	return head{
		Title: "Approvals", Text: "Requests that were denied by a policy or budget and that you can allow once.",
		Tabs: []tab{
			{Title: "Pending", Path: f.With("view", "", "page", ""), Here: !d.all(f), Count: strconv.Itoa(n)},
			{Title: "All", Path: f.With("view", "all", "page", ""), Here: d.all(f), Count: strconv.Itoa(len(d.Approvals))},
		},
	}
}

// Shown returns the requests of the selected view.
func (d approvalData) Shown(f *frame) excerpt[approval.Record] {
	list := slices.Clone(d.Approvals)
	if !d.all(f) {
		list = slices.DeleteFunc(list, func(r approval.Record) bool { return !f.isPending(&r) })
	}
	return cut(f.visit, list)
}

// Empty returns the empty state of the inbox.
func (d approvalData) Empty(f *frame) empty {
	e := empty{
		Icon: "inbox", Title: "No pending requests",
		Text: "A denied request appears here if its policy or budget allows approvals. After approval, the caller can send the request one more time.",
	}
	if len(d.Approvals) > 0 && !d.all(f) {
		e.Next = &button{Title: "View answered requests", Path: f.With("view", "all")}
		return e
	}
	e.Code = &code{"configuration", "policies:\n  - policy: gpu_count\n    params: {max_per_pod: 2}\n    approvable: true"}
	return e
}

// Price formats the maximum cost of a request.
func (approvalData) Price(r approval.Record) string {
	if r.USD == "" {
		return "Unknown price"
	}
	return amount(r.USD) + " per " + string(r.Per)
}

// Facts returns the details of a request.
func (d approvalData) Facts(f *frame, r approval.Record) []fact {
	out := []fact{
		{"Requested by", cell{Text: r.Key, Path: f.Link("keys/" + url.PathEscape(r.Key)), Sub: teamName(r.Team)}},
		{"Requested", f.exactCell(r.Asked)},
	}
	room := cell{}
	for i := range d.Budgets {
		if b := &d.Budgets[i]; b.Kind == "team" && b.ID == r.Team && !countBudget(b.Name) {
			room.Lines = append(room.Lines, amount(b.Left)+" of "+amount(b.Limit)+" "+words(b.Name))
		}
	}
	if len(room.Lines) > 0 {
		out = append(out, fact{"Remaining budget of team " + r.Team, room})
	}
	if r.State == approval.Pending || r.State == approval.Granted {
		out = append(out, fact{"Expires", endCell(f.visit, r.Until)})
	}
	if a := r.Answer; a != nil {
		out = append(out, fact{"Answered by", cell{Text: a.By, Sub: a.Reason}}, fact{"Answered", f.exactCell(a.At)})
		if a.MaxUSD != "" {
			out = append(out, fact{"Price limit", textCell(amount(a.MaxUSD))})
		}
	}
	return out
}

// answerForm approves or denies an approval request.
type answerForm struct {
	form

	// Conditions are the fields that only an approval has, and Deny is the address of the button that denies the request.
	Conditions []field
	Deny       string
	// Effect describes the effect of an approval without further conditions.
	Effect string
}

// Answer returns the form that approves or denies a pending request, or revokes an unused approval. It returns nil if the principal lacks the
// permission. A principal without a name has to enter one.
func (d approvalData) Answer(f *frame, r approval.Record) *answerForm {
	pending := f.isPending(&r)
	if !f.Can(grantApproval) || !f.Can(denyApproval) || !pending && r.State != approval.Granted {
		return nil
	}
	var fields []field
	if f.Unnamed() {
		fields = append(fields, field{Name: "by", Label: "Your name", Required: true, Max: 100})
	}
	fields = append(fields, field{
		Name: "reason", Label: "Reason, optional",
		Hint: "Recorded in the audit log. The caller sees the reason of a denial.", Max: 500, Wide: true,
	})
	if !pending {
		x := answerForm{form: f.post("approvals/deny", r.ID, "Revoke approval", fields...)}
		x.Danger = true
		return &x
	}
	price := ""
	if r.USD != "" {
		price = ", for at most " + d.Price(r)
	}
	n := len(fields)
	fields = append(fields,
		field{Name: "for", Label: "Valid for", Value: "1h", Hint: "Such as 30m, 1h or 2d; at most 7d."},
		field{
			Name: "max_usd", Label: "Price limit, USD per " + string(r.Per), Type: "number", Placeholder: usd(r.USD),
			Hint: "Leave it empty for the price of the request.",
		})
	action := "approvals/grant"
	if f.Failed("approvals/deny", r.ID) {
		action = "approvals/deny"
	}
	x := answerForm{form: f.post(action, r.ID, "Approve", fields...), Deny: f.path + "approvals/deny"}
	x.Post, x.Main, x.Fields, x.Conditions = f.path+"approvals/grant", true, x.Fields[:n], x.Fields[n:]
	x.Effect = "The caller can send the same request once within 1 hour" + price + "."
	return &x
}
