package runs

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary is in the platform key. Nothing a caller or a log sees may hold it.
const canary = "CANARY7f3a"

// configuration is what every test runs under; keys are named after their id.
const configuration = `
platform: {base_url: "PLATFORM", run_url: "RUNS"}
redis: {embedded: true}
log: {level: debug}
overload: {working: 10000}
limits: {timeout: 10s}
policies: {deadline: 10s}
orgs:
  - id: acme
    credential: {env: ACME}
    POLICIES
    teams: [{id: research}, {id: tiny}]
    keys:
      - {id: key_research, team: research, sha256: SHA256(key_research), roles: [operator], limits: {minute: 600}}
      - {id: key_tiny, team: tiny, sha256: SHA256(key_tiny), roles: [operator], limits: {minute: 2}}
`

// speed is how fast the emulator's clock runs.
const speed = 100

// rig is a gateway before an emulator in a hurry.
type rig struct {
	addr      string
	platform  *platform.Instance
	redis     *miniredis.Miniredis
	gateway   *gateway.Gateway
	logs      *world.Buffer
	providers *telemetry.Providers
	// text is the configuration, runs the address of the run interface.
	text, runs string
	data       net.Listener
	// close waits for the exchanges under way.
	close func()
}

type option func(*rig)

// policies are lines of the organisation's section.
func policies(lines string) option {
	return func(r *rig) { r.text = strings.Replace(r.text, "POLICIES", lines, 1) }
}

// top is lines at the top of the configuration.
func top(lines string) option {
	return func(r *rig) { r.text = lines + "\n" + r.text }
}

// upstream takes the place of the emulator's run interface.
func upstream(t *testing.T, h http.HandlerFunc) option {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return func(r *rig) { r.runs = s.URL }
}

func newRig(t *testing.T, opts ...option) *rig {
	t.Helper()
	r := &rig{text: configuration, logs: new(world.Buffer), data: world.Listen(t)}
	r.platform = platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: "pk-acme-" + canary}),
		platform.WithClock(platform.NewClock(time.Now(), speed)))
	r.runs = r.platform.RunURL
	for _, o := range opts {
		o(r)
	}
	cfg := r.configuration(t)
	r.redis = miniredis.RunT(t)
	r.providers = world.Providers(t, cfg.Telemetry)
	r.gateway = world.Gateway(t, cfg, gateway.Deps{
		Redis: world.Redis(t, r.redis.Addr()), Providers: r.providers, Now: time.Now, Logger: r.logs.Logger(),
		Data: r.data, Admin: world.Listen(t),
	})
	s := httptest.NewServer(r.gateway.Handler())
	t.Cleanup(s.Close)
	r.close = s.Close
	r.addr = s.Listener.Addr().String()
	return r
}

// configuration reads the configuration as it is now.
func (r *rig) configuration(t *testing.T) settings.Config {
	t.Helper()
	text := strings.NewReplacer("PLATFORM", r.platform.URL, "RUNS", r.runs, "POLICIES", "policies: []").Replace(r.text)
	return world.Configuration(t, text, map[string]string{"ACME": "pk-acme-" + canary, "ACME_JOBS": "pk-runs-" + canary})
}

// run has the gateway serve by its own listener, until end is called.
func (r *rig) run(t *testing.T) (end func()) {
	t.Helper()
	r.addr = r.data.Addr().String()
	return world.Run(t, r.gateway)
}

// ask sends a request and reads its answer.
func (r *rig) ask(t *testing.T, method, target, key, body string, header ...string) world.Answer {
	t.Helper()
	return world.Ask(t, r.addr, world.Request(method, target, key, body, header...))
}

// want is ask for an answer of one status, decoded.
func (r *rig) want(t *testing.T, status int, method, target, body string) map[string]any {
	t.Helper()
	a := r.ask(t, method, target, "key_research", body)
	if a.Status != status {
		t.Fatalf("%s %s: status %d, want %d\n%s", method, target, a.Status, status, a.Body)
	}
	return decoded(t, a.Body)
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return m
}

// endpoint makes an endpoint through the gateway and returns its id.
func (r *rig) endpoint(t *testing.T) string {
	t.Helper()
	made := r.want(t, 201, "POST", "/v2/serverless", `{"name":"llm","image":"i","type":"QUEUE","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`)
	id, _ := made["id"].(string)
	return id
}
