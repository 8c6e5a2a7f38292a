package ratelimit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

// sharded is a store of a part for each organisation, of which those of lost do not
// answer.
type sharded struct {
	ratelimit.Store

	lost map[string]bool
}

func (s sharded) Group(org string) string { return org }

func (s sharded) Apply(ctx context.Context, ops []ratelimit.Op) (int64, error) {
	if s.lost[ops[0].Org] {
		return 0, errors.New("no answer")
	}
	return s.Store.Apply(ctx, ops)
}

func (s sharded) Adjust(ctx context.Context, org string, adjustments []ratelimit.Adjustment) error {
	if s.lost[org] {
		return errors.New("no answer")
	}
	return s.Store.Adjust(ctx, org, adjustments)
}

// A part of the store that does not answer is left alone, and the others are asked as
// before.
func TestOnePartIsAway(t *testing.T) {
	for _, mode := range []ratelimit.Mode{ratelimit.ModeExact, ratelimit.ModeLeased} {
		t.Run(string(mode), func(t *testing.T) {
			clock := newManual()
			store := sharded{storetest.NewMemory(clock.Now), map[string]bool{"org_a": true}}
			l := limiterOn(t, store, clock.Now, func(c *ratelimit.Config) { c.Mode, c.Failure.Read = mode, ratelimit.FailClosed })
			for i := range 10 {
				for _, org := range []string{"org_a", "org_b"} {
					tk := tiny()
					tk.Org, tk.Scopes[0].Limit = org, ratelimit.Limit{Minute: 100}
					d, err := l.Take(t.Context(), tk)
					if lost := store.lost[org]; errors.Is(err, ratelimit.ErrUnavailable) != lost || d.Allowed == lost {
						t.Fatalf("call %d of %s: allowed = %v, %v; want it to pass: %v", i, org, d.Allowed, err, !lost)
					}
				}
			}
			if l.Down() {
				t.Error("Away() = true, though the store answers")
			}
		})
	}
}
