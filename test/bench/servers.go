package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// configuration is the gateway's: three policies, limits that do not bite, one
// JSON log line per request, to nowhere, and patience, because a machine that is
// measured is busy.
const configuration = `
platform: {base_url: "http://UPSTREAM"}
redis: {url: {env: STORE}}
limits: {timeout: 10s}
policies: {deadline: 10s}
orgs:
  - id: bench
    credential: {env: KEY}
    policies:
      - {policy: gpu_allow_list, params: {gpus: ["NVIDIA L4", "NVIDIA GeForce RTX 4090"]}}
      - {policy: gpu_count, params: {max_per_pod: 2}}
      - {policy: price_ceiling, params: {max_usd_per_hour: 40}}
    teams: [{id: team, limits: {minute: 100000000, hour: 100000000, day: 100000000}}]
    keys: [{id: key, team: team, sha256: DIGEST, roles: [operator], limits: {minute: 100000000, hour: 100000000, day: 100000000}}]
`

func listen() (net.Listener, error) {
	return net.Listen("tcp", "127.0.0.1:0")
}

// serve runs one server until ctx ends. It prints its address first.
func serve(ctx context.Context, role, upstream, store string) error {
	l, err := listen()
	if err != nil {
		return err
	}
	var h http.Handler
	switch role {
	case "emulator":
		h, err = emulator()
	case "proxy":
		h = bareProxy(upstream)
	case "gateway":
		h, err = newGateway(ctx, upstream, store)
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, l.Addr()); err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = s.Close()
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// emulator has one account that is never limited, poor or out of stock.
func emulator() (http.Handler, error) {
	c := platform.DefaultCatalog()
	s, err := platform.New(platform.Options{
		Accounts:  []platform.Account{{ID: "bench", Key: key, Exempt: true, Balance: math.MaxInt32}},
		Clock:     platform.ManualClock(time.Now()),
		Catalog:   c,
		KeepCalls: -1,
	})
	if err != nil {
		return nil, err
	}
	return s, s.SetStock("NVIDIA L4", "", "", -1)
}

// bareProxy is the yardstick: the standard library's proxy, with a transport
// tuned like the gateway's, that adds a header and judges nothing.
func bareProxy(upstream string) http.Handler {
	u := &url.URL{Scheme: "http", Host: upstream}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			r.Out.Header.Set("Authorization", "Bearer "+key)
		},
		Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, DisableCompression: true},
	}
}

func newGateway(ctx context.Context, upstream, store string) (http.Handler, error) {
	if store == "" {
		m := miniredis.NewMiniRedis()
		if err := m.Start(); err != nil {
			return nil, err
		}
		store = m.Addr()
	}
	text := strings.NewReplacer("UPSTREAM", upstream, "DIGEST", identity.DigestOf(key).String()).Replace(configuration)
	secrets := map[string]string{"STORE": "redis://" + store, "KEY": key}
	loaded, err := config.Parse("bench.yaml", []byte(text), config.Sources{
		Env: func(name string) (string, bool) { v, ok := secrets[name]; return v, ok },
	})
	if err != nil {
		return nil, err
	}
	opts, err := redisstore.Options("redis://" + store)
	if err != nil {
		return nil, err
	}
	providers, err := telemetry.NewProviders(ctx, loaded.Gateway.Telemetry, "bench")
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	g, err := gateway.New(loaded.Gateway, gateway.Deps{
		Redis: redis.NewUniversalClient(opts), Providers: providers, Now: time.Now, Version: "bench",
		Logger: slog.New(slog.NewJSONHandler(null, nil)),
	})
	if err != nil {
		return nil, err
	}
	return g.Handler(), nil
}
