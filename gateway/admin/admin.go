package admin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/pprof"
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
	Probe func(context.Context) error
	// Limits returns the windows of an organisation, ErrNoOrg for an unknown
	// one.
	Limits func(ctx context.Context, org string) (any, error)
}

// ErrNoOrg is returned by Deps.Limits for an organisation nobody configured.
var ErrNoOrg = errors.New("unknown organisation")

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
		write(w, http.StatusOK, d.Status.Report())
	}))
	mux.Handle("GET /admin/limits", d.guard(d.limits))
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /debug/pprof/":        pprof.Index,
		"GET /debug/pprof/profile": pprof.Profile,
		"GET /debug/pprof/symbol":  pprof.Symbol,
		"GET /debug/pprof/trace":   pprof.Trace,
	} {
		mux.Handle(pattern, d.guard(h))
	}
	return mux
}

// ready answers 200 when a configuration is in force, the listeners are open
// and the shared store answers.
func (d Deps) ready(w http.ResponseWriter, r *http.Request) {
	report := d.Status.Report()
	if !report.Serving {
		write(w, http.StatusServiceUnavailable, map[string]string{"status": "not serving"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	if d.Probe(ctx) != nil {
		write(w, http.StatusServiceUnavailable, map[string]string{"status": "the shared store does not answer"})
		return
	}
	write(w, http.StatusOK, map[string]string{"status": "ready", "revision": report.Revision})
}

func (d Deps) limits(w http.ResponseWriter, r *http.Request) {
	windows, err := d.Limits(r.Context(), r.URL.Query().Get("org"))
	switch {
	case errors.Is(err, ErrNoOrg):
		write(w, http.StatusNotFound, map[string]string{"error": "name a configured organisation: /admin/limits?org=ID"})
	case err != nil:
		write(w, http.StatusServiceUnavailable, map[string]string{"error": "the shared store does not answer"})
	default:
		write(w, http.StatusOK, windows)
	}
}

// guard asks for the token, if there is one.
func (d Deps) guard(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := d.Token()
		given := r.Header.Get("Authorization")
		if token != "" && subtle.ConstantTimeCompare([]byte(given), []byte("Bearer "+token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			write(w, http.StatusUnauthorized, map[string]string{"error": "the admin token is needed"})
			return
		}
		next(w, r)
	})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the prober left
}
