package idempotency

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// gateways are two gateways that know each other, at one store. Both have run for a long time.
func gateways(t *testing.T, client redistest.Conn) (a, b *Tracker, w *filter.DedupKeys) {
	t.Helper()
	a, b, w = desks(client)
	for _, d := range []*Tracker{a, b} {
		d.started = time.Now().Add(-time.Hour)
		d.SetPeers(d.Gateway, func() []string { return []string{"a", "b"} })
	}
	return a, b, w
}

// answering has a gateway answer recoveries until the test, or the returned function, ends it.
func answering(t *testing.T, d *Tracker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_ = d.store.RestoreAnnounced(ctx)
			sleep(ctx, 10*time.Millisecond)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// TestIntentsOutliveALoss: after the store has lost everything, a look for intents waits until every gateway has restored
// its own: those in flight, those whose resource waits for a repeat, and responses. What has ended does not return.
func TestIntentsOutliveALoss(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		a, b, w := gateways(t, r.Client)
		stop := answering(t, b)
		answering(t, a)
		left, taken := note(t, a, t.Context(), w, "1"), note(t, a, t.Context(), w, "2", "1")
		over := note(t, a, t.Context(), w, "3", "1", "2")
		note(t, a, t.Context(), w, "4", "1", "2", "3")
		keyed := a.KeysFor("acme", "ann", "k")
		answered := note(t, a, t.Context(), &keyed, "5")
		end := func(d *Tracker, w *filter.DedupKeys, i *filter.Intent, e filter.IntentUpdate) {
			t.Helper()
			if err := d.End(t.Context(), w, i, &e); err != nil {
				t.Fatal(err)
			}
		}
		gone := func(i filter.Intent, resource string) *filter.Intent {
			i.Abandoned, i.Resource = true, resource
			return &i
		}
		end(a, w, &left, filter.IntentUpdate{Next: gone(left, "p1"), Resource: "pod/p1", Unindex: true})
		end(a, w, &taken, filter.IntentUpdate{Next: gone(taken, "p2"), Resource: "pod/p2", Unindex: true})
		waits := gone(taken, "p2").Restored()
		mine, ok, err := b.Adopt(t.Context(), w, &waits, "p2")
		if err != nil || !ok {
			t.Fatalf("Take = %t, %v", ok, err)
		}
		end(b, w, &mine, filter.IntentUpdate{}) // a remembers it as waiting, b that it has ended
		end(a, w, &over, filter.IntentUpdate{Unindex: true})
		end(a, &keyed, &answered, filter.IntentUpdate{Response: &filter.StoredResponse{Fingerprint: "p", Status: 201}, Unindex: true})
		stop()
		r.Empty(t)
		found := make(chan []string)
		go func() {
			seen, err := a.TryRecord(t.Context(), w, &filter.Intent{}, nil)
			if err != nil {
				t.Error(err)
			}
			var ids []string
			for _, i := range seen.Intents {
				ids = append(ids, fmt.Sprint(i.ID, " ", i.Resource))
			}
			found <- ids
		}()
		select {
		case ids := <-found:
			t.Errorf("found %q before the other gateway has restored its intents", ids)
		case <-time.After(300 * time.Millisecond):
		}
		answering(t, b)
		if diff := cmp.Diff([]string{"1 p1", "4 "}, <-found); diff != "" {
			t.Errorf("intents after the loss (-want +got):\n%s", diff)
		}
		if seen, err := b.TryRecord(t.Context(), &keyed, &filter.Intent{}, nil); err != nil || seen.Response == nil || seen.Response.Status != 201 {
			t.Errorf("response under the key: %+v, %v, want 201", seen.Response, err)
		}
		if mine, err := b.Claim(t.Context(), w, &filter.Intent{ID: "6", Name: "n"}, "pod/p1"); err != nil || mine {
			t.Errorf("another intent claims p1: %t, %v", mine, err)
		}
	})
}

// TestARecoveryWaitsForFiveSeconds: a gateway that is silent delays a recovery for five seconds; what it restores later counts.
func TestARecoveryWaitsForFiveSeconds(t *testing.T) {
	t.Parallel()
	client := redistest.Client(t, redistest.Start(t))
	a, b, w := gateways(t, client)
	stop := answering(t, b)
	note(t, b, t.Context(), w, "1")
	stop()
	client.FlushAll(t.Context())
	began := time.Now()
	if ids := found(t, a, w); ids != nil {
		t.Errorf("found %q, which only the silent gateway knows", ids)
	}
	if waited := time.Since(began); waited < 4*time.Second {
		t.Errorf("a recovery without the other gateway took %s, want about 5 s", waited)
	}
	if err := b.store.RestoreAnnounced(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1"}, found(t, a, w)); diff != "" {
		t.Errorf("after the late gateway has restored its intents (-want +got):\n%s", diff)
	}
}

// TestAnOlderStoreIsNoticed: a gateway whose latest writes are missing restores them.
func TestAnOlderStoreIsNoticed(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t)
	client := redistest.Client(t, server.Addr())
	a, b, w := gateways(t, client)
	answering(t, b)
	note(t, b, t.Context(), w, "1")
	key := "t:{acme}:intents"
	old, err := client.Dump(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	answering(t, a)
	note(t, a, t.Context(), w, "2", "1")
	if err := client.RestoreReplace(t.Context(), key, 0, old).Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1", "2"}, found(t, a, w)); diff != "" {
		t.Errorf("after the store went back (-want +got):\n%s", diff)
	}
}

// TestMemoryIsBounded: the oldest ended intents and responses are forgotten, intents in flight are not.
func TestMemoryIsBounded(t *testing.T) {
	now := time.Now()
	m := memory{now: func() time.Time { return now }}
	w := &filter.DedupKeys{Org: "acme", Pending: "w"}
	m.begin(w, &filter.Intent{ID: "in flight"})
	for i := range maxRemembered + 10 {
		m.end(&ledger.IntentUpdate{Org: "acme", Intent: fmt.Sprint(i), Text: "response"}, "ann", 0)
	}
	count := func(want int) {
		t.Helper()
		if n := len(m.all("acme")); n != want {
			t.Errorf("%d intents are remembered, want %d", n, want)
		}
	}
	count(maxRemembered + 1)
	now = now.Add(filter.IntentTTL)
	m.end(&ledger.IntentUpdate{Org: "acme", Intent: "last", Row: "1 {}"}, "ann", 0)
	count(2)
	m.end(&ledger.IntentUpdate{Org: "acme", Intent: "last"}, "ann", -1) // of an earlier caller
	if m.orgs["acme"]["last"].Row == "" || m.textBytes != 0 {
		t.Errorf("the last intent is %+v, and responses have %d bytes", m.orgs["acme"]["last"], m.textBytes)
	}
}
