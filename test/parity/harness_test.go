package parity

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/test/envoytest"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// Tests with many calls at once, or with a bound of seconds, are not parallel: beside others
// they would measure the machine. Those of lost creates, most of the time of all, wait for seconds to pass.
func TestMain(m *testing.M) {
	flag.Parse()
	overlap := "4"       // most of each is waiting
	if testing.Short() { // and without the race detector, with which more would hold each other up
		overlap = "6"
	}
	world.Overlap(overlap)
	// A client of a Redis that is gone tries to connect once a second, and sees that it was closed afterwards.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// canary is in every platform key of these tests. Nothing a caller, a log or a
// metric sees may hold it.
const canary = "CANARY7f3a"

// configuration is what every test runs under; keys are named after their id.
const configuration = `
platform: {base_url: "PLATFORM"}
redis: {embedded: true}
log: {level: debug}
catalog: {sandbox_rate: 0.05}
overload: {working: 10000}
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
	// store is the address of a Redis in place of redis, "" for none.
	store   string
	gateway *gateway.Gateway
	logs    *world.Buffer
	// upstream is where calls go: the platform's address unless a test says
	// otherwise. text is the configuration.
	upstream, text string
	// adjust sets fields that a file cannot; nil for none.
	adjust    func(*settings.Config)
	providers *telemetry.Providers
	// clock is the gateway's; the platform has its own.
	clock *platform.Clock
	// lefts counts the callers that have left before they were answered.
	lefts *atomic.Int64
}

// advance moves every clock: the gateway's, the store's and the platform's.
func (d *door) advance(by time.Duration) {
	d.clock.Advance(by)
	now := d.clock.Now()
	d.redis.SetTime(now)
	d.platform.Clock().AdvanceTo(now)
}

// forget empties the store but for the counts of calls, whose loss would be noticed.
func (d *door) forget() {
	for _, key := range d.redis.Keys() {
		if !strings.HasPrefix(key, "tollgate:rl:") {
			d.redis.Del(key)
		}
	}
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
	d := &door{name: name, logs: new(world.Buffer), lefts: new(atomic.Int64), text: configuration, clock: platform.ManualClock(start)}
	d.platform = platform.RunT(t, platform.WithClock(platform.ManualClock(start)), platform.WithAccounts(
		platform.Account{ID: "acme", Key: "pk-acme-" + canary},
		platform.Account{ID: "globex", Key: "pk-globex-" + canary},
	))
	d.upstream = d.platform.URL
	for _, o := range opts {
		o(d)
	}
	d.redis = miniredis.RunT(t)
	d.redis.SetTime(start)
	d.open(t)
	return d
}

// open opens a gateway.
func (d *door) open(t *testing.T) {
	t.Helper()
	d.gateway = newGateway(t, d)
	front := d.gateway.Handler()
	if d.name == "envoy" {
		front = envoy(t, d)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer context.AfterFunc(r.Context(), func() { d.lefts.Add(1) })()
		front.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	d.addr = s.Listener.Addr().String()
}

func newGateway(t *testing.T, d *door) *gateway.Gateway {
	t.Helper()
	cfg := load(t, d.text, d.upstream)
	if d.adjust != nil {
		d.adjust(&cfg)
	}
	d.providers = world.Providers(t, cfg.Telemetry)
	return world.Gateway(t, cfg, gateway.Deps{
		Redis: world.Redis(t, cmp.Or(d.store, d.redis.Addr())), Providers: d.providers, Now: d.clock.Now, Sleep: d.sleep, Logger: d.logs.Logger(),
	})
}

// sleep lets the gateway's clock alone pass d, at once.
func (d *door) sleep(ctx context.Context, by time.Duration) error {
	d.clock.Advance(by)
	return ctx.Err()
}

// load reads a configuration text with the tests' secrets.
func load(t *testing.T, text, upstream string) settings.Config {
	t.Helper()
	return world.Configuration(t, strings.ReplaceAll(text, "PLATFORM", upstream), map[string]string{
		"ACME": "pk-acme-" + canary, "GLOBEX": "pk-globex-" + canary, "WRONG": "pk-wrong-" + canary,
		"ALERTS": alertSecret,
	})
}

// envoy returns a minimal Envoy in front of the gateway's ext_proc server.
func envoy(t *testing.T, d *door) http.Handler {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	world.Serve(t, d.gateway.ExtProc(), l)
	conn, err := grpc.NewClient("passthrough:bufnet", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
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
type answer = world.Answer

// ask sends raw bytes and reads one response.
func (d *door) ask(t *testing.T, raw string) answer {
	t.Helper()
	return world.Ask(t, d.addr, raw)
}

// request writes one request, as a line of a table does.
func request(method, target, key, body string, header ...string) string {
	return world.Request(method, target, key, body, header...)
}

// platformCalls writes each request as the platform received it, without parts that differ by
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

// comparable strips what may differ between two runs of one exchange. The HTTP door alone compresses, so its long answers have Vary.
func comparable(a answer) answer {
	h := a.Header.Clone()
	for _, name := range []string{"X-Request-Id", "X-Tollgate-Decision", "Date", "Content-Length", "Connection", "Transfer-Encoding", "Vary"} {
		h.Del(name)
	}
	a.Header = h
	a.Body = decisionID.ReplaceAllString(a.Body, `"decision":"ID"`)
	return a
}

// stream opens a streaming GET and hands out its lines. stop leaves.
func (d *door) stream(t *testing.T, target, key string) (lines <-chan string, stop func()) {
	t.Helper()
	conn, err := net.Dial("tcp", d.addr) // without a deadline, which would look like a cut
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
