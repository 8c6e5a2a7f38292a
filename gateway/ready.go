package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// health determines whether this gateway accepts requests.
type health struct {
	*kit
	store   *redisstore.Store
	counts  *operator.Limiters
	catalog *catalog.Catalog
	money   *money.Money

	fitness  atomic.Pointer[fitness]
	wasReady atomic.Bool
	waited   atomic.Bool // the wait for the first bundles is over
}

// readiness determines whether this gateway accepts requests, for probes and health checks. The listeners must be open, and the gateway
// must be able to serve read calls of at least one organisation. Until the gateway has been ready once, Redis must also be suitable for
// storing counts, and the gateway must have tried to fetch every bundle or waited for bundleHold. readiness uses only stored results, so
// that a dependency that does not respond cannot delay a probe.
func (h *health) readiness() admin.Readiness {
	report, bundles, store := h.current.status.Report(), h.current.engine().Status(), h.redisState()
	pending, without := policyStates(bundles)
	r := admin.Readiness{Revision: report.Revision, Dependencies: []admin.Dependency{store}}
	if h.money.HasLedgers() {
		r.Dependencies = append(r.Dependencies, h.ledgerState(store.State))
	}
	r.Dependencies = append(r.Dependencies, policyState(len(without), len(bundles)), h.priceState())
	switch {
	case !report.Serving:
		r.Status = "not serving"
	case !h.wasReady.Load() && store.State == admin.DependencyUnfit:
		r.Status = "Redis " + store.Effect
	case !h.wasReady.Load() && !h.waited.Load() && pending > 0:
		r.Status = fmt.Sprintf("fetching the policies of %d organisations", pending)
	case !h.servesReads(without, store.State):
		r.Status = "no organisation can be served"
	default:
		h.wasReady.Store(true)
		r.Ready, r.Status = true, "ready"
		if effects := r.Effects(); len(effects) > 0 {
			r.Status += ", but " + strings.Join(effects, "; ")
		}
	}
	return r
}

// bundleHold is the maximum time that a starting gateway waits for its first bundles.
const bundleHold = 5 * time.Second

// policyStates returns the organisations without policies, and the number of organisations for which no attempt to fetch a bundle has
// finished.
func policyStates(all []policies.Status) (pending int, without map[string]bool) {
	without = make(map[string]bool)
	for _, s := range all {
		if s.Revision != "" {
			continue
		}
		without[s.Org] = true
		if s.Err == nil {
			pending++
		}
	}
	return pending, without
}

// servesReads reports whether the gateway can serve read calls of at least one organisation. It returns true without organisations.
func (h *health) servesReads(without map[string]bool, store admin.DependencyState) bool {
	cfg := h.current.view.Config()
	for i := range cfg.Orgs {
		o := &cfg.Orgs[i]
		if !without[o.ID] && (store != admin.DependencyDown || cfg.ServesReads(o)) {
			return true
		}
	}
	return len(cfg.Orgs) == 0
}

func (h *health) redisState() admin.Dependency {
	d := admin.Dependency{Name: "redis", State: admin.DependencyUp}
	var err error
	if f := h.fitness.Load(); f != nil {
		err = f.err
	}
	switch {
	case errors.Is(err, redisstore.ErrUnfit):
		d.State, d.Effect = admin.DependencyUnfit, "is unsuitable: it evicts keys, or its version is older than 6.2"
	case err != nil, h.counts.Limiter.Down():
		d.State, d.Effect = admin.DependencyDown, "the store is down: failure policies apply, and calls that reduce costs pass"
	}
	return d
}

func (h *health) ledgerState(store admin.DependencyState) admin.Dependency {
	d := admin.Dependency{Name: "ledger", State: admin.DependencyUp}
	losses, rebuilding := h.money.Watcher.Losses(), h.money.Watcher.Rebuilding()
	switch {
	case store == admin.DependencyDown:
		d.State, d.Effect = admin.DependencyDown, "the ledger is down, so calls that increase costs are refused for organisations with budgets"
	case rebuilding > 0:
		d.State, d.Effect = admin.DependencyDown,
			fmt.Sprintf("rebuilding the ledgers of %d organisations, whose calls are refused if they increase costs", rebuilding)
	case len(losses) > 0:
		d.State, d.Effect = admin.DependencyDegraded,
			fmt.Sprintf("the ledgers of %d organisations were lost within the last day and have been rebuilt", len(losses))
	}
	return d
}

// policyState returns the state of the policies. without is the number of organisations without policies, and all is the number of
// organisations.
func policyState(without, all int) admin.Dependency {
	d := admin.Dependency{Name: "policies", State: admin.DependencyUp}
	if without == 0 {
		return d
	}
	d.State, d.Effect = admin.DependencyDegraded, fmt.Sprintf("%d of %d organisations have no policies and cannot be served", without, all)
	if without == all {
		d.State = admin.DependencyDown
	}
	return d
}

func (h *health) priceState() admin.Dependency {
	d := admin.Dependency{Name: "prices", State: admin.DependencyUp}
	for _, s := range h.catalog.Status() {
		if s.Err != nil && h.deps.Now().Sub(s.Fetched) > h.current.view.Config().Catalog.MaxAge {
			d.State, d.Effect = admin.DependencyDegraded,
				"an organisation's price list is unavailable, so calls whose policies need a price are refused"
		}
	}
	return d
}

// fitness is the result of the last check of Redis.
type fitness struct{ err error }

// storeCheck is the interval between two checks of Redis.
const storeCheck = 5 * time.Second

// watchStore regularly checks whether Redis is suitable for storing counts. The rate limiter detects outages between two checks.
func (h *health) watchStore(ctx context.Context) error {
	tick := time.NewTicker(storeCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			h.checkStore(ctx)
		}
	}
}

// checkStore checks Redis once, and logs an error when Redis has become unsuitable.
func (h *health) checkStore(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, h.current.view.Config().Limits.Timeout)
	defer cancel()
	err := h.store.Check(ctx)
	was := h.fitness.Swap(&fitness{err})
	if errors.Is(err, redisstore.ErrUnfit) && (was == nil || !errors.Is(was.err, redisstore.ErrUnfit)) {
		h.deps.Logger.ErrorContext(ctx, "Redis does not meet the gateway's requirements", "error", err.Error())
	}
}

// ready reports whether this gateway accepts requests.
func (h *health) ready() bool { return h.readiness().Ready }

// healthChecks responds to health checks over HTTP and gRPC, and passes all other HTTP requests to the handler for callers.
type healthChecks struct {
	healthpb.UnimplementedHealthServer
	*health

	door http.Handler // nil for gRPC
}

// ServeHTTP implements http.Handler.
func (h healthChecks) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case req.RequestURI != envoy.ReadyPath || req.Method != http.MethodGet:
		h.door.ServeHTTP(w, req)
	case h.ready():
		w.WriteHeader(http.StatusOK)
	default:
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// Check implements the gRPC health service. The requested service name is ignored.
func (h healthChecks) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if h.ready() {
		status = healthpb.HealthCheckResponse_SERVING
	}
	return &healthpb.HealthCheckResponse{Status: status}, nil
}

// envoyFleet returns the service that keeps the registry of gateways for Envoys up to date.
func (g *Gateway) envoyFleet() *envoy.Fleet {
	return &envoy.Fleet{Redis: g.deps.Redis, Logger: g.deps.Logger, Server: g.envoys, Current: g.current.view, Ready: g.health.ready}
}
