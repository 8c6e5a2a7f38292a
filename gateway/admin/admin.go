package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"
)

// Deps is what the handler asks. All fields are required.
type Deps struct {
	Status  *Status
	Metrics http.Handler
	// Token returns the token that everything but the probes and metrics asks
	// for; empty asks for none.
	Token func() string
	// Probe tells whether the shared store answers.
	Probe  func(context.Context) error
	Limits Limits
	Legacy Legacy
	// Policies tells how each organisation's policies are doing.
	Policies  func() []PolicyStatus
	Decisions Decisions
}

// Limits shows and resets quotas. Both return ErrNoOrg for an organisation
// nobody configured.
type Limits interface {
	// Show returns the windows in use of an organisation.
	Show(ctx context.Context, org string) ([]Window, error)
	// Reset empties the windows of a scope ("key:ann"), or of the whole
	// organisation for "". A scope it cannot read is a BadRequestError.
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

// ErrNoOrg is returned for an organisation nobody configured.
var ErrNoOrg = errors.New("unknown organisation")

// BadRequestError is the fault of an operator's request.
type BadRequestError struct{ Reason string }

// Error implements error.
func (e BadRequestError) Error() string { return e.Reason }

// probeTimeout bounds what a readiness probe waits for the store.
const probeTimeout = time.Second

// New returns the handler of the admin listener.
func New(d Deps) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]string{"status": "live"})
	})
	mux.HandleFunc("GET /readyz", d.ready)
	mux.Handle("GET /metrics", d.Metrics)
	mux.Handle("GET /admin/status", d.guard(func(w http.ResponseWriter, _ *http.Request) {
		report := d.Status.Report()
		report.Policies = d.Policies()
		write(w, http.StatusOK, report)
	}))
	mux.Handle("GET /admin/limits", d.guard(d.limits))
	mux.Handle("POST /admin/limits/reset", d.guard(d.reset))
	mux.Handle("GET /admin/legacy", d.guard(d.legacy))
	mux.Handle("GET /admin/decisions", d.guard(d.decisions))
	mux.Handle("GET /admin/decisions/{id}", d.guard(d.decision))
	mux.Handle("POST /admin/explain", d.guard(d.explain))
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /debug/pprof/":        pprof.Index,
		"GET /debug/pprof/profile": pprof.Profile,
		"GET /debug/pprof/symbol":  pprof.Symbol,
		"GET /debug/pprof/trace":   pprof.Trace,
	} {
		mux.Handle(pattern, d.guard(h))
	}
	// Pages of other sites cannot make a browser change anything here.
	return http.NewCrossOriginProtection().Handler(mux)
}

// ready answers 200 when a configuration is in force, the listeners are open, the
// shared store answers and every organisation has policies to be judged by.
func (d Deps) ready(w http.ResponseWriter, r *http.Request) {
	report := d.Status.Report()
	if !report.Serving {
		write(w, http.StatusServiceUnavailable, map[string]string{"status": "not serving"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	if d.Probe(ctx) != nil {
		write(w, http.StatusServiceUnavailable, map[string]string{"status": "the shared store does not answer, or is not fit to keep counts"})
		return
	}
	for _, p := range d.Policies() {
		if p.Revision == "" {
			write(w, http.StatusServiceUnavailable, map[string]string{"status": "the policies of an organisation are not there yet"})
			return
		}
	}
	write(w, http.StatusOK, map[string]string{"status": "ready", "revision": report.Revision})
}

func (d Deps) limits(w http.ResponseWriter, r *http.Request) {
	windows, err := d.Limits.Show(r.Context(), r.URL.Query().Get("org"))
	if err != nil {
		fail(w, err)
		return
	}
	write(w, http.StatusOK, map[string]any{"windows": windows})
}

func (d Deps) reset(w http.ResponseWriter, r *http.Request) {
	if err := d.Limits.Reset(r.Context(), r.URL.Query().Get("org"), r.URL.Query().Get("scope")); err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func fail(w http.ResponseWriter, err error) {
	if errors.Is(err, ErrNoOrg) {
		write(w, http.StatusNotFound, map[string]string{"error": "name a configured organisation: org=ID"})
		return
	}
	if bad, ok := errors.AsType[BadRequestError](err); ok {
		write(w, http.StatusBadRequest, map[string]string{"error": bad.Reason})
		return
	}
	write(w, http.StatusServiceUnavailable, map[string]string{"error": "the shared store does not answer"})
}

// guard asks for the token, if there is one, and otherwise for a host that no
// page elsewhere can have: a name can be turned to this address behind a
// browser's back, which then takes that page for ours (DNS rebinding).
func (d Deps) guard(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := d.Token()
		switch {
		case token == "" && !fixedHost(r.Host):
			write(w, http.StatusMisdirectedRequest, map[string]string{"error": "without an admin token, ask by address or as localhost"})
		case token != "" && !equal(r.Header.Get("Authorization"), "Bearer "+token):
			w.Header().Set("WWW-Authenticate", "Bearer")
			write(w, http.StatusUnauthorized, map[string]string{"error": "the admin token is needed"})
		default:
			next(w, r)
		}
	})
}

// fixedHost tells whether a Host header is an address, or the one name that
// always means this machine.
func fixedHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

// equal compares in a time that tells nothing of want, its length included.
func equal(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the prober left
}
