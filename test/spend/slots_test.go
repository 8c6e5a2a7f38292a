package spend

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

const (
	// lanes are the teams that race at the same time, each for a budget of its own.
	lanes = 4
	// racers are the callers of a team that race for its last slot.
	racers = 50

	slotPod = `{"name":"a","image":"img:1","disk":20,"gpu":{"id":"NVIDIA L4"}}`
)

// The budgets of the lanes: of each kind that is held at every moment, one that two
// pods fit in and a third does not.
var laneBudgets = [lanes]string{"{gpus: 2}", "{pods: 2}", "{per_hour: 1.2}", "{per_hour: 0.9, gpus: 3, pods: 5}"} //nolint:gochecknoglobals // read only

// laneLimits are the same, for the sampler; 0 is none.
var laneLimits = [lanes]ledger.Amounts{{ledger.GPUs: 2}, {ledger.Pods: 2}, {ledger.Burn: 1_200_000}, {ledger.Burn: 900_000, ledger.GPUs: 3, ledger.Pods: 5}} //nolint:gochecknoglobals // read only

// TestTheLastSlot: fifty callers at several gateways race for the last slot of a
// budget, two hundred times in all, a thousand times with -long. Exactly one succeeds
// each time, and at no sample does the ledger hold more than the budget.
func TestTheLastSlot(t *testing.T) {
	rounds := 100
	if *long {
		rounds = 500
	}
	for _, gateways := range []int{2, 8} {
		t.Run(fmt.Sprint(gateways, " gateways"), func(t *testing.T) {
			s := open(t, &plan{gateways: gateways, config: lanesConfig(), redis: redistest.Start(t)})
			s.reconcile(0)
			stop := s.sample()
			var wg sync.WaitGroup
			for lane := range lanes {
				wg.Go(func() {
					s.rent(lane) // one of the two slots
					for round := range rounds / lanes {
						s.race(lane, round)
					}
				})
			}
			wg.Wait()
			if n := stop(); n < int64(rounds/lanes) {
				t.Errorf("the ledger was sampled %d times in %d rounds", n, rounds)
			}
			if state := s.state(); len(state.Holds) != 0 || len(state.Resources) != lanes {
				t.Errorf("%d holds and %d pods are left, want none and %d", len(state.Holds), len(state.Resources), lanes)
			}
		})
	}
}

func laneKey(lane int) string { return fmt.Sprintf("key_lane_%d", lane) }

func lanesConfig() string {
	var teams, keys strings.Builder
	for i, budget := range laneBudgets {
		fmt.Fprintf(&teams, "      - {id: lane%d, budget: %s}\n", i, budget)
		fmt.Fprintf(&keys, "      - {id: lane%d, team: lane%d, sha256: SHA256(%s), roles: [admin], exempt: true}\n", i, i, laneKey(i))
	}
	return "    teams:\n" + teams.String() + "    keys:\n" + keys.String()
}

// rent creates a pod.
func (s *site) rent(lane int) (id string) {
	s.t.Helper()
	a, err := s.ask(lane, laneKey(lane), http.MethodPost, "/v2/pods", slotPod)
	if err != nil || a.status != http.StatusCreated {
		s.t.Errorf("create: %d %s (%v)", a.status, a.body, err)
	}
	return a.id()
}

// race has all callers of a lane ask at once, and makes room again.
func (s *site) race(lane, round int) {
	var mu sync.Mutex
	var made []string
	var wg sync.WaitGroup
	ready := make(chan struct{})
	for i := range racers {
		wg.Go(func() {
			<-ready
			a, err := s.ask(i, laneKey(lane), http.MethodPost, "/v2/pods", slotPod)
			switch {
			case err == nil && a.status == http.StatusCreated:
				mu.Lock()
				made = append(made, a.id())
				mu.Unlock()
			case err != nil || a.status != http.StatusPaymentRequired:
				s.t.Errorf("create: %d %s (%v), want 201 or 402", a.status, a.body, err)
			}
		})
	}
	close(ready)
	wg.Wait()
	if len(made) != 1 {
		s.t.Errorf("lane %d, round %d: %d callers succeeded, want 1", lane, round, len(made))
	}
	for _, id := range made {
		a, err := s.ask(lane+round, laneKey(lane), http.MethodDelete, "/v2/pods/"+id, "")
		if err != nil || a.status != http.StatusNoContent {
			s.t.Errorf("delete: %d %s (%v)", a.status, a.body, err)
		}
	}
}

// sample reads the ledger until stop is called, which says how often it did, and
// fails if a team ever has more than its budget, or the organisation something else
// than its teams together.
func (s *site) sample() (stop func() int64) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var n atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			state, err := s.store.Show(ctx, "acme")
			if err != nil {
				if ctx.Err() == nil {
					s.t.Errorf("sample: %v", err)
				}
				continue
			}
			n.Add(1)
			var sum ledger.Amounts
			for lane, limits := range laneLimits {
				b := balance(&state, ledger.Scope{Kind: ledger.KindTeam, ID: fmt.Sprint("lane", lane)})
				for d, limit := range limits {
					sum[d] += b.Committed[d] + b.Reserved[d]
					if has := b.Committed[d] + b.Reserved[d]; limit > 0 && has > limit {
						s.t.Errorf("lane %d has %d of dimension %d, want at most %d", lane, has, d, limit)
					}
				}
			}
			org := balance(&state, ledger.Scope{Kind: ledger.KindOrg})
			for d := range sum {
				if got := org.Committed[d] + org.Reserved[d]; got != sum[d] {
					s.t.Errorf("the organisation has %d of dimension %d, its teams %d", got, d, sum[d])
				}
			}
		}
	}()
	return func() int64 {
		cancel()
		<-done
		return n.Load()
	}
}
