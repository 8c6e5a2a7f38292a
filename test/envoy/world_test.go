package envoy

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
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/platform"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary is in every platform key of these tests. No caller may see it.
const canary = "CANARY7f3a"

// configuration is what the gateway runs under; keys are named after their id.
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
    teams: [{id: research}, {id: platform}, {id: tiny}]
    keys:
      - {id: key_research, team: research, sha256: SHA256(key_research), roles: [operator], limits: {minute: 6000, hour: 30000, day: 50000}}
      - {id: key_platform, team: platform, sha256: SHA256(key_platform), roles: [admin], limits: {minute: 6000, hour: 30000, day: 50000}}
      - {id: key_tiny, team: tiny, sha256: SHA256(key_tiny), roles: [operator], limits: {minute: 5, hour: 100, day: 1000}}
  - id: wrong
    credential: {env: WRONG}
    keys:
      - {id: key_wrong, sha256: SHA256(key_wrong)}
`

// now is the time of every clock.
var now = time.Date(2026, 11, 21, 10, 0, 20, 0, time.UTC)

// world is an Envoy, a gateway behind its ext_proc filter, and a platform.
type world struct {
	*process
	platform *platform.Instance
	gateway  *gateway.Gateway
	// door is the ext_proc server, gate what stands between it and Envoy.
	door *grpc.Server
	gate *gate
	logs *safeBuffer
	// plain is the address of the same gateway's HTTP door.
	plain string
	// upstream is where Envoy and the gateway send calls.
	upstream string
	shape    func(*bootstrap)
}

// option changes a world before it opens.
type option func(*world)

// shaped changes the bootstrap.
func shaped(f func(*bootstrap)) option { return func(w *world) { w.shape = f } }

// to sends calls elsewhere than to the emulated platform.
func to(upstream string) option { return func(w *world) { w.upstream = upstream } }

// open starts everything.
func open(t *testing.T, opts ...option) *world {
	t.Helper()
	program(t)
	w := &world{logs: new(safeBuffer), shape: func(*bootstrap) {}}
	w.platform = platform.RunT(t, platform.WithClock(platform.ManualClock(now)), platform.WithAccounts(
		platform.Account{ID: "acme", Key: "pk-acme-" + canary},
	))
	w.upstream = w.platform.URL
	for _, o := range opts {
		o(w)
	}
	w.gateway = newGateway(t, w)
	w.gate = newGate(t, w.serve(t))
	plain := httptest.NewServer(w.gateway.Handler())
	t.Cleanup(plain.Close)
	w.plain = plain.Listener.Addr().String()
	b := shipped(t)
	b.local()
	b.point("tollgate", w.gate.addr)
	b.point("platform", host(t, w.upstream))
	w.shape(b)
	w.process = start(t, b)
	return w
}

// serve runs the ext_proc server and returns its address.
func (w *world) serve(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.door = w.gateway.ExtProc()
	served := make(chan error, 1)
	go func() { served <- w.door.Serve(l) }()
	t.Cleanup(func() {
		w.door.Stop()
		if err := <-served; err != nil {
			t.Errorf("ext_proc server: %v", err)
		}
	})
	return l.Addr().String()
}

func newGateway(t *testing.T, w *world) *gateway.Gateway {
	t.Helper()
	mini := miniredis.RunT(t)
	mini.SetTime(now)
	loaded := load(t, w.upstream)
	opts, err := redisstore.Options("redis://" + mini.Addr())
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
	t.Cleanup(func() { _ = providers.Shutdown(context.Background()) })
	api, err := loadAPI()
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(loaded.Gateway, gateway.Deps{
		API: api, Redis: client, Providers: providers, Version: "test", Now: func() time.Time { return now },
		Logger: slog.New(slog.NewJSONHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// loadAPI compiles the description once for all gateways.
var loadAPI = sync.OnceValues(schema.Load)

// load reads the configuration with the tests' keys and secrets filled in.
func load(t *testing.T, upstream string) *config.Loaded {
	t.Helper()
	text := strings.ReplaceAll(configuration, "PLATFORM", upstream)
	for _, key := range []string{"key_research", "key_platform", "key_tiny", "key_wrong"} {
		text = strings.ReplaceAll(text, "SHA256("+key+")", identity.DigestOf(key).String())
	}
	secrets := map[string]string{"ACME": "pk-acme-" + canary, "WRONG": "pk-wrong-" + canary}
	loaded, err := config.Parse("test.yaml", []byte(text), config.Sources{
		Env: func(name string) (string, bool) { v, ok := secrets[name]; return v, ok },
	})
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func host(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// answer is a response as a caller sees it.
type answer struct {
	Status int
	Header http.Header
	Body   string
}

// dial connects until the test ends.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// send sends raw bytes to Envoy and reads one response.
func (w *world) send(t *testing.T, raw string) answer {
	t.Helper()
	return exchange(t, w.addr, raw)
}

// exchange sends raw bytes on a connection of its own and reads one response.
func exchange(t *testing.T, addr, raw string) answer {
	t.Helper()
	conn := dial(t, addr)
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	return read(t, bufio.NewReader(conn), raw)
}

// read reads the final response to a request.
func read(t *testing.T, r *bufio.Reader, raw string) answer {
	t.Helper()
	method, _, _ := strings.Cut(raw, " ")
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	for err == nil && res.StatusCode == http.StatusContinue {
		res, err = http.ReadResponse(r, &http.Request{Method: method})
	}
	if err != nil {
		t.Fatalf("no response to %.60q: %v", raw, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("the body of the response to %.60q: %v", raw, err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

// sent returns the calls that reached the platform while f ran, price lists
// aside.
func (w *world) sent(f func()) []platform.Call {
	before := len(w.platform.Calls())
	f()
	return slices.DeleteFunc(slices.Clone(w.platform.Calls()[before:]), func(c platform.Call) bool {
		return strings.HasPrefix(c.Path, "/v2/catalog")
	})
}

// request writes one request; header lines are complete, without line ends. A
// body gets a Content-Length, unless it is chunked, and a content type, unless
// one is given.
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
	if body != "" && !has("transfer-encoding") && !has("content-length") {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

// chunked writes parts in the chunked transfer coding.
func chunked(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(p), p)
	}
	return b.String() + "0\r\n\r\n"
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
