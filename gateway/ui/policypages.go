package ui

// policyPages returns the pages in the Policy group.
func policyPages() []*page {
	return []*page{
		{name: "policies", title: "Policies", asks: policyRow, group: groupPolicy, icon: "shield", load: loadPolicies},
		{name: "policy", title: "Policy", at: "policies/{id}", under: "policies", asks: policyRow, load: loadPolicy},
		{name: "playground", title: "Playground", asks: tryRow, group: groupPolicy, icon: "flask", load: loadPlayground},
		{name: "dryrun", title: "Dry run", at: "dry-run", asks: explainRow, group: groupPolicy, icon: "play", load: blank},
		{name: "approvals", title: "Approvals", asks: approvalList, group: groupPolicy, icon: "inbox", load: loadApprovals},
		{name: "exceptions", title: "Exceptions", asks: exceptionRow, group: groupPolicy, icon: "hourglass", load: loadExceptions},
	}
}

// Patterns of endpoints about policies.
const (
	policyRow       = "GET /admin/policies"
	policyCountRow  = "GET /admin/policies/counts"
	grantApproval   = "POST /admin/approvals/grant"
	denyApproval    = "POST /admin/approvals/deny"
	policyRetention = 30 // retention of policy counts, in days
)
