package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/spend/storetest"
)

// fault is the failure of a step while a store is away.
type fault int

const (
	refuses  fault = iota // the store answers with an error
	silent                // it gets the step, and its reply is lost
	buffered              // it carries the step out when it is back
)

// flaky is a store that can be away, inside a bubble of synctest.
type flaky struct {
	*storetest.Memory

	mu    sync.Mutex // guards the fields below
	away  bool
	fault fault
	late  []func()
	tries int
}

// leave has the store be away.
func (f *flaky) leave(how fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away, f.fault = true, how
}

// back has it answer again. It carries out the calls that have waited for it.
func (f *flaky) back() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = false
	for _, step := range f.late {
		step()
	}
	f.late = nil
}

// lost carries a step out as the fault has it, and reports whether its reply is lost.
func (f *flaky) lost(step func()) bool {
	f.mu.Lock()
	away, how := f.away, f.fault
	f.tries++
	if away && how == buffered {
		f.late = append(f.late, step)
	}
	f.mu.Unlock()
	if !away {
		return false
	}
	switch how {
	case refuses:
	case silent:
		step()
		time.Sleep(time.Second)
	case buffered:
		time.Sleep(time.Second)
	}
	return true
}

func (f *flaky) Reserve(ctx context.Context, org string, r *ledger.Reservation) (ledger.Outcome, error) {
	given := *r
	if f.lost(func() { _, _ = f.Memory.Reserve(ctx, org, &given) }) {
		return ledger.Outcome{}, ledger.ErrUnavailable
	}
	return f.Memory.Reserve(ctx, org, r)
}

func (f *flaky) Settle(ctx context.Context, org string, s *ledger.Settlement) error {
	given := *s
	if f.lost(func() { _ = f.Memory.Settle(ctx, org, &given) }) {
		return ledger.ErrUnavailable
	}
	return f.Memory.Settle(ctx, org, s)
}

func (f *flaky) Holds(ctx context.Context, org string) (ledger.State, error) {
	if f.lost(func() {}) {
		return ledger.State{}, ledger.ErrUnavailable
	}
	return f.Memory.Holds(ctx, org)
}

// desk is a gateway's ledger on a store that can be away.
type desk struct {
	*ledger.Ledger

	t      *testing.T
	store  *flaky
	outbox *ledger.Outbox
	plan   *ledger.Plan
	books  *ledger.Components
	n      int
}

// room is the budget of the organisation: as many pods.
const room = 1_000_000

// openDesk returns a gateway that delivers its settlements until the test ends. It must
// be called in a bubble.
func openDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, store: &flaky{Memory: storetest.NewMemory(time.Now, nil)}}
	deps := storetest.Deps(d.store, &storetest.World{Orgs: []string{"acme"}})
	deps.Self = ledger.Holder{Incarnation: "01J", Gateway: "gw"}
	d.books = ledger.New(deps)
	d.outbox, d.Ledger = d.books.Outbox, d.books.Ledger
	d.plan = &ledger.Plan{Org: ledger.Budget{PerHour: catalog.Money(room)}}
	if err := d.store.BeginRebuild(t.Context(), "acme", "t"); err != nil {
		t.Fatal(err)
	}
	if done, err := d.store.FinishRebuild(t.Context(), "acme", "t"); err != nil || !done {
		t.Fatal(done, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.outbox.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return d
}

// reserve asks for room for a create, and returns the hold.
func (d *desk) reserve() (string, error) {
	d.n++
	id := fmt.Sprint("hold-", d.n)
	_, err := d.Reserve(d.t.Context(), "acme", d.plan, ledger.Reservation{Hold: id, Kind: "pod", After: ledger.Amounts{1, 1, 1}})
	return id, err
}

// create makes a pod while the store answers.
func (d *desk) create(pod string) {
	d.t.Helper()
	id, err := d.reserve()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.commit(id, pod); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) commit(hold, pod string) error {
	return d.Settle(d.t.Context(), "acme", &ledger.Settlement{Hold: hold, End: ledger.Commit, Kind: "pod", Resource: pod, Amounts: ledger.Amounts{1, 1, 1}})
}

// remove deletes a pod, whether the ledger can be asked or not.
func (d *desk) remove(pod string) {
	d.n++
	id := fmt.Sprint("hold-", d.n)
	_, _ = d.Reserve(d.t.Context(), "acme", d.plan, ledger.Reservation{Hold: id, Kind: "pod", Resource: pod, Free: true})
	_ = d.Settle(d.t.Context(), "acme", &ledger.Settlement{Hold: id, End: ledger.Commit, Kind: "pod", Resource: pod, Gone: true})
}

func (d *desk) state() ledger.State {
	d.t.Helper()
	s, err := d.store.Memory.Show(d.t.Context(), "acme")
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// counts fails unless so much is committed, reserved and open.
func (d *desk) counts(committed, noted, open int64) {
	d.t.Helper()
	s := d.state()
	var gotNoted, gotOpen int64
	for i := range s.Holds {
		if s.Holds[i].Open {
			gotOpen++
		} else {
			gotNoted++
		}
	}
	var b ledger.Balance
	if len(s.Balances) > 0 {
		b = s.Balances[0]
	}
	if gotNoted != noted || gotOpen != open || b.Committed[ledger.Pods] != committed || b.Reserved[ledger.Pods] != noted+open {
		d.t.Errorf("%d noted, %d open, %v committed and %v reserved, want %d noted, %d open, %d pods committed",
			gotNoted, gotOpen, b.Committed, b.Reserved, noted, open, committed)
	}
}

// Any call that the store does not take, or takes without saying so, reaches it within five seconds
// after it is back, however long it was away: no reservation is left of calls that nobody
// makes any more.
func TestSettlementsAreDelivered(t *testing.T) {
	for step, tt := range map[string]struct {
		// before is done while the store answers, during while it is away.
		before, during         func(d *desk)
		committed, noted, open int64
	}{
		"reserve": {
			during: func(d *desk) {
				id, err := d.reserve()
				if err == nil {
					d.t.Error("admitted without the store")
				}
				_ = d.Settle(d.t.Context(), "acme", &ledger.Settlement{Hold: id, End: ledger.Release})
			},
		},
		"release": {
			before: func(d *desk) { _, _ = d.reserve() },
			during: func(d *desk) {
				_ = d.Settle(d.t.Context(), "acme", &ledger.Settlement{Hold: fmt.Sprint("hold-", d.n), End: ledger.Release})
			},
		},
		"commit": {
			before:    func(d *desk) { _, _ = d.reserve() },
			during:    func(d *desk) { _ = d.commit(fmt.Sprint("hold-", d.n), "p1") },
			committed: 1,
		},
		"open": {
			before: func(d *desk) { _, _ = d.reserve() },
			during: func(d *desk) {
				_ = d.Settle(d.t.Context(), "acme", &ledger.Settlement{Hold: fmt.Sprint("hold-", d.n), End: ledger.Open, ResolveWithin: time.Hour})
			},
			open: 1,
		},
		"delete": {
			before: func(d *desk) { d.create("p1") },
			during: func(d *desk) { d.remove("p1") },
		},
		"nothing": { // a call is under way all the time
			before: func(d *desk) { _, _ = d.reserve() },
			noted:  1,
		},
	} {
		for name, how := range map[string]fault{"refused": refuses, "reply lost": silent, "carried out late": buffered} {
			for _, outage := range []time.Duration{3 * time.Second, 10 * time.Minute} {
				t.Run(fmt.Sprint(step, " ", name, " for ", outage), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						d := openDesk(t)
						if tt.before != nil {
							tt.before(d)
						}
						d.store.leave(how)
						if tt.during != nil {
							tt.during(d)
						}
						time.Sleep(outage)
						d.store.back()
						time.Sleep(5 * time.Second)
						d.counts(tt.committed, tt.noted, tt.open)
						if got := d.outbox.Status()["acme"].Queued; got != 0 {
							t.Errorf("%d settlements are queued still", got)
						}
					})
				})
			}
		}
	}
}

// A store that is away for ten minutes while 5,000 pods are deleted has their room back
// five seconds later. It is asked no more than about once a second meanwhile, and settlements
// that the reconciler could find out are queued within bounds.
func TestALongOutage(t *testing.T) {
	for _, tt := range []struct {
		name                    string
		pods, refused, mostHeld int
		left                    int64 // to the next pass
	}{
		{"deletes", 5000, 0, 5000, 0},
		{"deletes and creates that are refused", 5000, 8000, 10_000, 0},
		{"more deletes than are queued", 10_500, 0, 10_000, 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := openDesk(t)
				full := ledger.State{Complete: true, Balances: []ledger.Balance{{Scope: ledger.Scope{Kind: ledger.KindOrg}, Committed: ledger.Amounts{ledger.Pods: int64(tt.pods)}}}}
				for i := range tt.pods {
					full.Resources = append(full.Resources, ledger.Record{ID: fmt.Sprint("pod-", i), Kind: "pod", Amounts: ledger.Amounts{ledger.Pods: 1}})
				}
				d.store.Load("acme", &full)
				d.store.leave(refuses)
				for i := range tt.pods {
					d.remove(fmt.Sprint("pod-", i))
					d.remove(fmt.Sprint("pod-", i)) // again: it is gone once
				}
				for range tt.refused {
					id, _ := d.reserve()
					_ = d.Settle(t.Context(), "acme", &ledger.Settlement{Hold: id, End: ledger.Release})
				}
				tries := d.tries()
				time.Sleep(10 * time.Minute)
				if asked := d.tries() - tries; asked > 610 {
					t.Errorf("the store was asked %d times in ten minutes", asked)
				}
				if got := d.outbox.Status()["acme"].Queued; got != tt.mostHeld {
					t.Errorf("%d settlements are queued, want %d", got, tt.mostHeld)
				}
				d.store.back()
				time.Sleep(5 * time.Second)
				d.counts(tt.left, 0, 0)
				if d.books.Loop.Kicked() == 0 {
					t.Error("nobody was told that the ledger may differ from the platform")
				}
			})
		})
	}
}

func (d *desk) tries() int {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return d.store.tries
}

// At each interval, a gateway releases holds of its own process that no call has in
// hand, and no others.
func TestStrayHoldsAreReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDesk(t)
		stray := func(id, incarnation string) {
			if _, err := d.store.Memory.Reserve(t.Context(), "acme", &ledger.Reservation{
				Hold: id, Kind: "pod", After: ledger.Amounts{1}, Limits: make([][ledger.Ceilings]int64, 1), Holder: ledger.Holder{Incarnation: incarnation, Gateway: "gw"},
			}); err != nil {
				t.Fatal(err)
			}
		}
		stray("own", "01J")
		stray("own, open", "01J")
		if err := d.store.Memory.Settle(t.Context(), "acme", &ledger.Settlement{Hold: "own, open", End: ledger.Open, ResolveWithin: time.Hour}); err != nil {
			t.Fatal(err)
		}
		stray("of the process before", "01H")
		stray("of an earlier version", "")
		id, err := d.reserve()
		if err != nil || !d.outbox.InHand("acme", id) {
			t.Fatalf("%s: %v, in hand: %t", id, err, d.outbox.InHand("acme", id))
		}
		time.Sleep(2 * time.Minute)
		var left []string
		for _, h := range d.state().Holds {
			left = append(left, h.ID)
		}
		if got, want := fmt.Sprint(left), fmt.Sprint([]string{id, "of an earlier version", "of the process before", "own, open"}); got != want {
			t.Errorf("holds: %s, want %s", got, want)
		}
		s := d.outbox.Status()["acme"]
		if s.Overdue != 1 || s.Open < time.Minute || s.InFlight < time.Minute {
			t.Errorf("status = %+v, want the call that takes too long, and ages", s)
		}
	})
}

// The settlements of a hold reach the store in their order.
func TestSettlementsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDesk(t)
		id, err := d.reserve()
		if err != nil {
			t.Fatal(err)
		}
		d.store.leave(refuses)
		for _, s := range []ledger.Settlement{
			{Hold: id, End: ledger.Open, NewID: "job 1", ResolveWithin: time.Hour},
			{Hold: "job 1", End: ledger.Commit, Amounts: ledger.Amounts{ledger.Cost: 7}},
			{Hold: "job 1", End: ledger.Commit, Amounts: ledger.Amounts{ledger.Cost: 7}},
		} {
			if err := d.Settle(t.Context(), "acme", &s); err == nil {
				t.Error("settled without the store")
			}
		}
		if got := d.outbox.Status()["acme"].Queued; got != 2 {
			t.Errorf("%d settlements are queued, want one that opens and one that ends", got)
		}
		d.store.back()
		time.Sleep(5 * time.Second)
		d.counts(0, 0, 0)
		if got := d.state().Balances[0].Day; got != 7 {
			t.Errorf("%d have accrued, want 7", got)
		}
	})
}

// A call that finds no room gets the room that queued settlements give back.
func TestQueuedRoomIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDesk(t)
		d.plan = &ledger.Plan{Org: ledger.Budget{Pods: 1}}
		id, err := d.reserve()
		if err != nil {
			t.Fatal(err)
		}
		d.store.leave(refuses)
		_ = d.Settle(t.Context(), "acme", &ledger.Settlement{Hold: id, End: ledger.Release})
		d.store.back()
		q, err := d.Reserve(t.Context(), "acme", d.plan, ledger.Reservation{Hold: "next", Kind: "pod", After: ledger.Amounts{1, 1, 1}})
		if err != nil || q.Refused != nil {
			t.Errorf("Reserve = %+v, %v, want room", q.Refused, err)
		}
	})
}

// A gateway that stops reports its undelivered settlements.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDesk(t)
		id, err := d.reserve()
		if err != nil {
			t.Fatal(err)
		}
		d.store.leave(refuses)
		_ = d.Settle(t.Context(), "acme", &ledger.Settlement{Hold: id, End: ledger.Release})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if left := d.outbox.Drain(ctx); left != 1 {
			t.Errorf("Drain = %d, want the one that the store does not take", left)
		}
		d.store.back()
		if left := d.outbox.Drain(t.Context()); left != 0 {
			t.Errorf("Drain = %d, want nothing", left)
		}
		d.counts(0, 0, 0)
	})
}

// A reservation that a lost reply belongs to may be as old as its first attempt: a gateway that stood still meanwhile must not take it
// for a fresh one.
func TestALostReplyKeepsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDesk(t)
		d.Ledger.Store = &loseFirst{Store: d.store}
		began := time.Now()
		q, err := d.Reserve(t.Context(), "acme", d.plan, ledger.Reservation{Hold: "h", Kind: "pods", Owner: ledger.Owner{Team: "t", Key: "k"}})
		if err != nil || !q.Sent.Equal(began) {
			t.Errorf("sent %v after the first attempt, %v; want with it", q.Sent.Sub(began), err)
		}
	})
}

// loseFirst is a store whose first reply to a reservation is lost, while its gateway stands still.
type loseFirst struct {
	ledger.Store

	lost bool
}

func (l *loseFirst) Reserve(ctx context.Context, org string, r *ledger.Reservation) (ledger.Outcome, error) {
	out, err := l.Store.Reserve(ctx, org, r)
	if l.lost {
		return out, err
	}
	l.lost = true
	time.Sleep(8 * time.Second)
	return ledger.Outcome{}, ledger.ErrUnavailable
}
