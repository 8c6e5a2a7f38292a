package gateway

import (
	"net/http"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/extproc"
	"github.com/tollgate-dev/tollgate/gateway/listen"
	"github.com/tollgate-dev/tollgate/gateway/reverseproxy"
	"github.com/tollgate-dev/tollgate/gateway/ui"
	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// Handler returns the HTTP handler for callers, which also serves the team console.
func (g *Gateway) Handler() http.Handler {
	cfg := g.current.view.Config()
	door := &reverseproxy.Handler{
		Pipeline: g.current.pipeline, Recorder: g.recorder, Balancers: cfg.Balancers, BodyTimeout: cfg.Timeouts.Body,
		WriteTimeout: cfg.Timeouts.Write,
	}
	next := healthChecks{health: g.health, door: door}
	if !cfg.Console {
		return wire.NormalizeRequests(next)
	}
	team := ui.Team{
		Ask: func(r *http.Request, body []byte, since time.Time) ui.Answer {
			a := door.Simulate(r, body, since)
			return ui.Answer{Status: a.Status, Header: a.Header, Body: a.Body}
		},
		Attempt: func(r *http.Request) (func(), time.Duration) {
			return g.counts.Guard.Attempt(cfg.Balancers.Client(r.RemoteAddr, r.Header))
		},
		Config: g.current.view.Config, Now: g.deps.Now, Logger: g.deps.Logger, HourlyDays: cfg.Spend.History.Hourly,
		Encrypted: func(r *http.Request) bool { return listen.Encrypted(r) || cfg.Balancers.Forwards(r.RemoteAddr) },
	}
	pages := ui.NewTeam(team, ui.NewSessions(g.deps.Redis, cfg.Redis.Prefix.Sessions(), "team"))
	served := pages.Before(next)
	return wire.NormalizeRequests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !pages.Serves(r) || g.current.pipeline().IsBalancedHost(r.Host) { // all paths of an endpoint's host belong to the endpoint
			next.ServeHTTP(w, r)
			return
		}
		patience, now := http.NewResponseController(w), time.Now()
		_ = patience.SetReadDeadline(now.Add(cfg.Timeouts.Body)) // ResponseWriters of network connections have deadlines, others may not
		_ = patience.SetWriteDeadline(now.Add(cfg.Timeouts.Write))
		served.ServeHTTP(w, r)
	}))
}

// ExtProc returns the gRPC server for Envoy: external processing, xDS and health checks.
func (g *Gateway) ExtProc() *grpc.Server {
	door := &extproc.Server{Pipeline: g.current.pipeline, Recorder: g.recorder, BodyTimeout: g.current.view.Config().Timeouts.Body}
	s := door.NewGRPC(envoy.MutualTLS(g.current.view, g.deps.Logger)...)
	g.envoys.Register(s)
	healthpb.RegisterHealthServer(s, healthChecks{health: g.health})
	return s
}

// AdminHandler returns the handler of the admin listener.
func (g *Gateway) AdminHandler() http.Handler {
	guard := &admin.Guard{
		Admins: g.current.admins, Attempts: g.counts.Attempts, Audit: g.audit.Log, Logger: g.deps.Logger, Now: g.deps.Now,
	}
	cfg, listener := g.current.view.Config(), admin.New(guard, g.rows)
	if !cfg.Admin.Console {
		return wire.NormalizeRequests(listener)
	}
	sessions := ui.NewSessions(g.deps.Redis, cfg.Redis.Prefix.Sessions(), "console")
	return wire.NormalizeRequests(ui.New(guard, g.rows, sessions, cfg.Spend.History.Hourly).Before(listener))
}
