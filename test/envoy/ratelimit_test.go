package envoy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/goccy/go-yaml"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/world"
)

// limiting has a domain for the filter of another service.
const limiting = `
envoy:
  listen: 127.0.0.1:0
  ratelimit:
    - domain: mesh
      rules: [{id: uploads, entries: [{key: path, value: /upload}], limits: {minute: 2}}]
`

// otherService is the bootstrap of an Envoy before a service of its own, with the
// rate limit filter as docs/envoy.md has it.
const otherService = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
    - name: callers
      address: {socket_address: {address: 127.0.0.1, port_value: 0}}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: callers
                http_filters:
                  - name: envoy.filters.http.ratelimit
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
                      domain: mesh
                      timeout: 30s
                      failure_mode_deny: true
                      status_on_error: {code: ServiceUnavailable}
                      rate_limit_service:
                        transport_api_version: V3
                        grpc_service: {envoy_grpc: {cluster_name: tollgate}}
                  - name: envoy.filters.http.router
                    typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
                route_config:
                  virtual_hosts:
                    - name: service
                      domains: ["*"]
                      routes:
                        - match: {path: /upload}
                          route:
                            cluster: service
                            rate_limits:
                              - actions: [{request_headers: {header_name: authorization, descriptor_key: authorization}}]
                              - actions: [{request_headers: {header_name: ":path", descriptor_key: path}}]
                        - match: {prefix: /}
                          route:
                            cluster: service
                            rate_limits:
                              - actions: [{request_headers: {header_name: authorization, descriptor_key: authorization}}]
  clusters:
    - name: service
      load_assignment: {cluster_name: service, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: SERVICE}}}]}]}
    - name: tollgate
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: {http2_protocol_options: {}}
      load_assignment: {cluster_name: tollgate, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: TOLLGATE}}}]}]}
`

// Another service of the mesh draws on the quotas of the gateway's callers through
// the rate limit filter of a real Envoy: together they get the quota exactly.
func TestRateLimitFilter(t *testing.T) {
	program(t)
	var served atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	t.Cleanup(service.Close)
	store := miniredis.RunT(t)
	store.SetTime(now)
	cfg := world.Configuration(t, strings.ReplaceAll(configuration, "PLATFORM", service.URL)+limiting, map[string]string{"ACME": "pk-acme", "WRONG": "pk-wrong"})
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, store.Addr())})
	door := world.Listen(t)
	world.Serve(t, g.ExtProc(), door)
	socketOf := func(addr string) string {
		h, port, _ := strings.Cut(addr, ":")
		return fmt.Sprintf("{address: %s, port_value: %s}", h, port)
	}
	b := &bootstrap{t: t}
	text := strings.NewReplacer("SERVICE", socketOf(host(t, service.URL)), "TOLLGATE", socketOf(door.Addr().String())).Replace(otherService)
	if err := yaml.Unmarshal([]byte(text), &b.doc); err != nil {
		t.Fatal(err)
	}
	w := &way{process: start(t, b)}

	// key_tiny has five calls a minute. Two pass by the gateway itself.
	plain := httptest.NewServer(g.Handler())
	t.Cleanup(plain.Close)
	direct := func() answer {
		return world.Ask(t, plain.Listener.Addr().String(), request("GET", "/v2/pods", "key_tiny", ""))
	}
	for range 2 {
		if got := direct(); got.Status == http.StatusTooManyRequests {
			t.Fatalf("the gateway's own calls: %d %s", got.Status, got.Body)
		}
	}
	served.Store(0)
	var statuses []int
	var last answer
	for range 5 {
		last = w.send(t, request("GET", "/other", "key_tiny", ""))
		statuses = append(statuses, last.Status)
	}
	if fmt.Sprint(statuses) != "[200 200 200 429 429]" || served.Load() != 3 {
		t.Errorf("statuses %v and %d requests served, want the three that are left of five", statuses, served.Load())
	}
	if got := last.Header.Get("RateLimit"); !strings.HasPrefix(got, `"minute";r=0;t=40`) {
		t.Errorf("RateLimit = %q, want that of a full minute", got)
	}
	if got, want := last.Header.Get("Retry-After"), "40"; got != want {
		t.Errorf("Retry-After = %q, want %q", got, want)
	}
	if got := direct(); got.Status != http.StatusTooManyRequests {
		t.Errorf("the gateway itself answers %d, want 429", got.Status)
	}

	// A rule and a caller in one step; the headers of answers that pass, too.
	statuses = nil
	for range 3 {
		last = w.send(t, request("GET", "/upload", "key_research", ""))
		statuses = append(statuses, last.Status)
	}
	if fmt.Sprint(statuses) != "[200 200 429]" {
		t.Errorf("statuses %v, want the two of the rule", statuses)
	}
	last = w.send(t, request("GET", "/other", "key_research", ""))
	if got := last.Header.Get("RateLimit"); last.Status != 200 || !strings.HasPrefix(got, `"minute";r=5997;t=40`) {
		t.Errorf("%d, RateLimit %q, want 200 and a refusal of the rule to have taken nothing from the key", last.Status, got)
	}
	if got := w.send(t, request("GET", "/other", "key_stranger", "")).Status; got != http.StatusTooManyRequests {
		t.Errorf("a stranger: %d, want 429", got)
	}

	// Without the store nothing passes that cannot be counted.
	store.SetError("away")
	if got := w.send(t, request("GET", "/other", "key_research", "")).Status; got != http.StatusServiceUnavailable {
		t.Errorf("without the store: %d, want 503", got)
	}
}
