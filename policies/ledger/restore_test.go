package ledger_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/test/spend/storetest"
)

// gateway is one of the gateways that share a store: its memory, and its outbox.
type gateway struct {
	*ledger.Outbox
	storetest.World

	fleet *fleet
	name  string
	books *ledger.Components
	dead  atomic.Bool // its ledger is left alone
	late  []ledger.Hold
	saw   func(r *ledger.Report) // reports of its passes, nil for nothing
}

// fleet are gateways at one store, whose contents the test replaces.
type fleet struct {
	t        *testing.T
	store    *storetest.Memory
	gateways []*gateway
	found    []ledger.PlatformResource
	listed   func()
	alive    []string
}

func newFleet(t *testing.T, names ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, store: storetest.NewMemory(time.Now, nil), alive: names, listed: func() {}}
	f.empty(1)
	for _, name := range names {
		g := &gateway{World: storetest.World{Orgs: []string{org}}, fleet: f, name: name}
		d := storetest.Deps(f.store, g)
		d.Self, d.SingleGateway, d.PeerTimeout = ledger.Holder{Incarnation: "inc-" + name, Gateway: name}, false, 5*time.Second
		g.books = ledger.New(d)
		g.books.Hear(time.Now().Add(-time.Hour))
		g.Outbox = g.books.Outbox
		f.gateways = append(f.gateways, g)
	}
	return f
}

// empty replaces the contents of the store by those of an epoch that has nothing and is not complete, but for the first.
func (f *fleet) empty(epochs int) {
	f.t.Helper()
	m := storetest.NewMemory(time.Now, nil)
	for range epochs {
		if err := m.BeginRebuild(f.t.Context(), org, "t"); err != nil {
			f.t.Fatal(err)
		}
	}
	if epochs == 1 {
		if _, err := m.FinishRebuild(f.t.Context(), org, "t"); err != nil {
			f.t.Fatal(err)
		}
	}
	f.store.Become(m)
}

// List implements ledger.Platform.
func (g *gateway) List(context.Context, string, func(operation.Kind) bool) ([]ledger.PlatformResource, error) {
	g.fleet.listed()
	return g.fleet.found, nil
}

// Budgeted implements ledger.Gateway.
func (g *gateway) Budgeted() []string {
	if g.dead.Load() {
		return nil
	}
	return g.Orgs
}

// Peers implements ledger.Gateway.
func (g *gateway) Peers() []string { return g.fleet.alive }

// RestoredLate implements ledger.Events.
func (g *gateway) RestoredLate(_ context.Context, _ string, holds []ledger.Hold) {
	g.late = append(g.late, holds...)
}

// PassEnded implements ledger.Events.
func (g *gateway) PassEnded(_ context.Context, _ string, r *ledger.Report, _ error) {
	if g.saw != nil {
		g.saw(r)
	}
}

// rebuild makes the pass of a gateway that leads.
func (f *fleet) rebuild(ctx context.Context, g *gateway) error { return g.books.Loop.Rebuild(ctx, org) }

// run runs the watches of gateways until the test ends.
func (f *fleet) run(gateways ...*gateway) {
	ctx, cancel := context.WithCancel(f.t.Context())
	f.t.Cleanup(cancel)
	for _, g := range gateways {
		go func() { _ = g.books.Watch.Run(ctx) }()
	}
	time.Sleep(200 * time.Millisecond) // of the bubble: every image has been read
}

func (f *fleet) reserve(g *gateway, hold string) ledger.Status {
	f.t.Helper()
	out, err := g.Reserve(f.t.Context(), org, &ledger.Reservation{
		Hold: hold, Kind: "pod", Owner: owner, After: onePod, Metadata: ledger.Metadata{Name: hold, Decision: hold},
		Limits: [][ledger.Ceilings]int64{{}, {ledger.CeilingGPUs: 3}, {}},
	})
	if err != nil {
		f.t.Fatalf("Reserve(%s): %v", hold, err)
	}
	return out.Status
}

func (f *fleet) settle(g *gateway, s ledger.Settlement) {
	f.t.Helper()
	s.Kind, s.Owner = "pod", owner
	if err := g.Settle(f.t.Context(), org, &s); err != nil {
		f.t.Fatal(err)
	}
}

// holds returns the IDs of holds, with a mark for open ones.
func (f *fleet) holds() (ids []string) {
	f.t.Helper()
	s, err := f.store.Show(f.t.Context(), org)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, h := range s.Holds {
		id := h.ID
		if h.Open {
			id += " open"
		}
		ids = append(ids, id)
	}
	if d := s.Differences(); len(d) > 0 {
		f.t.Errorf("sums differ from their summands: %+v", d)
	}
	return ids
}

func (f *fleet) want(ids ...string) {
	f.t.Helper()
	if got := f.holds(); !slices.Equal(got, ids) {
		f.t.Errorf("holds = %q, want %q", got, ids)
	}
}

// TestReservationsOutliveALoss: calls in flight at two gateways, and an open hold, are restored before the ledger is complete, so
// that the budget of three GPUs stays used up.
func TestReservationsOutliveALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		a, b := f.gateways[0], f.gateways[1]
		f.run(a, b)
		f.reserve(a, "h1")
		f.reserve(b, "h2")
		f.reserve(b, "h3")
		f.settle(b, ledger.Settlement{Hold: "h3", End: ledger.Open, ResolveWithin: time.Hour})
		f.found = []ledger.PlatformResource{{Kind: operation.KindPod, ID: "p1", Name: "h1", Amounts: onePod, Priced: true}} // h1's call has created it
		f.empty(2)
		if err := f.rebuild(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		f.want("h1", "h2", "h3 open")
		if got := f.reserve(a, "more"); got != ledger.Refused {
			t.Errorf("another call = %d, want it refused", got)
		}
		f.settle(a, ledger.Settlement{Hold: "h1", End: ledger.Commit, Resource: "p1", Amounts: onePod})
		f.settle(b, ledger.Settlement{Hold: "h2", End: ledger.Release})
		f.want("h3 open")
		if got := f.reserve(b, "more"); got != ledger.Admitted {
			t.Errorf("a call after the release = %d, want it admitted", got)
		}
	})
}

// costStep is a time in which a pod costs a whole number of micro-dollars.
const costStep = 360 * time.Millisecond

// TestASettledCallKeepsItsResource: a rebuild enters the resource of a settled call for its owner, also if it has restored the call's hold.
// The resource's cost counts once, from its beginning, whatever ends the hold.
func TestASettledCallKeepsItsResource(t *testing.T) {
	for name, tt := range map[string]struct {
		began  bool // the platform says when
		commit bool // ends the hold, otherwise a release
	}{"released": {}, "committed": {commit: true}, "released, by the platform's clock": {began: true}, "committed, by the platform's clock": {true, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, "a")
				f.alive = nil // a has not heard itself yet, and takes its own hold for that of a dead gateway
				a := f.gateways[0]
				f.run(a)
				began := time.Now()
				f.reserve(a, "h1")
				commit := ledger.Settlement{Hold: "h1", End: ledger.Commit, Resource: "p1", Amounts: onePod, Metadata: ledger.Metadata{Decision: "h1"}}
				found := foundPod("p1")
				if found.Name, found.Call = "h1", "h1"; tt.began {
					began = began.Add(costStep) // the call took so long
					commit.From, found.Started = began, began
				}
				time.Sleep(9 * costStep)
				if _, err := a.books.Loop.Pass(t.Context(), org); err != nil { // after which a's image has the hold
					t.Fatal(err)
				}
				f.settle(a, commit)
				f.found = []ledger.PlatformResource{found}
				f.empty(2)
				if err := f.rebuild(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				f.want("h1")
				if tt.commit {
					f.settle(a, commit)
				} else if err := a.Sweep(t.Context(), org); err != nil {
					t.Fatal(err)
				}
				f.want()
				if _, err := a.books.Loop.Pass(t.Context(), org); err != nil {
					t.Fatal(err)
				}
				f.wantOwners(map[string]string{"p1": owner.String()})
				f.wantAccrued(onePod[ledger.Burn] * time.Since(began).Milliseconds() / time.Hour.Milliseconds())
			})
		})
	}
}

// TestTwinsAreNotMixedUp: the cost of a resource that another call could have created too, whose hold is restored, is not counted twice.
func TestTwinsAreNotMixedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a")
		a := f.gateways[0]
		f.run(a)
		began := time.Now()
		f.reserve(a, "h1")
		f.reserve(a, "h2")
		f.settle(a, ledger.Settlement{Hold: "h2", End: ledger.Commit, Resource: "p2", Amounts: onePod})
		f.found = []ledger.PlatformResource{{Kind: operation.KindPod, ID: "p2", Name: "h1", Amounts: onePod, Priced: true}}
		time.Sleep(9 * costStep)
		if _, err := a.books.Loop.Pass(t.Context(), org); err != nil {
			t.Fatal(err)
		}
		f.empty(2)
		if err := f.rebuild(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		f.want("h1")
		f.settle(a, ledger.Settlement{Hold: "h1", End: ledger.Release})
		f.wantAccrued(onePod[ledger.Burn] * time.Since(began).Milliseconds() / time.Hour.Milliseconds())
	})
}

// wantAccrued checks what has accrued today in each scope of the owner.
func (f *fleet) wantAccrued(want int64) {
	f.t.Helper()
	s, err := f.store.Balances(f.t.Context(), org, owner)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, b := range s.Balances {
		if b.Day != want {
			f.t.Errorf("%s: %d have accrued, want %d", b.Scope, b.Day, want)
		}
	}
}

// TestALossIsReportedBeforeItsNotice: the notice that a loss is made good is stored after the report of the loss, so that a gateway that ends
// between the two makes the next one report it. With the notice, the loss is not reported again.
func TestALossIsReportedBeforeItsNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		a, b := f.gateways[0], f.gateways[1]
		f.run(a, b)
		f.reserve(a, "h1")
		f.empty(2)
		if err := f.store.Notice(t.Context(), org, "loss", `{"lost": "all", "at": "2000-01-01T00:00:00Z"}`); err != nil { // by which the loss is known
			t.Fatal(err)
		}
		noticed := func() bool {
			l, err := ledger.LastLoss(t.Context(), f.store, org)
			if err != nil {
				t.Fatal(err)
			}
			return l != nil && !l.Rebuilt.IsZero()
		}
		var reports []string
		for _, g := range f.gateways {
			g.saw = func(r *ledger.Report) {
				if r.Loss == nil {
					return
				}
				reports = append(reports, g.name)
				if noticed() {
					t.Error("the notice of the end is stored before the report")
				}
			}
		}
		if err := f.rebuild(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if !noticed() {
			t.Error("the notice of the end is not stored after the report")
		}
		if _, err := b.books.Loop.Pass(t.Context(), org); err != nil {
			t.Fatal(err)
		}
		if want := []string{"a"}; !slices.Equal(reports, want) {
			t.Errorf("the loss was reported by %q, want %q", reports, want)
		}
	})
}

// TestALossInEachPhase: whatever happens between the steps of a rebuild, nothing that is in flight is forgotten, and nothing that
// has ended returns.
func TestALossInEachPhase(t *testing.T) {
	for name, between := range map[string]func(f *fleet, a, b *gateway){
		"a settlement": func(f *fleet, _, b *gateway) { f.settle(b, ledger.Settlement{Hold: "h2", End: ledger.Release}) },
		"a hold is opened": func(f *fleet, _, b *gateway) {
			f.settle(b, ledger.Settlement{Hold: "h2", End: ledger.Open, ResolveWithin: time.Hour})
		},
		"a second loss": func(f *fleet, _, _ *gateway) { f.empty(3) },
		"nothing":       func(*fleet, *gateway, *gateway) {},
		"a commit of another hold": func(f *fleet, a, _ *gateway) {
			f.settle(a, ledger.Settlement{Hold: "h1", End: ledger.Commit, Resource: "p1", Amounts: onePod})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, "a", "b")
				a, b := f.gateways[0], f.gateways[1]
				f.run(a, b)
				f.reserve(a, "h1")
				f.reserve(b, "h2")
				f.empty(2)
				once := false
				f.listed = func() { // the gateways have restored their holds
					if !once {
						once = true
						between(f, a, b)
					}
				}
				for f.rebuild(t.Context(), a) != nil { // lost again while it was rebuilt
					time.Sleep(time.Second)
				}
				switch name {
				case "a settlement":
					f.want("h1")
				case "a hold is opened":
					f.want("h1", "h2 open")
				case "a commit of another hold":
					f.want("h2")
				default:
					f.want("h1", "h2")
				}
			})
		})
	}
}

// TestALateGatewayRestores: a gateway that was silent for thirty seconds restores its holds into the complete ledger, above the budget, and
// reports them.
func TestALateGatewayRestores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		a, b := f.gateways[0], f.gateways[1]
		f.run(a)
		f.reserve(b, "h1")
		f.reserve(b, "h2")
		f.empty(2)
		began := time.Now()
		if err := f.rebuild(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("the rebuild waited %s for the silent gateway, want 5 s", waited)
		}
		f.want()
		for _, id := range []string{"n1", "n2", "n3"} {
			f.reserve(a, id)
		}
		time.Sleep(25 * time.Second)
		f.run(b)
		f.want("h1", "h2", "n1", "n2", "n3")
		if len(b.late) != 2 {
			t.Errorf("reported are %+v, want two holds", b.late)
		}
	})
}

// TestAYoungGatewayWaits: a gateway does not know its peers before the store has answered it for a while, and completes no ledger before
// it can have heard of them.
func TestAYoungGatewayWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for heard, want := range map[time.Time]time.Duration{now.Add(-2 * time.Second): 3 * time.Second, {}: 5 * time.Second} {
			f := newFleet(t, "a")
			f.gateways[0].books.Hear(heard)
			f.empty(2)
			began := time.Now()
			f.gateways[0].books.SetNow(func() time.Time { return now.Add(time.Since(began)) })
			if err := f.rebuild(t.Context(), f.gateways[0]); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited != want {
				t.Errorf("the rebuild waited %s, want %s", waited, want)
			}
		}
	})
}

// deadly is a world whose other gateways are dead.
type deadly struct {
	*reconciled

	silent  time.Duration
	nothing []string
}

// Dead implements ledger.Gateway.
func (d *deadly) Dead(context.Context, string) (time.Duration, bool) { return d.silent, true }

// Forget implements ledger.Gateway.
func (d *deadly) Forget(_ context.Context, _ string, holds ...string) error {
	d.nothing = append(d.nothing, holds...)
	return nil
}

// TestHoldsOfADeadGateway: the platform's list decides about a call whose gateway has been dead for a minute.
func TestHoldsOfADeadGateway(t *testing.T) {
	r := newReconciled(t)
	for _, hold := range []string{"made", "never sent"} {
		_, err := r.Reserve(t.Context(), org, &ledger.Reservation{
			Hold: hold, Kind: string(operation.KindPod), Owner: owner, After: onePod, Metadata: ledger.Metadata{Name: hold},
			Limits: make([][ledger.Ceilings]int64, 3), Holder: ledger.Holder{Incarnation: "dead"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.has("made", onePod)
	d := &deadly{reconciled: r, silent: 10 * time.Second}
	pass := func() {
		t.Helper()
		deps := r.deps(d)
		deps.CallTimeout, deps.Unresolved = 2*time.Minute, 10*time.Minute
		if err := r.passOf(ledger.New(deps)); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	if got := r.takes(); len(got) != 2 || d.nothing != nil {
		t.Errorf("ten seconds after the death the ledger has %v, want both holds", got)
	}
	d.silent = time.Minute
	pass()
	if got := r.takes(); len(got) != 1 || got["pod-made"] == "" || !slices.Equal(d.nothing, []string{"never sent"}) {
		t.Errorf("the ledger has %v, and intents %q have ended, want the pod, and \"never sent\"", got, d.nothing)
	}
}

// TestImpossibleCounts: a value that a resource cannot have leaves the recorded amounts as they are.
func TestImpossibleCounts(t *testing.T) {
	r := newReconciled(t)
	r.rent("a")
	r.found[0].Amounts, r.found[0].Implausible = ledger.Amounts{ledger.Pods: 1}, "gpu.count"
	r.found = append(r.found, ledger.PlatformResource{Kind: operation.KindPod, ID: "pod-b", Name: "b", Amounts: ledger.Amounts{ledger.Pods: 1}, Implausible: "gpu"})
	if err := r.pass(r); err != nil {
		t.Fatal(err)
	}
	state, err := r.Show(t.Context(), org)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range state.Resources {
		if x.Amounts[ledger.GPUs] != 1 || x.ID == "pod-a" && x.Amounts != onePod {
			t.Errorf("%s takes %v, want one GPU, and of pod-a the recorded amounts", x.ID, x.Amounts)
		}
	}
	if r.report.Implausible != 2 || len(state.Resources) != 2 {
		t.Errorf("%d impossible values of %d resources, want 2 of 2", r.report.Implausible, len(state.Resources))
	}
}

// TestABegunRebuildIsNoticed: a gateway that finds a rebuild begun, by another gateway or by a pass of its own, counts the ledger among
// those that are being rebuilt until it is complete.
func TestABegunRebuildIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		f.run(f.gateways...)
		for _, step := range []struct {
			epochs, want int
			what         string
		}{{1, 0, "complete"}, {2, 1, "begun"}} {
			f.empty(step.epochs)
			time.Sleep(time.Second)
			for _, g := range f.gateways {
				if n := g.books.Watch.Rebuilding(); n != step.want {
					t.Errorf("%s: gateway %s rebuilds %d ledgers, want %d", step.what, g.name, n, step.want)
				}
			}
		}
		if done, err := f.store.FinishRebuild(t.Context(), org, "t"); !done || err != nil {
			t.Fatalf("Finish: %t, %v", done, err)
		}
		time.Sleep(time.Second)
		for _, g := range f.gateways {
			if n := g.books.Watch.Rebuilding(); n != 0 {
				t.Errorf("after the rebuild, gateway %s rebuilds %d ledgers", g.name, n)
			}
		}
	})
}
