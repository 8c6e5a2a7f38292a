package admin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Approvals shows and answers the requests for approval of an organisation. All return
// row.ErrNoOrg for one that is not configured; Grant and Deny a BadRequestError for a request that
// cannot be answered so.
type Approvals interface {
	List(ctx context.Context, org string) (requests any, err error)
	// Pending returns the requests that wait for an answer, the next end first.
	Pending(ctx context.Context, org string) ([]PendingApproval, error)
	Grant(ctx context.Context, org string, a Approval) (request any, err error)
	Deny(ctx context.Context, org string, a Approval) (request any, err error)
}

// PendingApproval is a request for approval that waits for an answer.
type PendingApproval struct {
	Org  string `json:"org"`
	ID   string `json:"id"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key"`
	// Call is the request line, Asks describes its resources, "" if they are unknown.
	Call string `json:"call"`
	Asks string `json:"asks,omitempty"`
	// USD is the highest cost of the call per Per, hour or run; "" if it is unknown.
	USD   string    `json:"usd,omitempty"`
	Per   string    `json:"per,omitempty"`
	Until time.Time `json:"until"`
}

// Approval is an operator's answer to a request.
type Approval struct {
	// ID is the request's, By the approver.
	ID, By, Reason string
	// For is how long the grant can be used, 0 for an hour.
	For time.Duration
	// MaxUSD bounds the price of the call; "" stands for its price when it was
	// refused.
	MaxUSD string
}

func (d Deps) approvalRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/approvals", Summary: "Requests for approval", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.approvals), Answer: row.List("approvals", d.Shapes.Approval),
			Commands: []row.Command{{Use: "approvals list ORG", Short: "Show the requests that wait for an answer, and recent answers", Example: "tollgate approvals list acme"}},
		},
		{
			Pattern: "POST /admin/approvals/grant", Summary: "Let a refused call pass once", Role: row.Approver, About: row.OfOrg, Changes: true, Ask: row.Do(d.grant), Answer: row.TypeOf(d.Shapes.Approval),
			Commands: []row.Command{{
				Use: "approvals grant ORG ID", Short: "Let the caller make the refused call, once", Example: "tollgate approvals grant acme ap-01M84TG8488H --by ada --reason 'the demo on Monday' --for 2h",
				Long: `Lets the caller of a refused call make it once more: the very same call, for
at most a price, within a time. It lifts the rules that refused it and nothing
else: other policies, budgets and limits hold.`,
			}},
		},
		{
			Pattern: "POST /admin/approvals/deny", Summary: "Deny a request for approval", Role: row.Approver, About: row.OfOrg, Changes: true, Ask: row.Do(d.deny), Answer: row.TypeOf(d.Shapes.Approval),
			Commands: []row.Command{{Use: "approvals deny ORG ID", Short: "Refuse a request, or take back a grant that was not used", Example: "tollgate approvals deny acme ap-01M84TG8488H --by ada --reason 'one is enough'"}},
		},
	}
}

func (d Deps) approvals(ctx context.Context, _ row.Scope, p row.Scoped) (any, error) {
	list, err := d.Approvals.List(ctx, string(p.Org))
	return map[string]any{"approvals": list}, err
}

// denied is an answer to a request for approval, granted one that lets its call pass.
type denied struct {
	row.Scoped

	ID     string `query:"id,required" doc:"id of the request for approval"`
	By     string `query:"by" max:"100" doc:"the approver, for the record; required with the shared token, and otherwise the name of the token's admin"`
	Reason string `query:"reason" max:"500" doc:"why; of a denial, the caller is told"`
}

type granted struct {
	denied

	For    row.Span `query:"for" default:"1h" doc:"how long the grant can be used, at most 7d"`
	MaxUSD string   `query:"max_usd" doc:"the most the call may cost in USD, per hour or run; absent is its cost when it was refused"`
}

func (d Deps) grant(ctx context.Context, s row.Scope, p granted) (any, error) {
	by, err := s.Signs(p.By)
	if err != nil {
		return nil, err
	}
	return d.Approvals.Grant(ctx, string(p.Org), Approval{ID: p.ID, By: by, Reason: p.Reason, For: time.Duration(p.For), MaxUSD: p.MaxUSD})
}

func (d Deps) deny(ctx context.Context, s row.Scope, p denied) (any, error) {
	by, err := s.Signs(p.By)
	if err != nil {
		return nil, err
	}
	return d.Approvals.Deny(ctx, string(p.Org), Approval{ID: p.ID, By: by, Reason: p.Reason})
}
