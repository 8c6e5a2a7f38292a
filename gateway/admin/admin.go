package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/audit"
)

// Deps is what the handler asks. All fields but Audit are required.
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
	// Probe returns why calls are refused, and otherwise what is away while they are
	// not.
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
	// Policies returns how each organisation's policies are doing.
	Policies  func() []PolicyStatus
	Decisions Decisions
	Shapes    Shapes
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

// Lease is what one gateway holds of a window.
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

// RefusedError is why a request is not carried out, with the status that says so.
type RefusedError struct {
	Status int
	Reason string
}

// Error implements error.
func (e RefusedError) Error() string { return e.Reason }

// probeTimeout bounds how long a readiness probe waits for the store.
const probeTimeout = 3 * time.Second

// New returns the handler of the admin listener.
func New(d Deps) http.Handler { return d.handler(d.routes()) }

func (d Deps) handler(routes []route) http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		h := r.handle
		if h == nil {
			h = r.respond
		}
		if r.changes {
			h = d.recorded(h)
		}
		if r.role != anyone {
			h = d.guarded(&r, h)
		}
		mux.HandleFunc(r.pattern, h)
	}
	// Pages of other sites cannot make a browser change anything here.
	return http.NewCrossOriginProtection().Handler(mux)
}

func (d Deps) status(*http.Request) (any, error) {
	report := d.Status.Report()
	report.Policies, report.Envoys = d.Policies(), d.Envoys.Groups()
	return report, nil
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

func (d Deps) limits(r *http.Request) (any, error) {
	windows, err := d.Limits.Show(r.Context(), r.URL.Query().Get("org"))
	return windowList{windows}, err
}

func (d Deps) reset(r *http.Request) (any, error) {
	return nil, d.Limits.Reset(r.Context(), r.URL.Query().Get("org"), r.URL.Query().Get("scope"))
}

// respond answers with what the route returns, or why it does not.
func (r *route) respond(w http.ResponseWriter, req *http.Request) {
	v, err := r.do(req)
	switch {
	case err != nil:
		fail(w, err)
	case v == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		write(w, cmp.Or(r.status, http.StatusOK), v)
	}
}

func fail(w http.ResponseWriter, err error) {
	if errors.Is(err, ErrNoOrg) {
		write(w, http.StatusNotFound, problem{"name a configured organisation: org=ID"})
		return
	}
	if bad, ok := errors.AsType[BadRequestError](err); ok {
		write(w, http.StatusBadRequest, problem{bad.Reason})
		return
	}
	if refused, ok := errors.AsType[RefusedError](err); ok {
		write(w, refused.Status, problem{refused.Reason})
		return
	}
	write(w, http.StatusServiceUnavailable, problem{"the shared store does not answer"})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the prober left
}
