package ratelimit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

// parts is a store of a part for each organisation. Each part has an error of its own.
type parts struct {
	*storetest.Memory

	mu   sync.Mutex
	errs map[string]error
	// paused is set while gateways restore their counts.
	paused bool
	// restored is when Restore succeeded last.
	restored time.Time
}

// newParts returns a store on another one.
func newParts(m *storetest.Memory) *parts { return &parts{Memory: m, errs: make(map[string]error)} }

// set gives a part an error.
func (p *parts) set(org string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs[org] = err
}

// pause begins the time in which gateways restore their counts, or ends it.
func (p *parts) pause(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = on
}

// whenRestored returns when Restore succeeded last.
func (p *parts) whenRestored() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restored
}

// Group implements ratelimit.Store.
func (p *parts) Group(org string) string { return org }

// Apply implements ratelimit.Store.
func (p *parts) Apply(ctx context.Context, ops []ratelimit.Op) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.errs[ops[0].Org]; err != nil {
		return 0, err
	}
	if p.paused {
		return 0, ratelimit.ErrRestarted
	}
	return p.Memory.Apply(ctx, ops)
}

// Adjust implements ratelimit.Store.
func (p *parts) Adjust(ctx context.Context, org string, adjustments []ratelimit.Adjustment) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.errs[org]; err != nil {
		return err
	}
	return p.Memory.Adjust(ctx, org, adjustments)
}

// Restore implements ratelimit.Store.
func (p *parts) Restore(ctx context.Context, _ string, _ time.Duration, adjust func(context.Context) error) error {
	if err := adjust(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restored = time.Now()
	return nil
}

// lose makes the store forget everything, and tell so with the next beats.
func (p *parts) lose() {
	p.Forget()
	p.SetFault(ratelimit.ErrRestarted)
	elapse(600 * time.Millisecond)
	p.SetFault(nil)
}

// A part of a cluster that was away when other servers were found has its counts restored with the
// others' if its server answers, and is waited for if that server is not ready. Nobody is admitted
// there before. A part whose server does not answer is not waited for.
func TestPartsThatWereAwayAreRestored(t *testing.T) {
	for _, tt := range []struct {
		name    string
		err     error
		waits   bool
		restore int64
	}{
		{"another server has taken its place", nil, false, 50},
		{"its server is not ready", ratelimit.ErrNotServing, true, 50},
		{"nobody answers", errors.New("refused"), false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, memory *storetest.Memory) {
				store := newParts(memory)
				l, stop := running(t, store, nil, ratelimit.Deps{})
				defer stop()
				tk := only(ratelimit.Limit{Day: 800})
				spin(t, l, tk, 50, time.Millisecond)
				store.set("org_a", errors.New("refused"))
				for range 3 {
					_, _ = l.Take(t.Context(), ratelimit.Take{Org: tk.Org, Scopes: tk.Scopes})
				}
				store.set("org_a", tt.err)
				began := time.Now()
				store.lose()
				elapse(3 * time.Second)
				if restored := store.whenRestored(); restored.IsZero() != tt.waits {
					t.Errorf("restored after %s, want it to wait for the part: %v", restored.Sub(began), tt.waits)
				}
				if store.set("org_a", nil); tt.waits {
					if _, err := l.Take(t.Context(), ratelimit.Take{Org: tk.Org, Scopes: tk.Scopes}); !errors.Is(err, ratelimit.ErrUnavailable) {
						t.Errorf("a call before the counts are restored: %v, want ErrUnavailable", err)
					}
				}
				elapse(time.Second)
				if tt.restore == 0 {
					return
				}
				if got := used(t, memory, 2); got != tt.restore {
					t.Errorf("the part counts %d, want the %d of before", got, tt.restore)
				}
			})
		})
	}
}

// Debts are charged after the pause, however long it lasts: counts that other gateways restore, the
// largest winning, would take them in.
func TestDebtsWaitForTheEndOfAPause(t *testing.T) {
	bubble(t, func(t *testing.T, memory *storetest.Memory) {
		store := newParts(memory)
		l, stop := running(t, store, nil, ratelimit.Deps{})
		defer stop()
		tk := only(ratelimit.Limit{Day: 800})
		spin(t, l, tk, 10, time.Millisecond)
		store.set("org_a", errors.New("refused"))
		spin(t, l, tk, 20, time.Millisecond)
		store.set("org_a", nil)
		store.pause(true)
		store.lose()
		elapse(3 * time.Second) // it restores its counts
		snap, err := memory.Snapshot(t.Context(), "org_a")
		if err != nil || len(snap.Scopes) != 1 {
			t.Fatalf("Show: %+v, %v", snap, err)
		}
		other := ratelimit.Adjustment{Ref: tk.Scopes[0].Ref(), State: snap.Scopes[0].State}
		other.State.Count = [ratelimit.Windows]int64{12, 12, 12} // two more than this gateway has heard of
		if err := memory.Adjust(t.Context(), "org_a", []ratelimit.Adjustment{other}); err != nil {
			t.Fatal(err)
		}
		store.pause(false)
		elapse(2 * time.Second)
		if got := used(t, memory, 2); got != 32 {
			t.Errorf("the part counts %d, want the 12 that were restored and 20 that were owed", got)
		}
	})
}
