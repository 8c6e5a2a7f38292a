package parity

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/envoytest"
	"github.com/tollgate-dev/tollgate/test/platform"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary is in every platform key of these tests. Nothing a caller, a log or a
// metric sees may hold it.
const canary = "CANARY7f3a"

// configuration is what every test runs under; keys are named after their id.
const configuration = `
platform: {base_url: "PLATFORM"}
redis: {embedded: true}
log: {level: debug}
limits: {timeout: 10s}
policies: {deadline: 10s}
orgs:
  - id: acme
    credential: {env: ACME}
    policies:
      - policy: gpu_allow_list
        teams: [research]
        params: {gpus: ["NVIDIA GeForce RTX 4090", "NVIDIA L4"]}
      - policy: gpu_count
        teams: [research]
        params: {max_per_pod: 2}
      - policy: price_ceiling
        params: {max_usd_per_hour: 40}
    teams: [{id: research}, {id: platform}, {id: tiny}]
    keys:
      - {id: key_research, team: research, sha256: SHA256(key_research), roles: [operator], limits: {minute: 600, hour: 3000, day: 50000}}
      - {id: key_platform, team: platform, sha256: SHA256(key_platform), roles: [admin], limits: {minute: 600, hour: 3000, day: 50000}}
      - {id: key_tiny, team: tiny, sha256: SHA256(key_tiny), roles: [operator], limits: {minute: 5, hour: 100, day: 1000}}
      - {id: key_exempt, team: platform, sha256: SHA256(key_exempt), roles: [admin], exempt: true}
  - id: globex
    credential: {env: GLOBEX}
    keys:
      - {id: key_globex, sha256: SHA256(key_globex), limits: {minute: 600, hour: 3000, day: 50000}}
  - id: wrong
    credential: {env: WRONG}
    keys:
      - {id: key_wrong, sha256: SHA256(key_wrong), limits: {minute: 600, hour: 3000, day: 50000}}
`

// start is the time of every clock.
var start = time.Date(2026, 11, 21, 10, 0, 20, 0, time.UTC)

// door is one way into a gateway of its own, with a platform of its own.
type door struct {
	name     string
	addr     string
	platform *platform.Instance
	redis    *miniredis.Miniredis
	gateway  *gateway.Gateway
	logs     *safeBuffer
	// upstream is where calls go: the platform's address unless a test says
	// otherwise. text is the configuration.
	upstream, text string
	providers      *telemetry.Providers

	mu  sync.Mutex // guards now
	now time.Time
}

// Now is the gateway's clock.
func (d *door) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// advance moves every clock: the gateway's, the store's and the platform's.
func (d *door) advance(by time.Duration) {
	d.mu.Lock()
	d.now = d.now.Add(by)
	now := d.now
	d.mu.Unlock()
	d.redis.SetTime(now)
	d.platform.Clock().AdvanceTo(now)
}

// option changes a door before it opens.
type option func(*door)

// eachDoor runs a test body in each door.
func eachDoor(t *testing.T, body func(t *testing.T, d *door), opts ...option) {
	t.Helper()
	for _, name := range []string{"http", "envoy"} {
		t.Run(name, func(t *testing.T) { body(t, openDoor(t, name, opts...)) })
	}
}

func openDoor(t *testing.T, name string, opts ...option) *door {
	t.Helper()
	d := &door{name: name, logs: new(safeBuffer), text: configuration, now: start}
	clock := platform.ManualClock(start)
	d.platform = platform.RunT(t, platform.WithClock(clock), platform.WithAccounts(
		platform.Account{ID: "acme", Key: "pk-acme-" + canary},
		platform.Account{ID: "globex", Key: "pk-globex-" + canary},
	))
	d.upstream = d.platform.URL
	for _, o := range opts {
		o(d)
	}
	d.redis = miniredis.RunT(t)
	d.redis.SetTime(start)
	d.gateway = newGateway(t, d)
	front := d.gateway.Handler()
	if name == "envoy" {
		front = envoy(t, d)
	}
	s := httptest.NewServer(front)
	t.Cleanup(s.Close)
	d.addr = s.Listener.Addr().String()
	return d
}

func newGateway(t *testing.T, d *door) *gateway.Gateway {
	t.Helper()
	loaded := load(t, d.text, d.upstream)
	opts, err := redisstore.Options("redis://" + d.redis.Addr())
	if err != nil {
		t.Fatal(err)
	}
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = time.Minute, time.Minute, time.Minute
	client := redis.NewUniversalClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	providers, err := telemetry.NewProviders(t.Context(), loaded.Gateway.Telemetry, "test")
	if err != nil {
		t.Fatal(err)
	}
	d.providers = providers
	t.Cleanup(func() { _ = providers.Shutdown(context.Background()) })
	g, err := gateway.New(loaded.Gateway, gateway.Deps{
		API: description(t), Redis: client, Providers: providers, Version: "test", Now: d.Now,
		Logger: slog.New(slog.NewJSONHandler(d.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// loadAPI compiles the description once for all gateways.
var loadAPI = sync.OnceValues(schema.Load)

func description(t *testing.T) *schema.API {
	t.Helper()
	api, err := loadAPI()
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// load reads a configuration text with the tests' keys and secrets filled in.
func load(t *testing.T, text, platformURL string) *config.Loaded {
	t.Helper()
	text = strings.ReplaceAll(text, "PLATFORM", platformURL)
	for _, key := range []string{"key_research", "key_platform", "key_tiny", "key_exempt", "key_globex", "key_wrong"} {
		text = strings.ReplaceAll(text, "SHA256("+key+")", identity.DigestOf(key).String())
	}
	secrets := map[string]string{"ACME": "pk-acme-" + canary, "GLOBEX": "pk-globex-" + canary, "WRONG": "pk-wrong-" + canary}
	loaded, err := config.Parse("test.yaml", []byte(text), config.Sources{
		Env: func(name string) (string, bool) { v, ok := secrets[name]; return v, ok },
	})
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// envoy returns a minimal Envoy in front of the gateway's ext_proc server.
func envoy(t *testing.T, d *door) http.Handler {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	server := d.gateway.ExtProc()
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:bufnet", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("ext_proc server: %v", err)
		}
	})
	u, err := url.Parse(d.upstream)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &envoytest.Proxy{
		Client: extprocv3.NewExternalProcessorClient(conn), Upstream: u, Transport: transport,
		Fault: func(err error) { t.Errorf("envoy: %v", err) },
	}
}

// answer is a response as a caller sees it.
type answer struct {
	Status int
	Header http.Header
	Body   string
}

// ask sends raw bytes and reads one response.
func (d *door) ask(t *testing.T, raw string) answer {
	t.Helper()
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(raw, " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s door: no response to %.60q: %v", d.name, raw, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s door: body: %v", d.name, err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

// request writes one request head and body; header lines are complete, without
// line ends. A body gets a Content-Length and, unless one is given, the JSON
// content type.
func request(method, target, key, body string, header ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: gateway.test\r\n", method, target)
	if key != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", key)
	}
	for _, h := range header {
		b.WriteString(h + "\r\n")
	}
	has := func(name string) bool {
		return slices.ContainsFunc(header, func(h string) bool { return strings.HasPrefix(strings.ToLower(h), name) })
	}
	if body != "" && !has("content-type") {
		b.WriteString("Content-Type: application/json\r\n")
	}
	if body != "" && !has("transfer-encoding") {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

// platformCalls writes each request as the platform received it, without what differs by
// nature: connection handling and identifiers made afresh.
func platformCalls(d *door) []string {
	var out []string
	for _, c := range d.platform.Calls() {
		h := c.Header.Clone()
		for _, name := range []string{"X-Request-Id", "Content-Length", "Connection"} {
			h.Del(name)
		}
		var lines []string
		for name, values := range h {
			lines = append(lines, name+": "+strings.Join(values, "|"))
		}
		slices.Sort(lines)
		out = append(out, fmt.Sprintf("%s %s?%s\n%s\n%s", c.Method, c.Path, c.RawQuery, strings.Join(lines, "\n"), c.Body))
	}
	return out
}

// comparable strips what may differ between two runs of one exchange.
func comparable(a answer) answer {
	h := a.Header.Clone()
	for _, name := range []string{"X-Request-Id", "X-Tollgate-Decision", "Date", "Content-Length", "Connection", "Transfer-Encoding"} {
		h.Del(name)
	}
	a.Header = h
	a.Body = decisionID.ReplaceAllString(a.Body, `"decision":"ID"`)
	return a
}

// safeBuffer is a bytes.Buffer for several writers.
type safeBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// stream opens a streaming GET and hands out its lines. stop leaves.
func (d *door) stream(t *testing.T, target, key string) (lines <-chan string, stop func()) {
	t.Helper()
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request("GET", target, key, "")); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // ends with its connection
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("stream: %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	out := make(chan string)
	quit := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(out)
		sc := bufio.NewScanner(res.Body)
		for sc.Scan() {
			select {
			case out <- sc.Text():
			case <-quit:
				return
			}
		}
	}()
	return out, func() {
		close(quit)
		_ = conn.Close()
		<-done
	}
}
