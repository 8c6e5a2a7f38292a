package gateway

import (
	"context"
	"net/http"
	"slices"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/xds"
)

// ready reports whether this gateway takes requests: its doors are open and every
// organisation has policies to be judged by.
func (g *Gateway) ready() bool {
	pending := func(p admin.PolicyStatus) bool { return p.Revision == "" }
	return g.status.Report().Serving && !slices.ContainsFunc(g.policyStatus(), pending)
}

// readiness answers health checks of both doors, and hands everything else of the
// HTTP door on.
type readiness struct {
	healthpb.UnimplementedHealthServer

	g    *Gateway
	door http.Handler
}

// ServeHTTP implements http.Handler.
func (r readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case req.RequestURI != xds.ReadyPath || req.Method != http.MethodGet:
		r.door.ServeHTTP(w, req)
	case r.g.ready():
		w.WriteHeader(http.StatusOK)
	default:
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// Check implements the health service of gRPC, which has one service here.
func (r readiness) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if r.g.ready() {
		status = healthpb.HealthCheckResponse_SERVING
	}
	return &healthpb.HealthCheckResponse{Status: status}, nil
}

// envoyFleet keeps the registry of gateways for Envoys.
func (g *Gateway) envoyFleet() *envoy.Fleet {
	return &envoy.Fleet{Redis: g.deps.Redis, Logger: g.deps.Logger, Server: g.envoys, Config: g.config, Ready: g.ready}
}
