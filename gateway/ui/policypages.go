package ui

import (
	"net/url"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
)

// policyPages returns the pages of the group Policy.
func policyPages() []*page {
	return []*page{
		{name: "policies", title: "Policies", asks: "GET /admin/orgs", group: groupPolicy, icon: "shield", load: policies},
		{name: "playground", title: "Playground", asks: tryRow, group: groupPolicy, icon: "flask", load: blankPlayground},
		{name: "dryrun", title: "Dry run", at: "dry-run", asks: explainRow, group: groupPolicy, icon: "play", load: blank},
		{name: "approvals", title: "Approvals", asks: approvalList, group: groupPolicy, icon: "inbox", load: approvals},
		{name: "exceptions", title: "Exceptions", asks: exceptionRow, group: groupPolicy, icon: "hourglass", load: exceptions},
	}
}

func approvals(v *visit) (any, int, string) {
	list := ask[approval.List](v, approvalList, nil)
	return cut(v, list.Is.Approvals), list.Status, list.Fault
}

func exceptions(v *visit) (any, int, string) {
	list := ask[alerts.ExceptionList](v, exceptionRow, url.Values{"limit": {"1000"}})
	return cut(v, list.Is.Exceptions), list.Status, list.Fault
}
