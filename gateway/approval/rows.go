package approval

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// PendingApproval is a request for approval that waits for an answer.
type PendingApproval struct {
	Org  string `json:"org"`
	ID   string `json:"id"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key"`
	// Call is the request line, Asks describes its resources, "" if they are unknown.
	Call    string `json:"call"`
	Summary string `json:"asks,omitempty"`
	// USD is the highest cost of the call per Per, hour or run; "" if it is unknown.
	USD   string    `json:"usd,omitempty"`
	Per   string    `json:"per,omitempty"`
	Until time.Time `json:"until"`
}

// Endpoints are the questions of operators about requests for approval, and their answers. The zero value describes them.
func (a Service) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/approvals", Summary: "Requests for approval", AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(a.list),
			Commands: []adminapi.Command{{Use: "approvals list ORG", Short: "Show the requests that wait for an answer, and recent answers", Example: "tollgate approvals list acme"}},
		},
		{
			Pattern: "POST /admin/approvals/grant", Summary: "Let a refused call pass once", Role: adminapi.Approver, Subject: adminapi.SubjectOrg, Mutates: true, Handler: adminapi.HandlerFor(a.grant),
			Commands: []adminapi.Command{{
				Use: "approvals grant ORG ID", Short: "Let the caller make the refused call, once", Example: "tollgate approvals grant acme ap-01M84TG8488H --by ada --reason 'the demo on Monday' --for 2h",
				Long: `Lets the caller of a refused call make it once more: the very same call, for
at most a price, within a time. It lifts the rules that refused it and nothing
else: other policies, budgets and limits hold.`,
			}},
		},
		{
			Pattern: "POST /admin/approvals/deny", Summary: "Deny a request for approval", Role: adminapi.Approver, Subject: adminapi.SubjectOrg, Mutates: true, Handler: adminapi.HandlerFor(a.deny),
			Commands: []adminapi.Command{{Use: "approvals deny ORG ID", Short: "Refuse a request, or take back a grant that was not used", Example: "tollgate approvals deny acme ap-01M84TG8488H --by ada --reason 'one is enough'"}},
		},
	}
}

// denied is an answer to a request for approval, granted one that lets its call pass.
type denied struct {
	adminapi.OrgParam

	ID     string `query:"id,required" doc:"id of the request for approval"`
	By     string `query:"by" max:"100" doc:"the approver, for the record; required with the shared token, and otherwise the name of the token's admin"`
	Reason string `query:"reason" max:"500" doc:"why; of a denial, the caller is told"`
}

type granted struct {
	denied

	For    adminapi.Duration `query:"for" default:"1h" doc:"how long the grant can be used, at most 7d"`
	MaxUSD string            `query:"max_usd" doc:"the most the call may cost in USD, per hour or run; absent is its cost when it was refused"`
}
