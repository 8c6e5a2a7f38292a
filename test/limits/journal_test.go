package limits

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// teamBudget is a configuration on default settings whose team may have budgetGPUs.
const teamBudget = `listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
platform: {base_url: %q}
redis: {url: {env: REDIS_URL}}
orgs:
  - id: acme
    credential: {env: ACME_KEY}
    teams: [{id: research, budget: {gpus: %d}}]
    keys: [{id: ann, team: research, sha256: %q}]
`

// newTeam returns a Redis and a platform for gateways, each with a state directory of its own, and starts two.
func newTeam(t *testing.T) (s *spenders, start func()) {
	t.Helper()
	server := redistest.Run(t)
	s = &spenders{
		fleet: &fleet{
			server: server, redis: redistest.Client(t, server.Addr()),
			client: &http.Client{Transport: &http.Transport{}, Timeout: patience},
		},
		platform: platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: credential, Exempt: true})),
	}
	t.Cleanup(s.client.CloseIdleConnections)
	s.store = redisstore.New(s.redis, "tollgate:ledger:", nil)
	s.file = fmt.Sprintf(teamBudget, s.platform.URL, budgetGPUs, identity.DigestOf("secret_ann").String())
	state := []string{t.TempDir(), t.TempDir()}
	start = func() {
		s.gateways, s.processes = nil, nil
		for g, dir := range state {
			url, p := serve(t, g, s.file, "redis://"+server.Addr(), "STATE_DIRECTORY="+dir)
			s.gateways, s.processes = append(s.gateways, url), append(s.processes, p)
		}
	}
	start()
	return s, start
}

// create makes a pod at gateway g.
func (s *spenders) create(t *testing.T, g int, name string) {
	t.Helper()
	world.Until(t, "the ledger is complete", func() bool {
		status, answer, err := s.call(t.Context(), g, http.MethodPost, "/v2/pods", named(name))
		if err != nil || status != http.StatusCreated && status != http.StatusServiceUnavailable {
			t.Fatalf("create: %d %s (%v)", status, answer, err)
		}
		return status == http.StatusCreated
	})
}

func named(name string) string {
	return fmt.Sprintf(`{"name":%q,"image":"img:1","gpu":{"id":"NVIDIA L4"}}`, name)
}

// full makes calls until gateway g answers one, and wants it refused by the budget.
func (s *spenders) full(t *testing.T, g int, name string) {
	t.Helper()
	world.Until(t, "the ledger is complete again", func() bool {
		status, answer, err := s.call(t.Context(), g, http.MethodPost, "/v2/pods", named(name))
		if err != nil || status != http.StatusPaymentRequired && status != http.StatusServiceUnavailable {
			t.Fatalf("create: %d %s (%v), want 402", status, answer, err)
		}
		return status == http.StatusPaymentRequired
	})
}

// TestRedisAndAllGatewaysAreLost: Redis loses everything together with both gateways. Each gateway offers what its journal has, so
// that no further pod passes the budget of the team and the pods keep their owners.
func TestRedisAndAllGatewaysAreLost(t *testing.T) {
	t.Parallel()
	first := func(s *spenders, start func()) {
		s.server.Restart()
		start()
	}
	for name, tt := range map[string]struct {
		saved   bool // Redis comes back with its data of before the last two pods
		restart func(s *spenders, start func())
	}{
		"everything is killed":      {restart: first},
		"Redis returns to the past": {saved: true, restart: first},
		"Redis returns when gateways are young": {restart: func(s *spenders, start func()) { // as docker compose restart can do it
			start()
			s.server.Restart()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, start := newTeam(t)
			for i := range budgetGPUs {
				s.create(t, i%2, fmt.Sprintf("p%d", i))
				if i == 0 && tt.saved {
					world.Until(t, "the data is saved", func() bool { return s.redis.Save(t.Context()).Err() == nil })
				}
			}
			s.server.Kill()
			s.kill(t, 0)
			s.kill(t, 1)
			tt.restart(s, start)
			for i := range budgetGPUs {
				s.full(t, i%2, fmt.Sprintf("more%d", i))
			}
			_, state, err := s.counted(t.Context())
			if err != nil || len(state.Resources) != budgetGPUs {
				t.Errorf("the ledger has %d resources (%v), want %d", len(state.Resources), err, budgetGPUs)
			}
			for _, r := range state.Resources {
				if want := (ledger.Owner{Team: "research", Key: "ann"}); r.Owner != want {
					t.Errorf("pod %s belongs to %+v, want %+v", r.Metadata.Name, r.Owner, want)
				}
			}
			if n := len(s.platform.CallsTo("createPod")); n != budgetGPUs {
				t.Errorf("%d pods were made, want %d", n, budgetGPUs)
			}
			lost := budgetGPUs
			if tt.saved {
				lost--
			}
			s.reported(t, lost)
		})
	}
}

// reported waits for the report on the loss of the ledger, and wants so many resources to have their owner back. Gateways that
// start together rebuild the ledger one after another, and no rebuild fails.
func (s *spenders) reported(t *testing.T, returned int) {
	t.Helper()
	var l *ledger.Loss
	world.Until(t, "the loss is reported", func() bool {
		var err error
		if l, err = ledger.LastLoss(t.Context(), s.store, "acme"); err != nil {
			t.Fatal(err)
		}
		return l != nil && !l.Rebuilt.IsZero()
	})
	if l.Returned != returned || l.Unowned != 0 || !l.Rebuilt.After(l.At) {
		t.Errorf("loss = %+v, want %d resources with their owner back, and a rebuild after the loss", l, returned)
	}
	for g, p := range s.processes {
		for _, text := range []string{"cannot rebuild a lost ledger", "lost its data during the rebuild"} {
			if strings.Contains(p.log.String(), text) {
				t.Errorf("gateway %d logs %q:\n%s", g, text, p.log)
			}
		}
	}
}

// TestCallsInFlightOutliveEverything: the reservation of a create is restored whose gateway was lost with Redis.
func TestCallsInFlightOutliveEverything(t *testing.T) {
	t.Parallel()
	s, start := newTeam(t)
	for i := range budgetGPUs - 1 {
		s.create(t, i%2, fmt.Sprintf("p%d", i))
	}
	s.platform.AddFault(platform.Fault{Operation: "createPod", Kind: platform.FaultHang, After: true, Times: 1})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _, _ = s.call(context.WithoutCancel(t.Context()), 0, http.MethodPost, "/v2/pods", named("in flight")) // the gateway dies before it answers
	}()
	world.Until(t, "the platform has made the pod", func() bool { return len(s.platform.CallsTo("createPod")) == budgetGPUs })
	s.server.Kill()
	s.kill(t, 0)
	s.kill(t, 1)
	<-answered
	s.server.Restart()
	start()
	s.full(t, 1, "more")
	_, state, err := s.counted(t.Context())
	if err != nil || len(state.Holds) != 1 || state.Holds[0].Metadata.Name != "in flight" || state.Holds[0].Owner.Team != "research" {
		t.Errorf("the ledger has the reservations %+v (%v), want that of the call in flight", state.Holds, err)
	}
}
