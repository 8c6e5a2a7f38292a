package spend

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	limits "github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

func TestMain(m *testing.M) {
	world.Overlap("20")                                    // all scenes of TestFaults, most of which wait for a minute
	if err := flag.Set("rapid.checks", "25"); err != nil { // -rapid.checks overrides it
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// long has the races repeated as often as make soak wants them.
var long = flag.Bool("long", false, "repeat races five times as often") //nolint:gochecknoglobals // a flag

// credential is the platform key of the one organisation.
const credential = "platform-key-of-acme"

// prefix begins the ledger's keys.
const prefix = "tollgate:ledger:"

// site is the emulated platform with gateways in front of it that share a store.
type site struct {
	t        *testing.T
	platform *platform.Instance
	deps     gateway.Deps // of each gateway
	gateways []*front
	store    *redisstore.Store
	client   *http.Client
	settings string
}

// text is a configuration with something below the organisation's credential.
func (s *site) text(config string) string {
	return s.settings + "orgs:\n  - id: acme\n    credential: {env: ACME}\n" + config
}

// front is one gateway.
type front struct {
	*gateway.Gateway

	url string
}

// plan describes a site.
type plan struct {
	gateways int
	// config is the part of a configuration below orgs' credential: budgets, teams and keys.
	config string
	// settings are further lines of the configuration.
	settings string
	// redis is where the gateways find the store, truth where the test does.
	redis, truth string
	// client is the gateways' of the store, and leaves everything as operators have it;
	// nil is one that gives up soon.
	client limits.Client
	// upstream is where the gateways find the platform, if not at its own address.
	upstream func(url string) string
	// clock is the platform's, and that of the gateways, platformClock the platform's
	// alone; nil is the machine's.
	clock, platformClock *platform.Clock
	// run has the gateways do their background work, and lose patience with the store
	// and the platform as they would outside of tests, only sooner.
	run bool
}

func open(t *testing.T, p *plan) *site {
	t.Helper()
	options := []platform.Option{platform.WithAccounts(platform.Account{ID: "acme", Key: credential, Exempt: true, Balance: 1e9})}
	deps := gateway.Deps{}
	if p.clock != nil {
		options = append(options, platform.WithClock(p.clock))
		deps.Now = p.clock.Now
	}
	if p.platformClock != nil {
		options = append(options, platform.WithClock(p.platformClock))
	}
	s := &site{t: t, platform: platform.RunT(t, options...)}
	if p.truth == "" {
		p.truth = p.redis
	}
	s.store = redisstore.New(redistest.Client(t, p.truth), prefix, nil)
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 2 * time.Minute}
	t.Cleanup(s.client.CloseIdleConnections)
	upstream := s.platform.URL
	if p.upstream != nil {
		upstream = p.upstream(upstream)
	}
	s.settings = fmt.Sprintf("platform: {base_url: %q}\nredis: {embedded: true}\npolicies: {deadline: 10s}\n%s\n", upstream, p.settings)
	s.deps = deps
	s.start(p)
	return s
}

// start starts the gateways of a plan.
func (s *site) start(p *plan) {
	s.t.Helper()
	t := s.t
	for range p.gateways {
		cfg := world.Configuration(t, s.text(p.config), map[string]string{"ACME": credential})
		own := s.deps
		if !p.run {
			own.Redis = world.Redis(t, p.redis)
		} else {
			if own.Redis = p.client; p.client == nil {
				own.Redis = brisk(t, p.redis)
				cfg.Spend.Unresolved = unresolved // shorter than operators may have it
			}
			own.Data, own.Admin = world.Listen(t), world.Listen(t)
		}
		f := &front{Gateway: world.Gateway(t, cfg, own)}
		if p.run {
			f.url = "http://" + own.Data.Addr().String()
			world.Run(t, f.Gateway)
		} else {
			server := httptest.NewServer(f.Handler())
			t.Cleanup(server.Close)
			f.url = server.URL
		}
		s.gateways = append(s.gateways, f)
	}
}

// unresolved is how long the gateways search for a resource that a lost call may have made.
const unresolved = 3 * time.Second

// brisk returns a client that gives up soon.
func brisk(t *testing.T, addr string) limits.Client {
	t.Helper()
	client, err := limits.Open("redis://"+addr, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// answer is a response as a caller sees it.
type answer struct {
	status int
	header http.Header
	body   string
}

// id is that of the resource in an answer.
func (a answer) id() string {
	var r struct{ ID string }
	_ = json.Unmarshal([]byte(a.body), &r) // an answer without one has none
	return r.ID
}

// ask makes a call to gateway g with a key.
func (s *site) ask(g int, key, method, path, body string) (answer, error) {
	return s.call(s.gateways[g%len(s.gateways)].url, key, method, path, body)
}

func (s *site) call(base, key, method, path, body string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), time.Minute)
	defer cancel()
	var content io.Reader = http.NoBody
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, content)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(text)}, err
}

// outside makes a call to the platform, past the gateways.
func (s *site) outside(method, path, body string) answer {
	s.t.Helper()
	a, err := s.call(s.platform.URL, credential, method, path, body)
	if err != nil || a.status >= 300 {
		s.t.Fatalf("%s %s: %d %s (%v)", method, path, a.status, a.body, err)
	}
	return a
}

// reconcile makes a pass, as an operator would ask for it.
func (s *site) reconcile(g int) money.Reconciled {
	s.t.Helper()
	out, err := s.pass(g)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// pass is reconcile, which can fail while the store is in trouble.
func (s *site) pass(g int) (out money.Reconciled, err error) {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "/admin/spend/reconcile?org=acme", http.NoBody)
	r.Host = "127.0.0.1"
	s.gateways[g].AdminHandler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return out, fmt.Errorf("reconcile: %d %s", w.Code, w.Body)
	}
	return out, json.Unmarshal(w.Body.Bytes(), &out)
}

// state is the ledger as a reader of its own finds it.
func (s *site) state() ledger.State {
	s.t.Helper()
	state, err := s.store.Show(s.t.Context(), "acme")
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

// balance is a state's count for a scope.
func balance(state *ledger.State, scope ledger.Scope) ledger.Balance {
	for _, b := range state.Balances {
		if b.Scope == scope {
			return b
		}
	}
	return ledger.Balance{Scope: scope}
}

// await waits for something that takes others' time.
func (s *site) await(what string, holds func() bool) {
	s.t.Helper()
	late := time.NewTimer(3 * time.Minute) // what is gone is known a minute after its last change, at the next pass
	defer late.Stop()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for !holds() {
		select {
		case <-every.C:
		case <-late.C:
			s.t.Fatalf("not so in time: %s", what)
		}
	}
}
