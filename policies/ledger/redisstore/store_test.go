package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/spend/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, addr string, zones ledger.Zones) *redisstore.Store {
	t.Helper()
	return redisstore.New(redistest.Once(t, addr), "tg:spend:", zones)
}

func TestContract(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		storetest.Test(t, func(t *testing.T, zones ledger.Zones) storetest.Fixture {
			t.Helper()
			r.Empty(t)
			f := storetest.Fixture{Store: redisstore.New(r.Client, "tg:spend:", zones)}
			if r.Embedded != nil {
				f.SetTime = clock(r.Embedded)
			}
			return f
		})
	})
}

// clock returns what sets the clock of a server, and ends keys.
func clock(server *miniredis.Miniredis) func(time.Time) {
	var now time.Time
	return func(to time.Time) {
		if !now.IsZero() && to.After(now) {
			server.FastForward(to.Sub(now))
		}
		now = to
		server.SetTime(to)
	}
}

// rebuild makes a ledger complete.
func rebuild(t *testing.T, s *redisstore.Store, token string) {
	t.Helper()
	if err := s.BeginRebuild(t.Context(), "acme", token); err != nil {
		t.Fatal(err)
	}
	if done, err := s.FinishRebuild(t.Context(), "acme", token); err != nil || !done {
		t.Fatalf("Finish = %t, %v, want a complete ledger", done, err)
	}
}

func reserve(t *testing.T, s *redisstore.Store, hold string) ledger.Status {
	t.Helper()
	out, err := s.Reserve(t.Context(), "acme", &ledger.Reservation{
		Hold: hold, Kind: "pod", After: ledger.Amounts{1}, Limits: make([][ledger.Ceilings]int64, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Status
}

// A store that was emptied, that went back to an old state, or that lost a single key
// admits nothing until it was rebuilt, whichever gateway asks, and names its losses.
func TestALostStoreIsClosed(t *testing.T) {
	del := func(name string) func(*miniredis.Miniredis, map[string]string) {
		return func(server *miniredis.Miniredis, _ map[string]string) { server.Del("tg:spend:{acme}:" + name) }
	}
	for _, tt := range []struct {
		lost ledger.LostPart
		lose func(server *miniredis.Miniredis, old map[string]string)
	}{
		{ledger.LostAll, func(server *miniredis.Miniredis, _ map[string]string) { server.FlushAll() }},
		{ledger.LostChanges, func(server *miniredis.Miniredis, old map[string]string) {
			for name, text := range old {
				server.HSet("tg:spend:{acme}:accounts", name, text)
			}
			server.HDel("tg:spend:{acme}:holds", "h1")
		}},
		{ledger.LostAccounts, del("accounts")},
		{ledger.LostResources, del("resources")},
		{ledger.LostHolds, del("holds")},
		{ledger.LostEnded, del("ended")},
	} {
		for _, first := range []string{"who knows", "another"} {
			t.Run(string(tt.lost)+" "+first, func(t *testing.T) {
				server := miniredis.RunT(t)
				now := time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)
				server.SetTime(now)
				a, b := open(t, server.Addr(), nil), open(t, server.Addr(), nil)
				rebuild(t, a, "one")
				if got := reserve(t, b, "h0"); got != ledger.Admitted {
					t.Fatalf("status = %d, want admitted", got)
				}
				old := make(map[string]string)
				for _, name := range []string{"", "org"} {
					old[name] = server.HGet("tg:spend:{acme}:accounts", name)
				}
				if got := reserve(t, a, "h1"); got != ledger.Admitted {
					t.Fatalf("status = %d, want admitted", got)
				}
				tt.lose(server, old)
				server.SetTime(now.Add(time.Second))
				stores := []*redisstore.Store{a, b}
				if first == "another" && tt.lost != ledger.LostChanges { // of changes only those know that made or saw them
					stores = []*redisstore.Store{b, a}
				}
				if state, err := stores[0].Show(t.Context(), "acme"); err != nil || state.Complete || state.Lost != tt.lost {
					t.Errorf("Show: complete is %t, lost %q (%v), want %q", state.Complete, state.Lost, err, tt.lost)
				}
				for i, s := range stores {
					if got := reserve(t, s, fmt.Sprint("closed", i)); got != ledger.Closed {
						t.Errorf("status = %d, want closed", got)
					}
				}
				if state, err := open(t, server.Addr(), nil).Show(t.Context(), "acme"); err != nil || state.Complete || state.Lost != tt.lost {
					t.Errorf("Show of a new gateway: complete is %t, lost %q (%v), want %q", state.Complete, state.Lost, err, tt.lost)
				}
				rebuild(t, stores[1], "two")
				if got := reserve(t, stores[0], "h4"); got != ledger.Admitted {
					t.Errorf("status after the rebuild = %d, want admitted", got)
				}
			})
		}
	}
}

// A gateway that has lost writes notices the loss, however often others have written since.
func TestOwnWritesAreCounted(t *testing.T) {
	server := miniredis.RunT(t)
	a, b := open(t, server.Addr(), nil), open(t, server.Addr(), nil)
	const key = "tg:spend:{acme}:accounts"
	rebuild(t, a, "one")
	old := make(map[string]string)
	fields, err := server.HKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		old[f] = server.HGet(key, f)
	}
	reserve(t, a, "h1")
	for f, text := range old {
		server.HSet(key, f, text)
	}
	for i := range 5 {
		if got := reserve(t, b, fmt.Sprint("b", i)); got != ledger.Admitted {
			t.Fatalf("status = %d, want admitted: this gateway has lost nothing", got)
		}
	}
	if got := reserve(t, a, "h2"); got != ledger.Closed {
		t.Errorf("status = %d, want closed", got)
	}
}

// A gateway that has written nothing for longer than a ledger knows its writers takes
// nothing for lost, whoever else has written meanwhile.
func TestAQuietGatewayLosesNothing(t *testing.T) {
	server := miniredis.RunT(t)
	now := time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)
	set := clock(server)
	set(now)
	a, b := open(t, server.Addr(), nil), open(t, server.Addr(), nil)
	a.Now, b.Now = func() time.Time { return now }, func() time.Time { return now }
	rebuild(t, a, "one")
	for i, s := range []*redisstore.Store{a, b, a} {
		if got := reserve(t, s, fmt.Sprint("h", i)); got != ledger.Admitted {
			t.Errorf("call %d: status %d, want admitted", i, got)
		}
		now = now.Add(25 * time.Hour)
		set(now)
		if err := a.Settle(t.Context(), "acme", &ledger.Settlement{Hold: "none", End: ledger.Open}); err != nil { // which writes nothing
			t.Fatal(err)
		}
		reserve(t, b, fmt.Sprint("b", i)) // which forgets the others
		if heads, err := a.Heads(t.Context(), []string{"acme"}); err != nil || heads[0].Lost != "" || !heads[0].Complete {
			t.Errorf("head %+v (%v), want a complete ledger that has lost nothing", heads, err)
		}
	}
}

// An intent whose note was repeated, because its reply was lost, ends with its call.
func TestARepeatedNoteEnds(t *testing.T) {
	server := miniredis.RunT(t)
	set, now := clock(server), time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)
	set(now)
	s := open(t, server.Addr(), nil)
	rebuild(t, s, "one")
	r := &ledger.Reservation{
		Hold: "h1", Kind: "pod", After: ledger.Amounts{1}, Limits: make([][ledger.Ceilings]int64, 1),
		Intent: &ledger.IntentRecord{Org: "acme", Fingerprint: "w", Lookalike: "l", Response: "a-", Intent: "h1", Row: "{}", Owner: "ann"},
	}
	var out ledger.Outcome
	for range 2 {
		var err error
		if out, err = s.Reserve(t.Context(), "acme", r); err != nil || out.Status != ledger.Admitted {
			t.Fatalf("status %d (%v), want admitted", out.Status, err)
		}
		set(now.Add(time.Second))
	}
	end := &ledger.IntentUpdate{
		Org: "acme", Created: "m-", Fingerprint: "w", Lookalike: r.Intent.Lookalike, Response: r.Intent.Response,
		Intent: "h1", OldRow: fmt.Sprint(out.Now.UnixMilli(), " {}"), UnsetLookalike: true,
	}
	if err := s.Settle(t.Context(), "acme", &ledger.Settlement{Hold: "h1", End: ledger.Release, Intent: end}); err != nil {
		t.Fatal(err)
	}
	fields, err := server.HKeys("tg:spend:{acme}:intents")
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(fields, func(f string) bool { return strings.ContainsAny(f[:min(1, len(f))], "wl") }) {
		t.Errorf("fields %q, want none of an intent", fields)
	}
}

// peered is a world whose peers a test returns. It keeps the losses that passes have made good, and lists what a test returns.
type peered struct {
	storetest.World

	peers  func() []string
	listed func() error
	told   []ledger.Loss
}

// Peers implements ledger.Gateway.
func (p *peered) Peers() []string { return p.peers() }

// List implements ledger.Platform.
func (p *peered) List(context.Context, string, func(operation.Kind) bool) ([]ledger.PlatformResource, error) {
	if p.listed == nil {
		return p.Found, nil
	}
	return p.Found, p.listed()
}

// Recorded implements ledger.Gateway.
func (*peered) RecordedOwners(_ context.Context, _ string, ids []string) map[string]ledger.Ownership {
	owners := make(map[string]ledger.Ownership)
	for _, id := range ids {
		owners[id] = ledger.Ownership{Owner: ledger.Owner{Team: "research"}}
	}
	return owners
}

// Passed implements ledger.Events.
func (p *peered) PassEnded(_ context.Context, _ string, r *ledger.Report, _ error) {
	if r.Loss != nil {
		p.told = append(p.told, *r.Loss)
	}
}

// A loss is told although the rebuild that found it was broken off, and another gateway made
// the next.
func TestALossOutlivesItsFirstRebuild(t *testing.T) {
	server := miniredis.RunT(t)
	s := open(t, server.Addr(), nil)
	rebuild(t, s, "one")
	server.Del("tg:spend:{acme}:holds")
	w := new(peered)
	deps := storetest.Deps(s, w)
	deps.Self.Gateway, deps.PeerTimeout = "a", time.Minute
	loop := ledger.New(deps).Loop
	ctx, stop := context.WithCancel(t.Context())
	w.peers = func() []string { stop(); return []string{"b"} }
	if _, err := loop.Pass(ctx, "acme"); !errors.Is(err, context.Canceled) {
		t.Fatalf("the first rebuild = %v, want %v", err, context.Canceled)
	}
	w.peers = func() []string { return nil }
	if _, err := ledger.New(deps).Loop.Pass(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if l, err := ledger.LastLoss(t.Context(), s, "acme"); err != nil || l == nil || l.Lost != ledger.LostHolds || l.Rebuilt.IsZero() {
		t.Errorf("LastLoss = %+v, %v, want %s, rebuilt", l, err, ledger.LostHolds)
	}
}

// The end of a loss is told by the next pass if the gateway that rebuilt the ledger was killed
// before it could.
func TestTheEndOfALossIsTold(t *testing.T) {
	s := open(t, miniredis.RunT(t).Addr(), nil)
	if err := s.Notice(t.Context(), "acme", "loss", `{"lost":"holds","at":"2027-03-14T12:00:00Z"}`); err != nil {
		t.Fatal(err)
	}
	rebuild(t, s, "one")
	w := new(peered)
	loop := ledger.New(storetest.Deps(s, w)).Loop
	for range 2 {
		_, err := loop.Pass(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
	}
	if l, err := ledger.LastLoss(t.Context(), s, "acme"); err != nil || len(w.told) != 1 || l == nil || l.Lost != ledger.LostHolds || l.Rebuilt.IsZero() {
		t.Errorf("told %+v, LastLoss = %+v, %v, want %s, rebuilt, once", w.told, l, err, ledger.LostHolds)
	}
}

// TestRebuildsOfOneLossAddUp: a rebuild that another rebuild has overtaken is no failure, and the report on the loss has the resources
// that each rebuild has returned.
func TestRebuildsOfOneLossAddUp(t *testing.T) {
	server := miniredis.RunT(t)
	s := open(t, server.Addr(), nil)
	rebuild(t, s, "one")
	server.FlushAll()
	w := &peered{peers: func() []string { return nil }, listed: func() error { return s.BeginRebuild(t.Context(), "acme", "other") }}
	deps := storetest.Deps(s, w)
	deps.Self.Gateway = "a"
	r := ledger.New(deps).Loop
	w.Found = []ledger.PlatformResource{{ID: "p1", Kind: operation.KindPod, Amounts: ledger.Amounts{ledger.Pods: 1}}}
	if err := r.Rebuild(t.Context(), "acme"); !errors.Is(err, ledger.ErrEpochChanged) {
		t.Errorf("the first rebuild = %v, want %v", err, ledger.ErrEpochChanged)
	}
	w.listed = nil
	w.Found = append(w.Found, ledger.PlatformResource{ID: "p2", Kind: operation.KindPod, Amounts: ledger.Amounts{ledger.Pods: 1}})
	for range 2 {
		if err := r.Rebuild(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
	}
	l, err := ledger.LastLoss(t.Context(), s, "acme")
	if err != nil || l == nil || l.Returned != 2 || l.Unowned != 0 || !l.Rebuilt.After(l.At) {
		t.Errorf("LastLoss = %+v, %v, want two resources returned, rebuilt after the loss", l, err)
	}
	if len(w.told) != 1 || w.told[0].Returned != 2 {
		t.Errorf("told %+v, want one loss with two resources returned", w.told)
	}
}

// A rebuild during which the store is lost again does not open it.
func TestARebuildThatIsLostOpensNothing(t *testing.T) {
	server := miniredis.RunT(t)
	s := open(t, server.Addr(), nil)
	if err := s.BeginRebuild(t.Context(), "acme", "one"); err != nil {
		t.Fatal(err)
	}
	server.FlushAll()
	if done, err := s.FinishRebuild(t.Context(), "acme", "one"); err != nil || done {
		t.Errorf("Finish = %t, %v, want false", done, err)
	}
}

func TestScriptsAreLoadedAgain(t *testing.T) {
	addr := redistest.Start(t)
	s := open(t, addr, nil)
	rebuild(t, s, "one")
	redistest.Client(t, addr).ScriptFlush(t.Context())
	if got := reserve(t, s, "h1"); got != ledger.Admitted {
		t.Errorf("status = %d, want admitted", got)
	}
}

// A real Redis that may lose data has risks, and one that is set up for a ledger has none.
func TestDurabilityRisks(t *testing.T) {
	addr := redistest.Start(t)
	store, client := open(t, addr, nil), redistest.Client(t, addr)
	for _, tt := range []struct {
		appendonly, policy string
		want               int
	}{
		{"no", "allkeys-lru", 2}, {"yes", "volatile-ttl", 1}, {"yes", "noeviction", 0},
	} {
		for name, value := range map[string]string{"appendonly": tt.appendonly, "maxmemory-policy": tt.policy} {
			if err := client.ConfigSet(t.Context(), name, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := store.DurabilityRisks(t.Context()); err != nil || len(got) != tt.want {
			t.Errorf("appendonly %s, %s: DurabilityRisks = %q, %v, want %d", tt.appendonly, tt.policy, got, err, tt.want)
		}
	}
}

// TestEarlierLedgers: a ledger of a version with another format is found, and not read.
func TestEarlierLedgers(t *testing.T) {
	server := miniredis.RunT(t)
	server.HSet("old:{acme}:accounts", "", "1 2 1")
	s := open(t, server.Addr(), nil)
	if found, err := s.LegacyLedgers(t.Context(), "old:", []string{"acme", "other"}); err != nil || !slices.Equal(found, []string{"acme"}) {
		t.Errorf("Earlier = %q, %v, want acme", found, err)
	}
	if state, err := s.Show(t.Context(), "acme"); err != nil || state.Complete {
		t.Errorf("Show = %+v, %v, want a ledger that is not complete", state, err)
	}
}

// The lock of a gateway that died holds up no pass for long.
func TestALockIsNotWaitedForLong(t *testing.T) {
	addr := redistest.Start(t)
	alive, kill := context.WithCancel(t.Context())
	if _, err := open(t, addr, nil).Lock(alive, "acme"); err != nil {
		t.Fatal(err)
	}
	kill()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // less than a pass may take
	defer cancel()
	unlock, err := open(t, addr, nil).Lock(ctx, "acme")
	if err != nil {
		t.Fatalf("Lock = %v, want it not to wait for the other", err)
	}
	unlock()
}

// Deletes that a store in a failover refuses are made when it takes writes again.
func TestDeletesOutliveAFailover(t *testing.T) {
	const pods = 500
	server := miniredis.RunT(t)
	s := open(t, server.Addr(), nil)
	rebuild(t, s, "one")
	deps := storetest.Deps(s, new(storetest.World))
	deps.Self.Incarnation = "01J"
	o := ledger.New(deps).Outbox
	for i := range pods {
		if _, err := s.Adjust(t.Context(), "acme", &ledger.Adjustment{Kind: "pod", Resource: fmt.Sprint("p", i), Amounts: ledger.Amounts{ledger.Pods: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	server.SetError("READONLY You can't write against a read only replica.")
	for i := range pods {
		d := &ledger.Settlement{Hold: fmt.Sprint("h", i), End: ledger.Commit, Kind: "pod", Resource: fmt.Sprint("p", i), Gone: true}
		if err := o.Settle(t.Context(), "acme", d); !errors.Is(err, ledger.ErrUnavailable) {
			t.Fatalf("Settle: %v, want %v", err, ledger.ErrUnavailable)
		}
	}
	o.Deliver(t.Context())
	server.SetError("")
	began := time.Now()
	o.Deliver(t.Context())
	t.Logf("%d deletes were delivered in %s", pods, time.Since(began))
	state, err := s.Show(t.Context(), "acme")
	if err != nil || len(state.Resources) > 0 || state.Balances[0].Committed != (ledger.Amounts{}) {
		t.Errorf("%d resources and %+v (%v), want none", len(state.Resources), state.Balances, err)
	}
}

// An account of an earlier version, which keeps the day and the month alone, begins its other periods with the cost that they are
// sure to contain. One of a later version has all periods, but no sandboxes. An earlier version finds what it knows where it expects it.
func TestAccountsOfEarlierVersions(t *testing.T) {
	now := time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)
	week, quarter := time.Date(2027, 3, 8, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	accountOfEarlierVersion(t, now, "", ledger.Accrued{Day: 6_600_000, Week: 6_600_000, Month: 73_600_000, Quarter: 73_600_000, Total: 73_600_000})
	accountOfEarlierVersion(t, now, fmt.Sprintf(",%d,9000000,0,%d,80000000,0,0,90000000,0", week.UnixMilli(), quarter.UnixMilli()),
		ledger.Accrued{Day: 6_600_000, Week: 12_600_000, Month: 73_600_000, Quarter: 83_600_000, Total: 93_600_000})
}

// accountOfEarlierVersion reads and writes an account that ends with others than the day and the month.
func accountOfEarlierVersion(t *testing.T, now time.Time, others string, want ledger.Accrued) {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetTime(now)
	s := open(t, server.Addr(), nil)
	rebuild(t, s, "one")
	day, month := now.Truncate(24*time.Hour), time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	server.HSet("tg:spend:{acme}:accounts", "org", fmt.Sprintf("[%d,3600000,0,0,0,0,0,0,0,0,0,0,0,%d,3000000,5,%d,70000000,7%s]",
		now.Add(-time.Hour).UnixMilli(), day.UnixMilli(), month.UnixMilli(), others))
	for _, written := range []bool{false, true} {
		state, err := s.Show(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		if got := state.Balances[0].Accrued; got != want {
			t.Errorf("written by this version: %t: accrued %+v, want %+v", written, got, want)
		}
		reserve(t, s, "h")
	}
	text := server.HGet("tg:spend:{acme}:accounts", "org")
	if want := fmt.Sprintf("[%d,3600000,0,0,0,0,0,1,0,0,0,0,0,%d,6600000,5,%d,73600000,7,", now.UnixMilli(), day.UnixMilli(), month.UnixMilli()); !strings.HasPrefix(text, want) {
		t.Errorf("the account begins %s, want %s", text, want)
	}
}
