package idempotency

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

func TestLease(t *testing.T) {
	t0 := time.Now()
	at := func(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }
	for _, c := range []struct {
		name    string
		renewed []float64
		// noted and now are when it is asked whether the lease has held since noted.
		noted, now    float64
		held, witness bool
	}{
		{"never renewed", nil, 0, 0, false, false},
		{"renewed", []float64{0, 1, 2}, 0.5, 2.5, true, false},
		{"a frozen process, before it renews", []float64{0, 1}, 1, 9, false, false},
		{"a frozen process, after it has renewed", []float64{0, 1, 9}, 1, 9, false, false},
		{"noted after that", []float64{0, 1, 9}, 9, 9.5, true, false},
		{"a whole limit", []float64{0, 1, 2, 3, 4, 5}, 0, 5, true, true},
		{"the store was away", []float64{0, 1, 2, 3, 4, 5, 8, 9}, 9, 9, true, false},
		{"and is back for a whole limit", []float64{0, 1, 5, 6, 7, 8, 9, 10}, 9, 10, true, true},
	} {
		var l lease
		for _, s := range c.renewed {
			l.renewed(at(s), true)
		}
		if got := l.held(at(c.noted), at(c.now)); got != c.held {
			t.Errorf("%s: held %t, want %t", c.name, got, c.held)
		}
		if got := l.canDeclareDead(at(c.now)); got != c.witness {
			t.Errorf("%s: may judge others: %t, want %t", c.name, got, c.witness)
		}
	}
}

// A machine that is suspended stops the monotonic clock, but not the other.
func TestApart(t *testing.T) {
	now := time.Now()
	if got := elapsed(now, now.Round(0).Add(time.Hour)); got != time.Hour {
		t.Errorf("%v by the clock on the wall, want an hour", got)
	}
	if got := elapsed(now, now.Add(time.Second)); got != time.Second {
		t.Errorf("%v, want a second", got)
	}
}

func TestOutbox(t *testing.T) {
	var wrote [][]string
	fail := true
	var run []func()
	b := outbox{
		write: func(_ context.Context, all []ledger.IntentUpdate) error {
			if fail {
				return errors.New("away")
			}
			var ids []string
			for i := range all {
				ids = append(ids, all[i].Intent)
			}
			wrote = append(wrote, ids)
			return nil
		},
		spawn: func(f func()) { run = append(run, f) },
	}
	flush := func() {
		for len(run) > 0 {
			f := run[0]
			run = run[1:]
			f()
		}
	}
	for i, org := range []string{"a", "a", "b", "a"} {
		b.add(&ledger.IntentUpdate{Org: org, Fingerprint: "w" + org, Intent: fmt.Sprint(i), Row: map[int]string{1: "goes on"}[i]})
	}
	flush()
	if diff := cmp.Diff([]string{"0", "3"}, b.endedIntents("a", "wa")); diff != "" || !b.has("1") || b.has("4") {
		t.Errorf("over, while the store is away (-want +got):\n%s", diff)
	}
	b.retry()
	flush()
	fail = false
	b.retry()
	flush()
	if diff := cmp.Diff([][]string{{"0", "1"}, {"2"}, {"3"}}, wrote); diff != "" {
		t.Errorf("written, in order (-want +got):\n%s", diff)
	}
	if b.has("0") || b.endedIntents("a", "wa") != nil {
		t.Error("what is written is kept")
	}
	for i := range maxQueued + 1 {
		if took := b.add(&ledger.IntentUpdate{}); took != (i < maxQueued) {
			t.Fatalf("end %d: taken %t", i, took)
		}
	}
}

// desks are two gateways at one store, and a wish.
func desks(client redistest.Conn) (a, b *Tracker, w *filter.DedupKeys) {
	now := func(f func()) { f() }
	a = NewTracker(client, "t:", "a", now, slog.New(slog.DiscardHandler))
	b = NewTracker(client, "t:", "b", now, slog.New(slog.DiscardHandler))
	a.SetPeers("a", nil)
	b.SetPeers("b", nil)
	wish := a.Keys("acme", "ann", "p")
	wish.Lookalikes = "llooks"
	return a, b, &wish
}

// note records an intent that must be the only one except those in past.
func note(t *testing.T, d *Tracker, caller context.Context, w *filter.DedupKeys, id string, past ...string) filter.Intent {
	t.Helper()
	i := filter.Intent{ID: id, Fingerprint: "p", Name: "n"}
	seen, err := d.TryRecord(t.Context(), w, &i, past)
	if err != nil || len(seen.Intents) > 0 {
		t.Fatalf("note %s: %+v (%v)", id, seen, err)
	}
	i.Began = seen.Now
	i = i.Restored()
	d.Track(caller, w, i, time.Now())
	return i
}

// found are the ids under a wish.
func found(t *testing.T, d *Tracker, w *filter.DedupKeys) (ids []string) {
	t.Helper()
	seen, err := d.TryRecord(t.Context(), w, &filter.Intent{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range seen.Intents {
		ids = append(ids, i.ID)
	}
	return ids
}

func TestTryPassesOverThoseThatArePast(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		a, b, w := desks(r.Client)
		note(t, a, t.Context(), w, "1")
		second := filter.Intent{ID: "2"}
		if seen, err := b.TryRecord(t.Context(), w, &second, nil); err != nil || len(seen.Intents) != 1 || seen.Intents[0].ID != "1" {
			t.Errorf("another: %+v (%v), want to find the first", seen, err)
		}
		note(t, b, t.Context(), w, "2", "1")
		if diff := cmp.Diff([]string{"1", "2"}, found(t, a, w)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTakeHasOneTaker(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		a, b, w := desks(r.Client)
		i := note(t, a, t.Context(), w, "1")
		left := i
		left.Abandoned, left.Resource = true, "pod"
		if err := a.End(t.Context(), w, &i, &filter.IntentUpdate{Next: &left, Resource: "pod/x", Unindex: true}); err != nil {
			t.Fatal(err)
		}
		left = left.Restored()
		taken := 0
		for _, d := range []*Tracker{a, b, a} {
			_, ok, err := d.Adopt(t.Context(), w, &left, "pod")
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				taken++
			}
		}
		if taken != 1 {
			t.Errorf("%d have taken it, want one", taken)
		}
		// The one before has nothing more to say of it, at no gateway.
		for _, d := range []*Tracker{a, b} {
			for _, e := range []filter.IntentUpdate{{}, {Next: &left}} {
				if err := d.End(t.Context(), w, &i, &e); err != nil {
					t.Fatal(err)
				}
				if seen, err := d.TryRecord(t.Context(), w, &filter.Intent{}, nil); err != nil || len(seen.Intents) != 1 || seen.Intents[0].Abandoned {
					t.Errorf("an earlier caller's end at %s makes it %+v (%v)", d.Gateway, seen.Intents, err)
				}
			}
		}
	})
}

// answered is a hook that runs f when the store has taken a command, before the caller
// hears of it.
type answered struct{ f func() }

func (h answered) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h answered) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h answered) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer h.f()
		return next(ctx, cmd)
	}
}

// Between the store's word and this gateway's, a taken resource is in a caller's hand.
func TestTakeIsNeverInNobodysHand(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		a, _, w := desks(r.Client)
		i := note(t, a, t.Context(), w, "1")
		left := i
		left.Abandoned, left.Resource = true, "pod"
		if err := a.End(t.Context(), w, &i, &filter.IntentUpdate{Next: &left}); err != nil {
			t.Fatal(err)
		}
		left = left.Restored()
		next := left
		next.Abandoned, next.Adoptions, next.Gateway = false, 1, a.Gateway
		looks := 0
		r.Client.AddHook(answered{func() {
			looks++
			if fate := a.CallerStatus(t.Context(), "acme", &next, time.UnixMilli(1)); fate != filter.CallerConnected {
				t.Errorf("while it is taken: %d, want that its caller is there", fate)
			}
		}})
		if _, ok, err := a.Adopt(t.Context(), w, &left, "pod"); !ok || err != nil || looks == 0 {
			t.Errorf("taken %t (%v), %d looks", ok, err, looks)
		}
	})
}

func TestClaim(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		a, _, w := desks(r.Client)
		first := note(t, a, t.Context(), w, "1")
		second := note(t, a, t.Context(), w, "2", "1")
		bobs := *w
		bobs.Owner, bobs.Pending = "bob", w.Pending+"bob"
		claim := func(i *filter.Intent, resource string, want bool) {
			t.Helper()
			for range 2 { // each step can be repeated
				if got, err := a.Claim(t.Context(), w, i, resource); got != want || err != nil {
					t.Errorf("%s claims %s: %t (%v), want %t", i.ID, resource, got, err, want)
				}
			}
		}
		claim(&first, "pod/x", true)
		claim(&second, "pod/x", false)
		theirs := note(t, a, t.Context(), &bobs, "3")
		claim(&second, "pod/y", false) // it may be bob's
		for range 2 {
			if err := a.End(t.Context(), &bobs, &theirs, &filter.IntentUpdate{Unindex: true}); err != nil {
				t.Fatal(err)
			}
		}
		claim(&second, "pod/y", true)
	})
}

func TestFate(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		a, b, w := desks(r.Client)
		caller, leave := context.WithCancel(t.Context())
		i := note(t, a, caller, w, "1")
		i.Gateway = "a"
		asked := time.UnixMilli(1)
		fate := func(d *Tracker, want filter.CallerStatus, when string) {
			t.Helper()
			if got := d.CallerStatus(t.Context(), "acme", &i, asked); got != want {
				t.Errorf("%s, %s says %d, want %d", when, d.Gateway, got, want)
			}
		}
		fate(a, filter.CallerConnected, "while its caller waits")
		fate(b, filter.CallerUnknown, "before the other has answered")
		a.tracked["1"].noted = time.Now().Add(-2 * pollTick)
		a.answerQueries(t.Context())
		fate(b, filter.CallerConnected, "when it has")
		asked = asked.Add(time.Second)
		fate(b, filter.CallerUnknown, "asked later again")
		if err := b.renewLease(t.Context()); err != nil {
			t.Fatal(err)
		}
		fate(b, filter.CallerUnknown, "without a lease, to one that has just begun to hear the store")
		b.lease.since = time.Now().Add(-2 * leaseDuration)
		fate(b, filter.CallerGone, "without a lease")
		r.Empty(t)
		fate(b, filter.CallerUnknown, "when the store has lost every lease")
		for range 2 {
			if err := b.renewLease(t.Context()); err != nil {
				t.Fatal(err)
			}
			fate(b, filter.CallerUnknown, "when the store knows this gateway again")
		}
		if err := a.renewLease(t.Context()); err != nil {
			t.Fatal(err)
		}
		fate(b, filter.CallerUnknown, "with a lease")
		leave()
		a.answerQueries(t.Context())
		fate(b, filter.CallerUnknown, "when its caller has left and the call goes on")
		fate(a, filter.CallerUnknown, "when its caller has left and the call goes on")
		a.MarkEnded(&i, &filter.IntentUpdate{})
		fate(a, filter.CallerGone, "when nobody has it in hand")
	})
}

// Those about to note an intent pass over each other, and none that has gone.
func TestComeAndBeside(t *testing.T) {
	a, _, w := desks(redistest.Away(t))
	caller, leave := context.WithCancel(t.Context())
	done := a.Enter(caller, w, "1")
	other := a.Keys("acme", "ann", "other")
	defer a.Enter(t.Context(), &other, "2")()
	if diff := cmp.Diff([]string{"1"}, a.Waiting(w)); diff != "" {
		t.Error(diff)
	}
	leave()
	if ids := a.Waiting(w); ids != nil {
		t.Errorf("%v, want none: it has left", ids)
	}
	a.Track(caller, w, filter.Intent{ID: "1"}, time.Now())
	done()
	if a.tracked["1"] == nil {
		t.Error("what is noted was let go")
	}
}

func TestMaySend(t *testing.T) {
	a, _, w := desks(redistest.Away(t))
	a.Track(t.Context(), w, filter.Intent{ID: "1"}, time.Now().Add(-leaseDuration))
	if a.MaySend("1") {
		t.Error("it sends without a lease, long after its note")
	}
	a.Track(t.Context(), w, filter.Intent{ID: "2"}, time.Now())
	if !a.MaySend("2") {
		t.Error("it does not send at once")
	}
}

// A write that panics keeps its messages, and the next heartbeat writes them.
func TestOutboxAfterAPanic(t *testing.T) {
	broken, wrote := true, 0
	var run func()
	b := outbox{
		write: func(_ context.Context, all []ledger.IntentUpdate) error {
			if broken {
				panic("a fault of the store's client")
			}
			wrote += len(all)
			return nil
		},
		spawn: func(f func()) { run = f },
	}
	b.add(&ledger.IntentUpdate{Org: "a", Intent: "1"})
	func() {
		defer func() { _ = recover() }() // like tasks.Group
		run()
	}()
	broken, run = false, nil
	if b.retry(); run == nil {
		t.Fatal("the writer does not begin again")
	}
	if run(); wrote != 1 || b.has("1") {
		t.Errorf("%d messages written, want the one that waited", wrote)
	}
}
