package envoy

import (
	"context"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/built"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// Tests that hold a fleet under load, and tests that count passing calls, are not
// parallel.
func TestMain(m *testing.M) {
	world.Overlap("4")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		tollgate.Remove()
		os.Exit(code)
	}))
}

// tollgate is the program.
var tollgate built.Shared //nolint:gochecknoglobals // built once for all tests

// canary is in every platform key of these tests. No caller may see it.
const canary = "CANARY7f3a"

// configuration is the gateway's file; keys are named after their id. A gateway that ends
// does not wait for Envoys: see [patient].
const configuration = `
platform: {base_url: "PLATFORM"}
redis: {embedded: true}
log: {level: debug}
overload: {working: 10000}
limits: {timeout: 10s}
timeouts: {lookup: 0s, notice: 1ms}
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

// patient is a configuration whose gateways, when they end, serve on for as long as they do
// by default, so that Envoys notice: for tests whose callers go on meanwhile, or after.
func patient(text string) string { return strings.Replace(text, ", notice: 1ms", "", 1) }

// now is the time of every clock.
var now = time.Date(2026, 11, 21, 10, 0, 20, 0, time.UTC)

// way are the stations of a call: an Envoy, a gateway behind its ext_proc filter, and a
// platform.
type way struct {
	*process
	platform *platform.Instance
	gateway  *gateway.Gateway
	// door is the ext_proc server, gate the relay between it and Envoy.
	door *grpc.Server
	gate *gate
	logs *world.Buffer
	// plain is the address of the same gateway's HTTP door.
	plain string
	// upstream is where Envoy and the gateway send calls.
	upstream string
	// configuration is the gateway's file.
	configuration string
	shape         func(*bootstrap)
}

// option changes a way before it opens.
type option func(*way)

// shaped changes the bootstrap.
func shaped(f func(*bootstrap)) option { return func(w *way) { w.shape = f } }

// to sends calls elsewhere than to the emulated platform.
func to(upstream string) option { return func(w *way) { w.upstream = upstream } }

// open starts everything.
func open(t *testing.T, opts ...option) *way {
	t.Helper()
	program(t)
	w := &way{logs: new(world.Buffer), shape: func(*bootstrap) {}, configuration: configuration}
	w.platform = platform.RunT(t, platform.WithClock(platform.ManualClock(now)), platform.WithAccounts(
		platform.Account{ID: "acme", Key: "pk-acme-" + canary},
		platform.Account{ID: "spending", Key: "pk-spending-" + canary},
		platform.Account{ID: "changing", Key: "pk-changing-" + canary},
		platform.Account{ID: "asking", Key: "pk-asking-" + canary},
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
func (w *way) serve(t *testing.T) string {
	t.Helper()
	l := world.Listen(t)
	w.door = w.gateway.ExtProc()
	world.Serve(t, w.door, l)
	return l.Addr().String()
}

// newGateway makes the gateway that Envoy asks.
func newGateway(t *testing.T, w *way) *gateway.Gateway {
	t.Helper()
	store := miniredis.RunT(t)
	store.SetTime(now)
	cfg := world.Configuration(t, strings.ReplaceAll(w.configuration, "PLATFORM", w.upstream), map[string]string{
		"ACME": "pk-acme-" + canary, "WRONG": "pk-wrong-" + canary,
		"SPENDING": "pk-spending-" + canary, "APART": "pk-apart-" + canary, "CHANGING": "pk-changing-" + canary, "ASKING": "pk-asking-" + canary,
	})
	return world.Gateway(t, cfg, gateway.Deps{
		Redis: world.Redis(t, store.Addr()), Now: func() time.Time { return now }, Logger: w.logs.Logger(),
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, // between calls that the old dialects repeat
	})
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
type answer = world.Answer

// send sends raw bytes to Envoy and reads one response.
func (w *way) send(t *testing.T, raw string) answer {
	t.Helper()
	return world.Ask(t, w.addr, raw)
}

// sent returns the calls that reached the platform while f ran, price lists
// aside.
func (w *way) sent(f func()) []platform.Call {
	before := len(w.platform.Calls())
	f()
	return slices.DeleteFunc(slices.Clone(w.platform.Calls()[before:]), func(c platform.Call) bool {
		return strings.HasPrefix(c.Path, "/v2/catalog")
	})
}

// request writes one request, as a line of a table does.
func request(method, target, key, body string, header ...string) string {
	return world.Request(method, target, key, body, header...)
}
