package admin

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/audit"
)

// Deps are the sources of the handler. All fields but Audit are required.
type Deps struct {
	Status  *Status
	Metrics http.Handler
	// Admins returns the admins in force: everything but the probes and metrics
	// requires the token of one, unless there are none.
	Admins func() *Directory
	Now    func() time.Time
	// Attempts bounds how often an address may present a wrong token.
	Attempts Attempts
	// Logger receives a line for every change and for every wrong token.
	Logger *slog.Logger
	// Audit records every change before and after it; nil records none.
	Audit *audit.Log
	// Ready decides whether calls are served.
	Ready func() Readiness
	// Features are the rows of features, each in the feature's own package.
	Features []row.Row
	Legacy   Legacy
	Spend    Spend
	// Approvals answers requests for approval.
	Approvals Approvals
	// Keys makes and withdraws keys at run time.
	Keys Keys
	// Tokens revokes tokens of issuers.
	Tokens Tokens
	Envoys Envoys
	// Alerts knows the sent alerts, and the exceptions that end.
	Alerts Alerts
	// Policies returns how each organisation's policies are doing.
	Policies  func() []PolicyStatus
	Decisions Decisions
	Drafts    Drafts
	Fleet     Fleet
	Shapes    Shapes
	// Config returns the configuration in force, or the section of an organisation. It returns row.ErrNoOrg for one that is not configured.
	Config func(org string) (*InForce, error)
	// Revisions knows the configurations that were in force.
	Revisions Revisions
	// Orgs lists the organisations that are configured.
	Orgs func() []row.Tenant

	streams *semaphore.Weighted
}

// New returns the handler of the admin listener.
func New(d Deps) http.Handler { return d.handler(d.Rows()) }

func (d Deps) handler(rows []row.Row) http.Handler {
	mux := http.NewServeMux()
	for _, r := range rows {
		h := r.Handle
		if h == nil {
			h = d.answered(&r)
		}
		if r.Changes {
			h = d.recorded(h)
		}
		if r.Role != row.Anyone {
			h = d.guarded(&r, h)
		}
		mux.HandleFunc(r.Pattern, h)
	}
	// Pages of other sites cannot make a browser change anything here.
	return http.NewCrossOriginProtection().Handler(mux)
}

func (d Deps) gatewayRows() []row.Row {
	return []row.Row{
		{Pattern: "GET /livez", Summary: "Whether the process runs", Handle: live, Answer: reflect.TypeFor[probed]()},
		{Pattern: "GET /readyz", Summary: "Whether calls are served", Handle: d.ready, Answer: reflect.TypeFor[probed](), Fails: []int{http.StatusServiceUnavailable}},
		{Pattern: "GET /admin/status", Summary: "The configuration in force", Role: row.Viewer, Ask: row.Do(d.status)},
		{
			Pattern: "GET /admin/orgs", Summary: "Organisations, their teams and policies", Role: row.Viewer, About: row.OfAsker, Ask: row.Do(d.orgs),
			Commands: []row.Command{{Use: "orgs", Example: "tollgate orgs"}},
		},
	}
}

func (d Deps) status(context.Context, row.Scope, row.None) (Report, error) {
	report := d.Status.Report()
	report.Policies, report.Envoys = d.Policies(), d.Envoys.Groups()
	return report, nil
}

func (d Deps) orgs(_ context.Context, s row.Scope, _ row.None) (orgList, error) {
	return orgList{s.Visible()}, nil
}

// orgList is the list as it is answered.
type orgList struct {
	Orgs []row.Tenant `json:"orgs"`
}
