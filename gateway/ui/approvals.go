package ui

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

// approvalData holds the data of the approval inbox.
type approvalData struct {
	head
	paging

	// Requests are the stored requests of the selected view. Empty is shown if there are none, unless its title is empty.
	Requests []inboxRequest
	Empty    empty
	// Answers lists earlier decisions in the view of decided requests. NoAnswers explains why they cannot be listed.
	Answers   table
	NoAnswers string
}

// inboxRequest is an approval request in the inbox.
type inboxRequest struct {
	*approval.Record

	Status status
	// Price is the maximum cost of the request.
	Price string
	Facts []fact
	// Effects lists the budgets that a pending request would draw on.
	Effects table
	// Form approves or denies the request. It may be nil.
	Form *answerForm
}

func loadApprovals(v *visit) (any, int, string) {
	var list part[approval.List]
	var log *part[audit.Page]
	together(
		func() { list = ask[approval.List](v, approvalList, nil) },
		func() {
			if decidedView(v) {
				log = new(approvalAnswers(v))
			}
		},
	)
	var budgets []money.BudgetRow
	if v.may(budgetRow) && len(list.Is.Approvals) > 0 {
		budgets = ask[money.BudgetList](v, budgetRow, url.Values{"limit": {"1000"}}).Is.Budgets
	}
	return newApprovalData(v, list.Is.Approvals, budgets, log), list.Status, list.Fault
}

// newApprovalData returns the data of the inbox. log holds the answers in the audit log. It is nil in the view of pending requests.
func newApprovalData(v *visit, list []approval.Record, budgets []money.BudgetRow, log *part[audit.Page]) (d approvalData) {
	pending := 0
	for i := range list {
		if v.isPending(&list[i]) {
			pending++
		}
	}
	id, decided := v.Query("id"), decidedView(v)
	d.head = head{
		Title: "Approvals", Text: "Requests that were denied by a policy or budget and that you can allow once.",
		Tabs: []tab{
			{Title: "Pending", Path: v.Link("approvals"), Here: !decided, Count: strconv.Itoa(pending)},
			{Title: "Decided", Path: v.Link("approvals", "view", "decided"), Here: decided && id == ""},
		},
	}
	shown, paging := cut(v, slices.DeleteFunc(slices.Clone(list), func(r approval.Record) bool {
		if id != "" {
			return r.ID != id
		}
		return v.isPending(&r) == decided
	}))
	d.paging = paging
	for i := range shown {
		d.Requests = append(d.Requests, newInboxRequest(v, &shown[i], budgets))
	}
	if log != nil {
		d.Answers = answerTable(v, list, log.Is.Changes)
		if !log.OK() {
			d.NoAnswers = "Earlier decisions are in the audit log. " + upper(log.Fault)
		}
	}
	if len(d.Answers.Rows) == 0 {
		d.Empty = noApprovals(id, decided)
	}
	return d
}

func newInboxRequest(v *visit, r *approval.Record, budgets []money.BudgetRow) inboxRequest {
	x := inboxRequest{
		Record: r, Status: v.approvalStatus(r), Price: priceOf(r.USD, r.Per, "Unknown price"),
		Facts: requestFacts(v, r), Form: newAnswerForm(v, r),
	}
	if v.isPending(r) {
		x.Effects = effectTable(v, effectsOf(v, budgets, r.Team, r.Key, r.USD, r.Per))
	}
	return x
}

// decidedView reports whether the page shows decided requests, or the request with the ID in the address.
func decidedView(v *visit) bool { return v.Query("view") == "decided" || v.Query("id") != "" }

// approvalAnswers returns the answers to approval requests in the audit log, or only those to the request with the ID in the address.
func approvalAnswers(v *visit) part[audit.Page] {
	return ask[audit.Page](v, auditLog, url.Values{"kind": {"approval"}, "resource": {v.Query("id")}, "limit": {"500"}})
}

// approvalPath returns the address of the page that shows an approval request, or "" for an empty ID.
func approvalPath(v *visit, id string) string {
	if id == "" {
		return ""
	}
	return v.Link("approvals", "view", "decided", "id", id)
}

// approvalStates returns the states of the approval requests that are stored, and of those with an answer in the audit log, by ID.
func approvalStates(v *visit) map[string]status {
	var list part[approval.List]
	var log part[audit.Page]
	together(
		func() { list = ask[approval.List](v, approvalList, nil) },
		func() { log = approvalAnswers(v) },
	)
	out := make(map[string]status)
	for _, c := range slices.Backward(log.Is.Changes) { // the last answer counts
		if answeredWith(&c) {
			out[c.Resource] = answerStatus(&c)
		}
	}
	for i := range list.Is.Approvals {
		r := &list.Is.Approvals[i]
		out[r.ID] = v.approvalStatus(r)
	}
	return out
}

// approvalStatus returns the status of an approval request.
func (v *visit) approvalStatus(r *approval.Record) status {
	if r.State == approval.Pending && !v.isPending(r) {
		return statusOf("expired")
	}
	return statusOf(string(r.State))
}

// answeredWith reports whether a change in the audit log is a successful answer to an approval request.
func answeredWith(c *audit.Change) bool {
	return c.Kind == "approval" && c.Status != 0 && c.Status < http.StatusBadRequest
}

// answerStatus returns the decision of an answer in the audit log.
func answerStatus(c *audit.Change) status {
	if strings.HasSuffix(changePath(c), "/grant") {
		return statusOf("granted")
	}
	return statusOf("denied")
}

// isPending reports whether a request is waiting for approval.
func (v *visit) isPending(r *approval.Record) bool {
	return r.State == approval.Pending && r.Until.After(v.now())
}

// answerTable lists earlier approval decisions. The audit log contains these decisions, but their approval requests are no longer stored.
func answerTable(v *visit, stored []approval.Record, log []audit.Change) table {
	list := slices.DeleteFunc(slices.Clone(log), func(c audit.Change) bool {
		return !answeredWith(&c) || slices.ContainsFunc(stored, func(r approval.Record) bool { return r.ID == c.Resource })
	})
	return newTable(v, list, tableSpec[audit.Change]{
		Name: "answers", Caption: "Earlier decisions, newest first", Columns: []column[audit.Change]{
			{Title: "Request", Cell: func(c *audit.Change) cell { return textCell(cmp.Or(readable(c.Summary), c.Resource), c.Resource) }},
			{Title: "Decision", Cell: func(c *audit.Change) cell { return cell{Status: new(answerStatus(c))} }},
			{Title: "Decided by", Value: func(c *audit.Change) any { return cmp.Or(callerText(c.Key, c.Team), actor(c)) }},
			{Title: "Time", Cell: func(c *audit.Change) cell { return v.exactCell(c.Time) }},
			{Title: "Reason and conditions", Cell: func(c *audit.Change) cell { return cell{Lines: parameters(c.Query)} }},
		},
	})
}

// noApprovals returns the empty state of the inbox, of the view of decided requests, or of the view of one request.
func noApprovals(id string, decided bool) empty {
	switch {
	case id != "":
		return empty{
			Icon: "inbox", Title: "Request not found",
			Text: "The request " + id + " is no longer stored, and the audit log of this gateway contains no decision about it.",
		}
	case decided:
		return empty{Icon: "inbox", Title: "No decided requests", Text: "Approved and denied requests appear here with their decisions."}
	}
	e := empty{
		Icon: "inbox", Title: "No pending requests",
		Text: "A denied request appears here if its policy or budget allows approvals. After approval, the caller can send the request one more time.",
	}
	e.Code = &code{"configuration", "policies:\n  - policy: gpu_count\n    params: {max_per_pod: 2}\n    approvable: true"}
	return e
}

// priceOf formats the maximum cost of a request. It returns unknown for an unknown price.
func priceOf(usd string, per approval.Unit, unknown string) string {
	if usd == "" {
		return unknown
	}
	return amount(usd) + " per " + string(per)
}

// requestFacts returns the details of a request.
func requestFacts(v *visit, r *approval.Record) []fact {
	out := []fact{
		{"Requested by", cell{Text: r.Key, Path: v.Link("keys/" + url.PathEscape(r.Key)), Sub: teamName(r.Team)}},
		{"Requested", v.exactCell(r.Asked)},
	}
	if r.State == approval.Pending || r.State == approval.Granted {
		out = append(out, fact{"Expires", endCell(v, r.Until)})
	}
	if a := r.Answer; a != nil {
		out = append(out, fact{"Decided by", cell{Text: operatorName(a.By), Sub: a.Reason}}, fact{"Decided", v.exactCell(a.At)})
		if a.MaxUSD != "" {
			out = append(out, fact{"Price limit", textCell(amount(a.MaxUSD))})
		}
	}
	return out
}

// effect is the effect of an approval on a budget. The amounts are in USD.
type effect struct {
	*money.BudgetRow

	// Known reports that the price of the request is known. After is the amount that remains.
	Known bool
	After float64
	// For is the time that After accounts for. It is empty for a limit on the hourly cost.
	For string
	// AtEnd is the amount that remains at the end of the budget's period if the resource and all others run until then. It is infinite if it
	// is unknown, the budget has no period, or the request is a run.
	AtEnd float64
}

// effectsOf returns the effects of approving a request on the budgets of its team, its key and the organisation, in the order of the list.
func effectsOf(v *visit, list []money.BudgetRow, team, key, usd string, per approval.Unit) (out []effect) {
	for i := range list {
		b := &list[i]
		applies := b.Kind == "organisation" || b.Kind == "team" && b.ID == team || b.Kind == "key" && b.ID == key
		if !applies || b.Left == "" || countBudget(b.Name) || per == approval.PerRun && isHourly(b) {
			continue
		}
		e := effect{BudgetRow: b, Known: usd != "", After: decimal(b.Left) - decimal(usd), AtEnd: math.Inf(1)}
		if !isHourly(b) {
			e.For = map[approval.Unit]string{approval.PerHour: "for the first hour"}[per]
		}
		if e.Known && b.Free != "" && per == approval.PerHour {
			e.AtEnd = decimal(b.Free) - decimal(usd)*b.Ends.Sub(v.now()).Hours()
		}
		out = append(out, e)
	}
	return out
}

// effectTable lists the effects of an approval.
func effectTable(v *visit, list []effect) table {
	columns := []column[effect]{
		{Title: "Budget", Cell: func(e *effect) cell { return textCell(title(e.Scope), words(e.Name)) }},
		{Title: "Remaining", Number: true, Cell: func(e *effect) cell { return textCell(amount(e.Left), "of "+amount(e.Limit)) }},
		{Title: "After approval", Number: true, Cell: func(e *effect) cell {
			if !e.Known {
				return textCell("Unknown")
			}
			return leftCell(e.After, e.For)
		}},
		{Title: "If everything runs until the reset", Number: true, Cell: func(e *effect) cell {
			if math.IsInf(e.AtEnd, 1) {
				return textCell("–")
			}
			return leftCell(e.AtEnd, resetText(v, e.BudgetRow)...)
		}},
	}
	if !slices.ContainsFunc(list, func(e effect) bool { return !math.IsInf(e.AtEnd, 1) }) {
		columns = columns[:3]
	}
	return newTable(v, list, tableSpec[effect]{Name: "effects", Caption: "Effect of an approval on budgets", Columns: columns})
}

// leftOf describes the remaining amount of a budget, or by how much the budget is exceeded.
func leftOf(usd float64) string {
	if usd < 0 {
		return usdOf(-usd) + " over"
	}
	return usdOf(usd) + " left"
}

// leftCell shows the remaining amount of a budget. It marks an amount by which the budget is exceeded.
func leftCell(usd float64, sub ...string) cell {
	c := textCell(leftOf(usd), sub...)
	if usd < 0 {
		c.Status, c.Text = &status{levelBad, c.Text}, ""
	}
	return c
}

// answerForm approves or denies an approval request.
type answerForm struct {
	form

	// Conditions are fields that apply only to an approval.
	Conditions []field
	// Effect describes what an approval permits if the fields are left unchanged.
	Effect string
}

// newAnswerForm returns the form that approves or denies a pending request, or revokes an unused approval. It returns nil if the principal
// lacks the permission. A principal without a name has to enter one.
func newAnswerForm(v *visit, r *approval.Record) *answerForm {
	pending := v.isPending(r)
	if !v.may(grantApproval) || !v.may(denyApproval) || !pending && r.State != approval.Granted {
		return nil
	}
	fields := v.nameFields()
	for i := range fields {
		fields[i].Hint = "Names are not verified because sign-in is off."
	}
	fields = append(fields, field{
		Name: "reason", Label: "Reason, optional",
		Hint: "The reason is recorded in the audit log. If you deny the request, the caller also sees it.", Max: 500, Wide: true,
	})
	if !pending {
		x := answerForm{form: v.post("approvals/deny", r.ID, "Revoke approval", fields...)}
		x.Danger = true
		return &x
	}
	price := ""
	if r.USD != "" {
		price = ", for at most " + priceOf(r.USD, r.Per, "")
	}
	n := len(fields)
	fields = append(fields,
		field{Name: "for", Label: "Valid for", Value: "1h", Hint: "For example 30m, 1h or 2d. The maximum is 7d."},
		field{
			Name: "max_usd", Label: "Price limit, USD per " + string(r.Per), Type: "number", Placeholder: usdLimit(r.USD),
			Hint: "If empty, the limit is the price of the request.",
		})
	action := "approvals/grant"
	if v.Failed("approvals/deny", r.ID) {
		action = "approvals/deny"
	}
	x := answerForm{form: v.post(action, r.ID, "Approve", fields...)}
	x.Post, x.Deny, x.Main, x.Fields, x.Conditions = v.path+"approvals/grant", v.path+"approvals/deny", true, x.Fields[:n], x.Fields[n:]
	x.Effect = "The caller can send the same request once within 1 hour" + price + "."
	return &x
}
