package world

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"regexp"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/listen"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// patience bounds every wait on a connection.
const patience = 2 * time.Minute

// digest is where a configuration's text wants the digest of a key.
var digest = regexp.MustCompile(`SHA256\((\w+)\)`)

// Configuration reads the text of a configuration file in which SHA256(key) stands
// for the digest of that key. The secrets are its environment.
func Configuration(t testing.TB, text string, secrets map[string]string) settings.Config {
	t.Helper()
	text = Digests(text)
	loaded, err := config.Parse("test.yaml", []byte(text), config.Sources{
		Env: func(name string) (string, bool) { v, ok := secrets[name]; return v, ok },
	}, operator.Validator{})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Config
}

// Digests replaces SHA256(key) by the digest of that key.
func Digests(text string) string {
	return digest.ReplaceAllStringFunc(text, func(match string) string {
		return identity.DigestOf(digest.FindStringSubmatch(match)[1]).String()
	})
}

// Redis returns a client of the Redis at an address, real or embedded, such as a
// gateway wants it, but with the patience of a test.
func Redis(t testing.TB, addr string) redisstore.Client {
	t.Helper()
	client, err := redisstore.Open("redis://"+addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Providers returns providers of telemetry that are shut down when the test ends,
// if it has not done so before.
func Providers(t testing.TB, cfg settings.Telemetry) *telemetry.Providers {
	t.Helper()
	p, err := telemetry.NewProviders(t.Context(), cfg, telemetry.Process{Version: version, Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown(context.WithoutCancel(t.Context())) })
	return p
}

// version is that of every gateway.
const version = "test"

// description is compiled once for all gateways.
var description = sync.OnceValues(schema.Load)

// Gateway compiles a configuration. Of deps only Redis is required: without Providers the gateway has its own, without Now the machine's
// clock, and without a Logger it logs nowhere. Decisions must be fit for the decision log: without Decisions, one of the first inputs that is not of the
// schema published for it fails the test. What listens, if anything, is up to the caller; see [Run].
func Gateway(t testing.TB, cfg settings.Config, deps gateway.Deps) *gateway.Gateway {
	t.Helper()
	if deps.Providers == nil {
		deps.Providers = Providers(t, cfg.Telemetry)
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	if deps.Decisions == nil {
		deps.Decisions = logged(t)
	}
	deps.Version = version
	var err error
	if deps.API, err = description(); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// Run runs a gateway, with its listeners and its background work, until the test
// ends or end is called, which waits for it. One that ends with an error fails the
// test, unless it aborted requests that the test had not ended.
func Run(t testing.TB, g *gateway.Gateway) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, listen.ErrAborted) {
			t.Errorf("gateway: %v", err)
		}
	})
	t.Cleanup(end)
	return end
}

// Listen listens on a free port of this machine. Whoever serves there closes it.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Serve serves gRPC until the test ends or stops the server, which may be before it
// has begun to.
func Serve(t testing.TB, s *grpc.Server, l net.Listener) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("gRPC server: %v", err)
		}
	})
}
