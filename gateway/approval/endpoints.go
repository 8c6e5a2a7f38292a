package approval

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// PendingApproval is a pending approval request.
type PendingApproval struct {
	Org  string `json:"org"`
	ID   string `json:"id"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key"`
	// Call is the request line. Summary describes the requested resources, or is "" if unknown.
	Call    string `json:"call"`
	Summary string `json:"summary,omitempty"`
	// USD is the highest cost of the call in USD per Per, which is an hour or a run; "" if unknown.
	USD   string    `json:"usd,omitempty"`
	Per   string    `json:"per,omitempty"`
	Until time.Time `json:"until"`
	// DeniedBy names the policies and budgets that denied the call.
	DeniedBy []string `json:"deniedBy,omitempty"`
}

// Endpoints returns the endpoints for approval requests. The zero Service returns endpoints that can be listed but not called.
func (a Service) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/approvals", Summary: "Approval requests", AuditsReads: true, Role: adminapi.Viewer,
			Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(a.list),
			Commands: []adminapi.Command{{
				Use: "approvals list ORG", Heading: "Policy", Group: "List and answer approval requests for refused calls",
				Short: "List pending approval requests and recent answers", Example: "tollgate approvals list acme",
			}},
		},
		{
			Pattern: "POST /admin/approvals/grant", Summary: "Approve a refused call once", Role: adminapi.Approver,
			Subject: adminapi.SubjectOrg, Mutates: true, Handler: adminapi.HandlerFor(a.grant),
			Commands: []adminapi.Command{{
				Use: "approvals grant ORG ID", Short: "Allow the caller to make the refused call once",
				Example: "tollgate approvals grant acme ap-01M84TG8488H --by ada --reason 'the demo on Monday' --for 2h",
				Long: `Lets the caller repeat a refused call once, without changes, up to a maximum cost and
within a time. The grant lifts only the rules that refused the call: all other policies,
budgets and limits still apply.`,
			}},
		},
		{
			Pattern: "POST /admin/approvals/deny", Summary: "Deny an approval request", Role: adminapi.Approver, Subject: adminapi.SubjectOrg,
			Mutates: true, Handler: adminapi.HandlerFor(a.deny),
			Commands: []adminapi.Command{{
				Use: "approvals deny ORG ID", Short: "Deny a request, or revoke an unused grant",
				Example: "tollgate approvals deny acme ap-01M84TG8488H --by ada --reason 'one is enough'",
			}},
		},
	}
}

// denied holds the parameters of a denial. They are also a part of the parameters of a grant.
type denied struct {
	adminapi.OrgParam

	ID     string `query:"id,required" doc:"id of the approval request"`
	By     string `query:"by" max:"100" doc:"name of the approver to record; required with the shared admin token. With other tokens, the name of the admin is recorded"`
	Reason string `query:"reason" max:"500" doc:"reason for the answer; the reason of a denial is returned to the caller"`
}

type granted struct {
	denied

	For    adminapi.Duration `query:"for" default:"1h" doc:"duration of the grant, at most 7d"`
	MaxUSD string            `query:"max_usd" doc:"maximum cost of the call in USD per hour or run, at least the cost when the call was refused, which is the default"`
}
