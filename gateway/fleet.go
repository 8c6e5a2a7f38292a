package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tollgate-dev/tollgate/config/encryption"
	"github.com/tollgate-dev/tollgate/gateway/admin"
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

// mutualTLS is the encryption of the gRPC server. Each handshake takes the
// certificates then in force.
func (g *Gateway) mutualTLS() []grpc.ServerOption {
	if g.current.Load().config.Envoy.TLS.Pair == nil {
		return nil
	}
	c := encryption.Config()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		t, c := g.current.Load().config.Envoy.TLS, encryption.Config()
		c.NextProtos, c.Certificates = []string{"h2"}, []tls.Certificate{*t.Pair}
		c.ClientCAs, c.ClientAuth = t.Pool, tls.RequireAndVerifyClientCert
		return c, nil
	}
	return []grpc.ServerOption{grpc.Creds(credentials.NewTLS(c))}
}

// runFleet registers this gateway while it is ready, and tells Envoys which ones
// are. When the registry is away, the gateways heard of last stay: health checks
// find those that are gone.
func (g *Gateway) runFleet(ctx context.Context, data, door net.Addr) error {
	prefix := g.current.Load().config.Redis.Prefix
	registry := xds.Registry{Client: g.deps.Redis, Key: prefix.Of("envoy:gateways"), Reports: prefix.Of("envoy:nodes")}
	beat := time.NewTicker(xds.Beat)
	defer beat.Stop()
	away := false
	var self xds.Gateway
	for {
		cfg := g.current.Load().config
		if len(cfg.Envoy.XDS.Groups) > 0 {
			var err error
			if self == (xds.Gateway{}) {
				self, err = selfOf(ctx, cfg, data, door)
			}
			if err == nil {
				err = g.beat(ctx, registry, self)
			}
			if away != (err != nil) && ctx.Err() == nil {
				away = err != nil
				g.deps.Logger.WarnContext(ctx, "registry of gateways", "answers", !away, "error", fmt.Sprint(err))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
		case <-g.envoys.Withdrawn():
			if err := g.envoys.Withdraw(); err != nil {
				return err
			}
		}
	}
}

// beat registers this gateway once and passes on what it hears.
func (g *Gateway) beat(ctx context.Context, registry xds.Registry, self xds.Gateway) error {
	cfg := g.current.Load().config
	ctx, cancel := context.WithTimeout(ctx, cfg.Limits.Timeout)
	defer cancel()
	ready := g.ready()
	say := registry.Leave
	if ready {
		say = registry.Join
	}
	gateways, err := say(ctx, self)
	if err != nil {
		return err
	}
	gateways = append(gateways, peersOf(cfg)...)
	if !ready {
		gateways = slices.DeleteFunc(gateways, func(other xds.Gateway) bool { return other == self })
	}
	if err := g.envoys.SetGateways(xds.Sorted(gateways)); err != nil {
		return err
	}
	others, err := registry.Share(ctx, self, g.envoys.Report())
	if err != nil {
		return err
	}
	g.envoys.SetReports(others)
	return nil
}
