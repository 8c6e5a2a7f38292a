package spend

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	limits "github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// drops loses steps of the ledger on their way to the store and back.
type drops struct {
	mu   sync.Mutex // guards what follows
	left int        // how many steps are lost
	// before says that they are lost on their way to the store.
	before bool
	lost   int
}

// arm has the next steps be lost.
func (d *drops) arm(n int, before bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.before, d.lost = n, before, 0
}

// disarm has none be lost, and returns how many were.
func (d *drops) disarm() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = 0
	return d.lost
}

// take reports whether a step is lost, and on which way.
func (d *drops) take(cmds ...redis.Cmder) (lost, before bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ledger := false
	for _, cmd := range cmds {
		ledger = ledger || strings.HasPrefix(cmd.Name(), "eval") && strings.Contains(fmt.Sprint(cmd.Args()), prefix+"{acme}:holds")
	}
	if !ledger || d.left == 0 {
		return false, false
	}
	d.left--
	d.lost++
	return true, d.before
}

// DialHook implements redis.Hook.
func (*drops) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (d *drops) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return d.process([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements redis.Hook.
func (d *drops) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return d.process(cmds, func() error { return next(ctx, cmds) })
	}
}

func (d *drops) process(cmds []redis.Cmder, next func() error) error {
	lost, before := d.take(cmds...)
	if !lost || !before {
		if err := next(); !lost {
			return err
		}
	}
	for _, cmd := range cmds {
		cmd.SetErr(context.DeadlineExceeded)
	}
	return context.DeadlineExceeded
}

// TestLostRepliesAreMadeUpFor loses steps of the ledger, as many as a call has and more. A gateway
// with the settings that operators have has no reservation left of it five seconds later, and
// counts the platform's pods.
func TestLostRepliesAreMadeUpFor(t *testing.T) {
	t.Parallel()
	const body = `{"name":"a","image":"img:1","disk":20,"gpu":{"id":"NVIDIA L4"}}`
	addr, d := redistest.Start(t), new(drops)
	client, err := limits.Open("redis://"+addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(d)
	s := open(t, &plan{gateways: 1, run: true, redis: addr, client: client, config: "    budget: {gpus: 50}\n    keys: [{id: ann, sha256: SHA256(key_of_ann_1), roles: [admin], exempt: true}]\n"})
	s.await("the ledger is complete", func() bool { s := s.state(); return s.Complete })
	var made []string
	for _, before := range []bool{false, true} {
		for n := 1; n <= 6; n++ {
			for _, method := range []string{http.MethodPost, http.MethodDelete} {
				path, text := pods, body
				if method == http.MethodDelete {
					if len(made) == 0 {
						continue
					}
					path, text = pods+"/"+made[0], ""
				}
				d.arm(n, before)
				a, err := s.ask(0, "key_of_ann_1", method, path, text)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case a.status == http.StatusCreated:
					made = append(made, a.id())
				case method == http.MethodDelete && a.status == http.StatusNoContent:
					made = made[1:]
				case method == http.MethodDelete || a.status != http.StatusServiceUnavailable:
					t.Errorf("%s: %d %s", method, a.status, a.body)
				}
				lost := d.disarm()
				s.soon(fmt.Sprintf("%s with %d steps lost (before: %t)", method, lost, before), len(made))
			}
		}
	}
	s.measured(`tollgate_ledger_queued{org="acme"`, `tollgate_ledger_hold_age_seconds{org="acme"`, `tollgate_ledger_overdue{org="acme"`)
}

// soon wants that nothing is reserved five seconds from now, and that a number of pods
// count.
func (s *site) soon(what string, pods int) {
	s.t.Helper()
	var state ledger.State
	for until := time.Now().Add(5 * time.Second); ; {
		state = s.state()
		b := balance(&state, ledger.Scope{Kind: ledger.KindOrg})
		if len(state.Holds) == 0 && b.Reserved == (ledger.Amounts{}) && b.Committed[ledger.Pods] == int64(pods) {
			return
		}
		if time.Now().After(until) {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	s.t.Errorf("%s: holds %+v, balances %+v, want %d pods", what, state.Holds, state.Balances, pods)
}

// measured wants that the gateway exports metrics.
func (s *site) measured(metrics ...string) {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.gateways[0].AdminHandler().ServeHTTP(w, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for _, m := range metrics {
		if !strings.Contains(w.Body.String(), m) {
			s.t.Errorf("%s is not exported", m)
		}
	}
}
