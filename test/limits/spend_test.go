package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

const (
	// budgetGPUs is the budget of the organisation in these tests.
	budgetGPUs = 3
	podBody    = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`
)

// spenders is a fleet whose organisation has a budget.
type spenders struct {
	*fleet
	platform *platform.Instance
	file     string
	store    *redisstore.Store
}

func newSpenders(t *testing.T, n int) *spenders {
	t.Helper()
	server := redistest.Run(t)
	s := &spenders{
		fleet: &fleet{
			server: server, redis: redistest.Client(t, server.Addr()),
			client: &http.Client{Transport: &http.Transport{}, Timeout: patience},
		},
		platform: platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: credential, Exempt: true})),
	}
	t.Cleanup(s.client.CloseIdleConnections)
	s.store = redisstore.New(s.redis, "tollgate:ledger:", nil)
	s.file = fmt.Sprintf(`listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
platform: {base_url: %q}
redis: {url: {env: REDIS_URL}}
overload: {working: 10000}
limits: {timeout: 5s}
policies: {deadline: 10s}
timeouts: {call: 1s, response: 1s}
spend: {reconcile: 1s}
orgs:
  - id: acme
    credential: {env: ACME_KEY}
    budget: {gpus: %d}
    keys: [{id: ann, sha256: %q}]
`, s.platform.URL, budgetGPUs, identity.DigestOf("secret_ann").String())
	for range n {
		s.start(t)
	}
	return s
}

// start starts one more gateway.
func (s *spenders) start(t *testing.T) {
	t.Helper()
	url, p := serve(t, len(s.gateways), s.file, "redis://"+s.server.Addr())
	s.gateways, s.processes = append(s.gateways, url), append(s.processes, p)
}

// call makes one call to gateway g.
func (s *spenders) call(ctx context.Context, g int, method, path, body string) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, s.gateways[g]+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer secret_ann")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	res, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// counted returns the organisation's committed and reserved amounts.
func (s *spenders) counted(ctx context.Context) (b ledger.Balance, state ledger.State, err error) {
	state, err = s.store.Show(ctx, "acme")
	for _, balance := range state.Balances {
		if balance.Scope.Kind == ledger.KindOrg {
			b = balance
		}
	}
	return b, state, err
}

// sample reads the ledger until stop is called, which says how often it did, and
// fails if it ever held more than the budget.
func (s *spenders) sample(t *testing.T) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			b, _, err := s.counted(ctx)
			if ctx.Err() == nil && err != nil {
				t.Errorf("sample: %v", err)
			}
			if sum := b.Committed[ledger.GPUs] + b.Reserved[ledger.GPUs]; sum > budgetGPUs {
				t.Errorf("%d GPUs are committed and reserved, want at most %d", sum, budgetGPUs)
			}
			n++
		}
		done <- n
	}()
	return func() int { cancel(); return <-done }
}

// TestTheLastSlots: three gateways on one Redis, fifty callers for three slots, time
// and again. What fits succeeds, no more and no less, and at no moment does the
// ledger hold more than the budget.
func TestTheLastSlots(t *testing.T) {
	const gateways, callers, rounds = 3, 50, 8
	s := newSpenders(t, gateways)
	stop := s.sample(t)
	for round := range rounds {
		var mu sync.Mutex
		var made []string
		refused := 0
		var wg sync.WaitGroup
		ready := make(chan struct{})
		for i := range callers {
			wg.Go(func() {
				<-ready
				status, answer, err := s.call(t.Context(), i%gateways, "POST", "/v2/pods", podBody)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Error(err)
				case status == http.StatusCreated:
					var pod struct{ ID string }
					if err := json.Unmarshal([]byte(answer), &pod); err != nil {
						t.Error(err)
					}
					made = append(made, pod.ID)
				case status == http.StatusPaymentRequired:
					refused++
				default:
					t.Errorf("status %d: %s", status, answer)
				}
			})
		}
		close(ready)
		wg.Wait()
		if len(made) != budgetGPUs || refused != callers-budgetGPUs {
			t.Errorf("round %d: %d were made and %d refused, want %d and %d", round, len(made), refused, budgetGPUs, callers-budgetGPUs)
		}
		for i, id := range made {
			if status, answer, err := s.call(t.Context(), (i+1)%gateways, "DELETE", "/v2/pods/"+id, ""); err != nil || status != http.StatusNoContent {
				t.Errorf("delete: %d %s (%v)", status, answer, err)
			}
		}
		if b, _, err := s.counted(t.Context()); err != nil || b.Committed != (ledger.Amounts{}) || b.Reserved != (ledger.Amounts{}) {
			t.Errorf("round %d: %+v is left (%v), want nothing", round, b, err)
		}
	}
	if n := stop(); n < rounds {
		t.Errorf("the ledger was sampled %d times", n)
	}
}

// TestAGatewayKilledBetweenSendingAndAnswer: the platform makes the pod and holds
// its answer, and the gateway dies. The pod stays counted, once, and ends up in the
// ledger under its id.
func TestAGatewayKilledBetweenSendingAndAnswer(t *testing.T) {
	t.Parallel()
	s := newSpenders(t, 1)
	if status, answer, err := s.call(t.Context(), 0, "POST", "/v2/pods", podBody); err != nil || status != http.StatusCreated {
		t.Fatalf("create: %d %s (%v)", status, answer, err)
	}
	s.platform.AddFault(platform.Fault{Operation: "createPod", Kind: platform.FaultHang, After: true, Times: 1})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _, _ = s.call(context.WithoutCancel(t.Context()), 0, "POST", "/v2/pods", podBody) // the gateway dies before it answers
	}()
	world.Until(t, "the platform has made the pod", func() bool { return len(s.platform.CallsTo("createPod")) == 2 })
	s.kill(t, 0)
	<-answered
	s.start(t)
	stop := s.sample(t)
	if b, _, err := s.counted(t.Context()); err != nil || b.Committed[ledger.GPUs]+b.Reserved[ledger.GPUs] != 2 {
		t.Errorf("after the restart %+v is counted (%v), want two GPUs", b, err)
	}
	world.Until(t, "the pod is in the ledger", func() bool {
		_, state, err := s.counted(t.Context())
		return err == nil && len(state.Resources) == 2 && len(state.Holds) == 0
	})
	b, state, err := s.counted(t.Context())
	if err != nil || b.Committed[ledger.GPUs] != 2 || b.Reserved != (ledger.Amounts{}) {
		t.Errorf("%+v is counted (%v), want two GPUs committed", b, err)
	}
	for _, r := range state.Resources {
		if r.Owner.Key != "ann" {
			t.Errorf("pod %s is %+v's, want ann's", r.ID, r.Owner)
		}
	}
	// The first is the repeat of the call that the dead gateway had in hand.
	for i, want := range []int{http.StatusCreated, http.StatusCreated, http.StatusPaymentRequired} {
		if status, answer, err := s.call(t.Context(), 1, "POST", "/v2/pods", podBody); err != nil || status != want {
			t.Errorf("create %d: %d %s (%v), want %d", i, status, answer, err, want)
		}
	}
	if n := len(s.platform.CallsTo("createPod")); n != budgetGPUs {
		t.Errorf("%d creates, want %d", n, budgetGPUs)
	}
	stop()
}

// TestTheLedgerSurvivesItsStore: a Redis that comes back empty opens nothing before the
// ledger was rebuilt from the platform's resources.
func TestTheLedgerSurvivesItsStore(t *testing.T) {
	s := newSpenders(t, 2)
	for range budgetGPUs {
		if status, answer, err := s.call(t.Context(), 0, "POST", "/v2/pods", podBody); err != nil || status != http.StatusCreated {
			t.Fatalf("create: %d %s (%v)", status, answer, err)
		}
	}
	s.server.Kill()
	s.server.Restart()
	world.Until(t, "calls are counted again", func() bool {
		status, answer, err := s.call(t.Context(), 1, "POST", "/v2/pods", podBody)
		if err != nil || status == http.StatusCreated {
			t.Fatalf("create: %d %s (%v), want it refused: the budget is used up", status, answer, err)
		}
		return status == http.StatusPaymentRequired
	})
	if n := len(s.platform.CallsTo("createPod")); n != budgetGPUs {
		t.Errorf("%d pods were made, want %d", n, budgetGPUs)
	}
}
