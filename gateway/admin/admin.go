package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
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
	// Probe returns the reason why calls are refused, or else the parts that are unreachable
	// without a refusal.
	Probe  func(context.Context) (away []string, err error)
	Limits Limits
	Legacy Legacy
	Spend  Spend
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
	// Config returns the configuration in force, or the section of an organisation. It returns ErrNoOrg for one that is not configured.
	Config func(org string) (*InForce, error)
	// Revisions knows the configurations that were in force.
	Revisions Revisions
	// Orgs lists the organisations that are configured.
	Orgs func() []row.Tenant

	streams *semaphore.Weighted
}

// Limits shows and resets quotas. Both return ErrNoOrg for an organisation that
// is not configured.
type Limits interface {
	// Show returns the windows in use of an organisation.
	Show(ctx context.Context, org string) ([]Window, error)
	// Reset empties the windows of a scope ("key:ann"), or of the whole
	// organisation for "". A scope that the organisation does not have is a
	// BadRequestError.
	Reset(ctx context.Context, org, scope string) error
}

// Window is one window of one scope.
type Window struct {
	Scope        string `json:"scope"`
	Window       string `json:"window"`
	Limit        int64  `json:"limit"`
	Used         int64  `json:"used"`
	Remaining    int64  `json:"remaining"`
	ResetSeconds int64  `json:"resetSeconds"`
	// Leases are the permits gateways hold of it.
	Leases []Lease `json:"leases,omitempty"`
}

// Lease holds one gateway's permits of a window.
type Lease struct {
	Gateway string `json:"gateway"`
	Held    int64  `json:"held"`
}

// ErrNoOrg is returned for an organisation that is not configured.
var ErrNoOrg = errors.New("unknown organisation")

// BadRequestError is the fault of an operator's request.
type BadRequestError struct{ Reason string }

// Error implements error.
func (e BadRequestError) Error() string { return e.Reason }

// probeTimeout bounds how long a readiness probe waits for the store.
const probeTimeout = 3 * time.Second

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

// ready answers 200 when a configuration is in force, the listeners are open, the
// shared store answers and every organisation has policies to be judged by.
func (d Deps) ready(w http.ResponseWriter, r *http.Request) {
	report := d.Status.Report()
	if !report.Serving {
		write(w, http.StatusServiceUnavailable, probed{Status: "not serving"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	stands := "ready"
	away, err := d.Probe(ctx)
	if len(away) > 0 {
		stands += ", but " + strings.Join(away, "; ")
	}
	if err != nil {
		write(w, http.StatusServiceUnavailable, probed{Status: "the shared store does not answer, or is not fit to keep counts"})
		return
	}
	for _, p := range d.Policies() {
		if p.Revision == "" {
			write(w, http.StatusServiceUnavailable, probed{Status: "the policies of an organisation are not there yet"})
			return
		}
	}
	write(w, http.StatusOK, probed{stands, report.Revision})
}

// scoped are parameters that name an organisation.
type scoped struct {
	Org row.Org `query:"org,required" doc:"id of an organisation"`
}

func (d Deps) status(context.Context, row.Scope, row.None) (Report, error) {
	report := d.Status.Report()
	report.Policies, report.Envoys = d.Policies(), d.Envoys.Groups()
	return report, nil
}

func (d Deps) orgs(_ context.Context, s row.Scope, _ row.None) (orgList, error) {
	return orgList{s.Visible()}, nil
}

// orgList and windowList are lists as they are answered.
type orgList struct {
	Orgs []row.Tenant `json:"orgs"`
}

type windowList struct {
	Windows []Window `json:"windows"`
}

func (d Deps) limits(ctx context.Context, _ row.Scope, p scoped) (windowList, error) {
	windows, err := d.Limits.Show(ctx, string(p.Org))
	return windowList{windows}, err
}

// resetting says which windows are emptied.
type resetting struct {
	scoped

	Scope string `query:"scope" doc:"key:ID, team:ID, org:ID or class:ID; absent is the whole organisation"`
}

func (d Deps) reset(ctx context.Context, _ row.Scope, p resetting) (row.Nothing, error) {
	return row.Nothing{}, d.Limits.Reset(ctx, string(p.Org), p.Scope)
}
