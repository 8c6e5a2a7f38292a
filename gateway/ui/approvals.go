package ui

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/gateway/approval"
)

// approvalData holds the data of the approval inbox.
type approvalData struct{ approval.List }

func loadApprovals(v *visit) (any, int, string) {
	list := ask[approval.List](v, approvalList, nil)
	return approvalData{list.Is}, list.Status, list.Fault
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
		Title: "Approvals", Text: "Requests that a policy or budget denied and that you can let through once.",
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
		Text: "A denied request appears here if its policy or budget is approvable. Approve it, and the caller may send the same request once.",
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
		{"Requested by", cell{Text: r.Key, Path: f.Link("keys/" + url.PathEscape(r.Key)), Sub: r.Team}},
		{"Requested", f.whenCell(r.Asked)},
	}
	if r.State == approval.Pending || r.State == approval.Granted {
		out = append(out, fact{"Expires", endCell(f.visit, r.Until)})
	}
	if a := r.Answer; a != nil {
		out = append(out, fact{"Answered by", cell{Text: a.By, Sub: a.Reason}}, fact{"Answered", f.whenCell(a.At)})
		if a.MaxUSD != "" {
			out = append(out, fact{"Price limit", textCell(amount(a.MaxUSD))})
		}
	}
	return out
}

// Approve returns the form that approves a pending request, or nil if the principal lacks the permission. Its first field is required if
// the principal has no name.
func (d approvalData) Approve(f *frame, r approval.Record) *form {
	if !f.Can(grantApproval) || !f.isPending(&r) {
		return nil
	}
	x := f.post("approvals/grant", r.ID, "Approve", answerFields(f, "Reason", "Kept in the audit log.",
		field{Name: "for", Label: "Valid for", Value: "1h", Hint: "At most 7d."},
		field{Name: "max_usd", Label: "Price limit, USD", Type: "number", Placeholder: r.USD, Hint: "Empty is the price of the request."})...)
	x.Main = true
	return &x
}

// Deny returns the form that denies a request, or revokes an unused approval. It returns nil if the principal lacks the permission.
func (d approvalData) Deny(f *frame, r approval.Record) *form {
	if !f.Can(denyApproval) || !f.isPending(&r) && r.State != approval.Granted {
		return nil
	}
	x := f.post("approvals/deny", r.ID, "Deny", answerFields(f, "Reason", "The caller sees it.")...)
	if r.State == approval.Granted {
		x.Button = "Revoke approval"
	}
	x.Danger = true
	return &x
}

// answerFields returns the fields of a form that approves or denies a request.
func answerFields(f *frame, label, hint string, more ...field) []field {
	var out []field
	if f.Unnamed() {
		out = append(out, field{Name: "by", Label: "Your name", Required: true, Max: 100})
	}
	out = append(out, more...)
	return append(out, field{Name: "reason", Label: label, Hint: hint, Max: 500, Wide: true})
}
