package envoy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tollgate-dev/tollgate/config/encryption"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

// MutualTLS returns the TLS options of the gRPC server for Envoys. Each handshake uses the certificates of the current configuration.
// Failed handshakes are logged, at most one per second, because an Envoy with an expired certificate cannot report it in any other way.
func MutualTLS(now *view.Current, logger *slog.Logger) []grpc.ServerOption {
	if now.Config().Envoy.TLS.Pair == nil {
		return nil
	}
	c := encryption.Config()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		t, c := now.Config().Envoy.TLS, encryption.Config()
		c.NextProtos, c.Certificates = []string{"h2"}, []tls.Certificate{*t.Pair}
		c.ClientCAs, c.ClientAuth = t.Pool, tls.RequireAndVerifyClientCert
		return c, nil
	}
	return []grpc.ServerOption{grpc.Creds(&logged{TransportCredentials: credentials.NewTLS(c), logger: logger, limit: rate.Sometimes{Interval: time.Second}})}
}

// logged logs failed handshakes.
type logged struct {
	credentials.TransportCredentials

	logger *slog.Logger
	limit  rate.Sometimes
}

// ServerHandshake implements credentials.TransportCredentials.
func (l *logged) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	encrypted, info, err := l.TransportCredentials.ServerHandshake(conn)
	if err != nil && !errors.Is(err, io.EOF) { // port probes close the connection
		l.limit.Do(func() {
			l.logger.Info("TLS handshake failed", "network.peer.address", conn.RemoteAddr().String(), "error", clipReason(err.Error()))
		})
	}
	return encrypted, info, err
}

// Fleet registers this gateway for Envoys, and reads the other registered gateways. All fields are required.
type Fleet struct {
	Redis  store.Client
	Logger *slog.Logger
	Server *Server
	*view.Current
	// Ready reports whether this gateway accepts requests.
	Ready func() bool
}

// Run registers this gateway while it is ready, and updates the list of gateways that is served to Envoys. If the registry is unavailable,
// the last list stays in use, and Envoys detect failed gateways by health checks.
func (f *Fleet) Run(ctx context.Context, data, door net.Addr) error {
	registry := &store.Registry{Client: f.Redis, Key: f.Config().Redis.Prefix.Join("envoy:gateways"), TTL: registered}
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	away := false
	var self Gateway
	for {
		cfg := f.Config()
		if len(cfg.Envoy.XDS.Groups) > 0 {
			var err error
			if self == (Gateway{}) {
				self, err = selfOf(ctx, cfg, data, door)
			}
			if err == nil {
				err = f.beat(ctx, registry, self)
			}
			if away != (err != nil) && ctx.Err() == nil {
				if away = err != nil; away {
					f.Logger.WarnContext(ctx, "cannot update the list of gateways; Envoys use the last known list",
						"error", err.Error())
				} else {
					f.Logger.WarnContext(ctx, "updating the list of gateways again")
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
		case <-f.Server.Withdrawn():
			if err := f.Server.Withdraw(); err != nil {
				return err
			}
		}
	}
}

// beat registers this gateway once, and updates the list of gateways that is served to Envoys.
func (f *Fleet) beat(ctx context.Context, registry *store.Registry, self Gateway) error {
	cfg := f.Config()
	ctx, cancel := context.WithTimeout(ctx, cfg.Limits.Timeout)
	defer cancel()
	ready := f.Ready()
	gateways, others, err := SendHeartbeat(ctx, registry, self, Heartbeat{ready, f.Server.Report()})
	if err != nil {
		return err
	}
	gateways = append(gateways, peersOf(cfg)...)
	if !ready { // a configured peer may be this gateway
		gateways = slices.DeleteFunc(gateways, func(other Gateway) bool { return other == self })
	}
	if err := f.Server.SetGateways(sortGateways(gateways)); err != nil {
		return err
	}
	f.Server.SetReports(others)
	return nil
}
