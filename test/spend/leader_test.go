package spend

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// TestLeaseIsReleasedAtShutdown: a gateway that ends orderly leaves no lease of the leader behind, which would keep the
// other gateways, and its own next start, from looking at the platform for three intervals.
func TestLeaseIsReleasedAtShutdown(t *testing.T) {
	t.Parallel()
	store := redistest.Run(t)
	redis := redistest.Client(t, store.Addr())
	s := open(t, &plan{redis: store.Addr(), config: "    budget: {gpus: 1}\n"})
	leads := func() bool { return redis.Exists(t.Context(), prefix+"leader").Val() == 1 }
	for range 2 {
		deps := s.deps
		deps.Redis, deps.Data, deps.Admin = world.Redis(t, store.Addr()), world.Listen(t), world.Listen(t)
		end := world.Run(t, world.Gateway(t, world.Configuration(t, s.text("    budget: {gpus: 1}\n"), map[string]string{"ACME": credential}), deps))
		s.await("a gateway leads", leads)
		end()
		if leads() {
			t.Fatalf("the lease remains for %s", redis.TTL(t.Context(), prefix+"leader").Val())
		}
	}
}

// TestHoldsNameTheirGateway: the hold of a call in flight has the name by which other gateways know that its gateway is alive, also if the
// name is not configured.
func TestHoldsNameTheirGateway(t *testing.T) {
	t.Parallel()
	store := redistest.Run(t)
	alive := func() []string {
		return redistest.Client(t, store.Addr()).ZRange(t.Context(), "tollgate:rl:gateways", 0, -1).Val()
	}
	var s *site
	inFlight := make(chan []ledger.Hold, 1)
	s = open(t, &plan{
		gateways: 1, run: true, redis: store.Addr(), upstream: func(to string) string {
			return before(t, to, func(r *http.Request) {
				if r.Method == http.MethodPost && r.URL.Path == pods {
					inFlight <- s.state().Holds
				}
			})
		},
		config: "    teams: [{id: research, budget: {gpus: 1}}]\n    keys:\n" +
			"      - {id: ann, team: research, sha256: SHA256(key_of_ann_1), roles: [admin], exempt: true}\n",
	})
	s.await("the gateway is heard, and its ledger complete", func() bool { return len(alive()) == 1 && s.state().Complete })
	a, err := s.ask(0, "key_of_ann_1", http.MethodPost, pods, slotPod)
	if err != nil || a.status != http.StatusCreated {
		t.Fatalf("create: %d %s (%v)", a.status, a.body, err)
	}
	var names []string
	for _, h := range <-inFlight {
		names = append(names, h.Holder.Gateway)
	}
	if want := alive(); !slices.Equal(names, want) {
		t.Errorf("the hold is of gateway %q, want %q", names, want)
	}
}

// before returns the address of a proxy that calls look before each request.
func before(t *testing.T, to string, look func(r *http.Request)) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		look(r)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
