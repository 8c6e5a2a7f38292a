package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// counter counts scripts that are sent by themselves.
type counter struct{ scripts *atomic.Int64 }

// DialHook implements redis.Hook.
func (counter) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (c counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			c.scripts.Add(1)
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// traced is a client that counts spans that have ended.
type traced struct {
	redis.Cmdable
	ended *atomic.Int64
}

// Span is called for each call.
func (c traced) Span(context.Context, string) func() { return func() { c.ended.Add(1) } }

// TestCallsOfOneMoment: calls that wait at the same time share scripts, each has its own answer, and a record that cannot be
// read fails only the calls about it. Each call has a span.
func TestCallsOfOneMoment(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		const creates, broken = 200, 20
		client := traced{r.Client, new(atomic.Int64)}
		c := newCreator(t, client, 3, 0)
		c.each[ledger.Cost], c.each[ledger.Sandboxes], c.each[ledger.Bounded] = 2_000_000, 1, 100_000
		c.create(t)
		if err := r.Client.HSet(t.Context(), "tg:spend:{acme}:resources", "broken", "no record").Err(); err != nil {
			t.Fatal(err)
		}
		client.ended.Store(0)
		sent := new(atomic.Int64)
		r.Client.AddHook(counter{sent})
		var callers sync.WaitGroup
		for i := range creates {
			callers.Go(func() { c.create(t) })
			if i >= broken {
				continue
			}
			callers.Go(func() {
				_, err := c.ledger.Store.Reserve(t.Context(), "acme", &ledger.Reservation{
					Hold: "broken", Kind: "pod", Resource: "broken", Limits: make([][ledger.Ceilings]int64, 1),
				})
				if !errors.Is(err, ledger.ErrUnavailable) {
					t.Errorf("a call about a broken record: %v, want that the ledger is unavailable", err)
				}
			})
		}
		callers.Wait()
		state, err := redisstore.New(r.Client, "tg:spend:", nil).Balances(t.Context(), "acme", c.owners[0])
		if err != nil {
			t.Fatal(err)
		}
		want := ledger.Amounts{}
		for i, n := range c.each {
			want[i] = n * (creates + 1)
		}
		for _, b := range state.Balances {
			if b.Committed != want || b.Reserved != (ledger.Amounts{}) {
				t.Errorf("balance of %s: %v committed and %v reserved, want %v and nothing", b.Scope, b.Committed, b.Reserved, want)
			}
		}
		if n := client.ended.Load(); n != 2*creates+broken {
			t.Errorf("%d spans, want one for each of %d reservations and settlements", n, 2*creates+broken)
		}
		if n := sent.Load(); n >= 2*creates {
			t.Errorf("%d scripts for %d creates: none was shared", n, creates)
		}
	})
}

// TestIntentsOfOneMoment: intents that are recorded and ended at the same time share scripts. Each call gets its own response, and a call
// sees an equal intent that was recorded earlier in the same script.
func TestIntentsOfOneMoment(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		const calls, equal = 100, 10
		s := redisstore.NewIntents(r.Client, "tg:intents:")
		if _, err := s.Record(t.Context(), &ledger.IntentRecord{Org: "acme", Fingerprint: "w-", Lookalike: "l-", Response: "a-"}); err != nil {
			t.Fatal(err) // it restores what a new store has not seen
		}
		sent := new(atomic.Int64)
		r.Client.AddHook(counter{sent})
		var callers sync.WaitGroup
		var first atomic.Int64
		for i := range calls {
			callers.Go(func() {
				n := &ledger.IntentRecord{
					Org: "acme", Fingerprint: fmt.Sprintf("w%d", i/equal), Lookalike: fmt.Sprintf("l%d", i), Response: "a-",
					Intent: fmt.Sprintf("id%d", i), Row: "{}", Owner: "ann",
				}
				found, err := s.Record(t.Context(), n)
				if err != nil {
					t.Error(err)
					return
				}
				if len(found.Others) > 0 {
					return
				}
				first.Add(1)
				e := &ledger.IntentUpdate{
					Org: "acme", Created: "m" + n.Intent, Fingerprint: n.Fingerprint, Lookalike: n.Lookalike, Response: "a" + n.Intent,
					Intent: n.Intent, Row: "1 {}", SetCreated: true, UnsetLookalike: true, Text: "made by " + n.Intent,
				}
				if replaced, err := s.End(t.Context(), e); err != nil || !replaced {
					t.Errorf("end of %s: replaced %t, %v", n.Intent, replaced, err)
				}
				n.Fingerprint, n.Response, n.Intent = "w-", e.Response, ""
				if found, err := s.Record(t.Context(), n); err != nil || found.Response != e.Text {
					t.Errorf("the response of %s is %q, %v", e.Intent, found.Response, err)
				}
			})
		}
		callers.Wait()
		if n := first.Load(); n != calls/equal {
			t.Errorf("%d intents were recorded, want one of each %d equal ones", n, equal)
		}
		if n := sent.Load(); n >= calls {
			t.Errorf("%d scripts, want fewer than %d", n, calls)
		}
	})
}
