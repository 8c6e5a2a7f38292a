package storetest

import (
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Fixture is a store under test.
type Fixture struct {
	// Store is empty.
	Store spend.Store
	// SetTime moves the store's clock. Nil: the clock cannot be moved, and the cases
	// that need that are left out.
	SetTime func(time.Time)
}

// Test runs the suite; newFixture is called once for each case, with the zones that
// the store is to ask for.
func Test(t *testing.T, newFixture func(t *testing.T, zones spend.Zones) Fixture) {
	for _, tt := range []struct {
		name string
		run  func(*harness)
	}{
		{"what fits is admitted", testRoom},
		{"every ceiling", testCeilings},
		{"a commit takes the place of its hold", testCommit},
		{"steps can be repeated", testRepeats},
		{"a hold that ended does not begin", testEnded},
		{"nothing is reserved where a wish has other intents", testIntents},
		{"an open hold stays counted", testOpen},
		{"a hold names its holder", testHolder},
		{"owners", testOwners},
		{"what was found meanwhile goes to who asked for it", testTransfer},
		{"a resource gets another owner", testAssign},
		{"jobs have owners", testJobs},
		{"a lowering is free", testFree},
		{"changes that overlap lower nothing", testOverlap},
		{"a removal that overlaps removes nothing", testOverlapGone},
		{"a commit without its hold", testWithoutHold},
		{"adjustments", testAdjust},
		{"many adjustments", testAdjustMany},
		{"owners of what was removed", testGivenBack},
		{"closed until it is rebuilt", testRebuild},
		{"racing callers", testRace},
		{"sums are repaired", testRepair},
		{"what gateways remember", testOffer},
		{"heads", testHeads},
		{"reservations are restored once", testRestore},
		{"a restoration accrues once", testRestoreAccrual},
		{"a restoration belongs to one rebuild", testRestoreEpoch},
		{"one-time costs without a hold", testCostWithoutHold},
		{"the cost of a job without a hold", testCostOfAJob},
		{"a removed resource does not return", testTombstone},
		{"what costs once", testCost},
		{"a hold under another id", testAs},
		{"accrual", testAccrual},
		{"periods", testPeriods},
		{"days of a zone", testZoneDays},
		{"weeks, months and quarters of a zone", testZonePeriods},
		{"a total", testTotal},
		{"another zone", testAnotherZone},
		{"the largest amounts", testLargest},
		{"roll-ups", testRollups},
		{"roll-ups of what costs once", testOnce},
		{"a posting is made once", testPostOnce},
		{"roll-ups of many changes", testManyChanges},
		{"what ran before the first roll-up", testFirstRoll},
		{"roll-ups end", testRetention},
		{"labels stay with what was made", testLabels},
		{"what was billed", testBilled},
		{"what was billed accrues in its periods", testBilledPeriods},
		{"bills are followed once", testBillsOnce},
		{"gateways that follow the same bills", testBillsRace},
		{"bills of what is not known", testBillsUnknown},
		{"adjusted accruals", testAdjustAccrual},
		{"adjusted accruals of each period", testAdjustPeriods},
		{"accruals that move", testMoveAccrual},
		{"ids of adjusted accruals", testAccrualIDs},
		{"adjustments in the history", testAdjustmentHistory},
		{"bills after an adjustment", testAdjustmentBilled},
		{"notices", testNotices},
		{"model", testModel},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &harness{T: t, org: "acme", at: start}
			h.Fixture = newFixture(t, func(string) spend.Zone { return h.zone })
			h.set(start)
			h.rebuild()
			tt.run(h)
		})
	}
}

// start is where movable clocks begin.
var start = time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)

// usd is a dollar.
const usd = 1_000_000

type harness struct {
	*testing.T
	Fixture

	org  string
	zone spend.Zone
	at   time.Time
	n    int
}

func (h *harness) set(at time.Time) {
	if h.SetTime != nil {
		h.at = at
		h.SetTime(at)
	}
}

func (h *harness) movable() {
	h.Helper()
	if h.SetTime == nil {
		h.Skip("the clock of this store cannot be moved")
	}
}

func (h *harness) advance(d time.Duration) { h.set(h.at.Add(d)) }

func testRoom(h *harness) {
	p := teamPerHour(1.5 * usd)
	var holds []string
	for range 3 {
		id, out := h.reserve(p, pod(0.43*usd))
		h.status(out, spend.Admitted)
		holds = append(holds, id)
	}
	_, out := h.reserve(p, pod(0.43*usd))
	h.status(out, spend.Refused)
	if out.Scope != 1 || out.Ceiling != spend.PerHour {
		h.Errorf("refused by scope %d, ceiling %d, want the team's per_hour", out.Scope, out.Ceiling)
	}
	if got, want := out.Levels[1][spend.PerHour], (spend.Level{Reserved: 1.29 * usd, Needs: 0.43 * usd}); got != want {
		h.Errorf("level = %+v, want %+v", got, want)
	}
	h.settle(spend.Settlement{Hold: holds[0], End: spend.Release})
	_, out = h.reserve(p, pod(0.43*usd))
	h.status(out, spend.Admitted)
	h.counts(spend.Amounts{}, spend.Amounts{1.29 * usd, 3, 3, 0, 0})
}

func testCeilings(h *harness) {
	for _, tt := range []struct {
		budget  spend.Budget
		after   spend.Amounts
		ceiling int
	}{
		{spend.Budget{PerHour: 10}, spend.Amounts{spend.Burn: 11}, spend.PerHour},
		// However little is left of the period.
		{spend.Budget{PerDay: 10}, spend.Amounts{spend.Burn: usd}, spend.PerDay},
		{spend.Budget{PerWeek: 10}, spend.Amounts{spend.Burn: usd}, spend.PerWeek},
		{spend.Budget{PerMonth: 10}, spend.Amounts{spend.Burn: usd}, spend.PerMonth},
		{spend.Budget{PerQuarter: 10}, spend.Amounts{spend.Burn: usd}, spend.PerQuarter},
		{spend.Budget{Total: 10}, spend.Amounts{spend.Burn: usd}, spend.InTotal},
		{spend.Budget{GPUs: 2}, spend.Amounts{spend.GPUs: 3}, spend.MaxGPUs},
		{spend.Budget{Pods: 2}, spend.Amounts{spend.Pods: 3}, spend.MaxPods},
		{spend.Budget{Workers: 2}, spend.Amounts{spend.Workers: 3}, spend.MaxWorkers},
		{spend.Budget{VolumeGB: 2}, spend.Amounts{spend.VolumeGB: 3}, spend.MaxVolumeGB},
	} {
		for scope, p := range []*spend.Plan{
			{Keys: map[string]spend.Budget{"ann": tt.budget}},
			{Teams: map[string]spend.Budget{"research": tt.budget}},
			{Org: tt.budget},
		} {
			_, out := h.reserve(p, tt.after)
			if out.Status != spend.Refused || out.Scope != scope || out.Ceiling != tt.ceiling {
				h.Errorf("%+v of scope %d: %d by scope %d, ceiling %d", tt.budget, scope, out.Status, out.Scope, out.Ceiling)
			}
		}
	}
	h.counts(spend.Amounts{}, spend.Amounts{})
}

func testCommit(h *harness) {
	p := teamPerHour(usd)
	id, _ := h.reserve(p, pod(0.43*usd))
	h.commit(id, "p1", pod(0.40*usd))
	h.counts(pod(0.40*usd), spend.Amounts{})
	stop := h.ask(p, &spend.Reservation{Hold: "stop", Kind: "pod", Resource: "p1", Owner: ann, Free: true})
	h.status(stop, spend.Admitted)
	h.commit("stop", "p1", spend.Amounts{spend.Burn: 100, spend.Pods: 1})
	h.counts(spend.Amounts{spend.Burn: 100, spend.Pods: 1}, spend.Amounts{})
	h.ask(p, &spend.Reservation{Hold: "start", Kind: "pod", Resource: "p1", Owner: ann, After: pod(0.43 * usd)})
	h.counts(spend.Amounts{spend.Burn: 100, spend.Pods: 1}, spend.Amounts{spend.Burn: 0.43*usd - 100, spend.GPUs: 1})
	h.settle(spend.Settlement{Hold: "start", End: spend.Release})
	h.ask(p, &spend.Reservation{Hold: "delete", Kind: "pod", Resource: "p1", Owner: ann, Free: true})
	h.settle(spend.Settlement{Hold: "delete", End: spend.Commit, Kind: "pod", Resource: "p1", Gone: true})
	h.counts(spend.Amounts{}, spend.Amounts{})
	if got := h.show(); len(got.Resources) != 0 || len(got.Holds) != 0 {
		h.Errorf("left are %v and %v, want nothing", got.Resources, got.Holds)
	}
}

func testRepeats(h *harness) {
	p := teamPerHour(usd)
	r := &spend.Reservation{Hold: "h", Kind: "pod", Owner: ann, After: pod(0.6 * usd)}
	for range 3 {
		h.status(h.ask(p, r), spend.Admitted)
	}
	h.counts(spend.Amounts{}, pod(0.6*usd))
	for range 3 {
		h.commit("h", "p1", pod(0.6*usd))
	}
	h.counts(pod(0.6*usd), spend.Amounts{})
	h.ask(p, &spend.Reservation{Hold: "d", Kind: "pod", Resource: "p1", Owner: ann, Free: true})
	for range 2 {
		h.settle(spend.Settlement{Hold: "d", End: spend.Commit, Resource: "p1", Gone: true})
	}
	h.commit("h", "p1", pod(0.6*usd)) // late
	h.counts(spend.Amounts{}, spend.Amounts{})
}

func testIntents(h *harness) {
	p := teamPerHour(3 * usd)
	row := func(id string) string { return fmt.Sprintf("{%q:1}", id) }
	note := func(id string, past ...string) *spend.IntentRecord {
		return &spend.IntentRecord{Org: h.org, Fingerprint: "wish", Lookalike: "like", Response: "answer", Intent: id, Row: row(id), Owner: "ann", Ignored: past}
	}
	ask := func(n *spend.IntentRecord) spend.Outcome {
		return h.ask(p, &spend.Reservation{Hold: n.Intent, Kind: "pod", Owner: ann, After: pod(0.6 * usd), Intent: n})
	}
	ending := func(id, was, row string) *spend.IntentUpdate {
		return &spend.IntentUpdate{Org: h.org, Created: "made", Fingerprint: "wish", Lookalike: "like", Response: "answer", Intent: id, OldRow: was, Row: row, SetCreated: true, UnsetLookalike: true}
	}
	two := pod(1.2 * usd)
	two[spend.GPUs], two[spend.Pods] = 2, 2
	first := ask(note("h"))
	h.status(first, spend.Admitted)
	h.status(ask(note("h")), spend.Admitted) // it is held already
	h.status(ask(note("i")), spend.Repeated)
	h.status(ask(note("i", "h")), spend.Admitted)
	h.counts(spend.Amounts{}, two)
	was := fmt.Sprintf("%d %s", first.Now.UnixMilli(), row("h"))
	h.settle(spend.Settlement{Hold: "h", End: spend.Commit, Kind: "pod", Resource: "p1", Amounts: pod(0.6 * usd), Intent: ending("h", was, "0 {}")})
	h.status(ask(note("j", "i")), spend.Repeated) // h goes on
	h.settle(spend.Settlement{Hold: "h", End: spend.Release, Intent: ending("h", was, "")})
	h.status(ask(note("j", "i")), spend.Repeated) // it is another row by now
	h.settle(spend.Settlement{Hold: "h", End: spend.Release, Intent: ending("h", "0 {}", "")})
	h.status(ask(note("j", "i")), spend.Admitted)
	h.counts(pod(0.6*usd), two)
}

func testEnded(h *harness) {
	h.settle(spend.Settlement{Hold: "h", End: spend.Release})
	h.status(h.ask(teamPerHour(usd), &spend.Reservation{Hold: "h", Kind: "pod", Owner: ann, After: pod(1)}), spend.Settled)
	h.counts(spend.Amounts{}, spend.Amounts{})
}

func testOpen(h *harness) {
	id, _ := h.reserve(teamPerHour(usd), pod(0.6*usd))
	h.settle(spend.Settlement{Hold: id, End: spend.Open, ResolveWithin: time.Minute})
	h.counts(spend.Amounts{}, pod(0.6*usd))
	s := h.show()
	if len(s.Holds) != 1 || !s.Holds[0].Open || s.Holds[0].Until.Sub(s.Holds[0].At) < time.Minute {
		h.Errorf("holds = %+v, want one that is open for a minute", s.Holds)
	}
	_, out := h.reserve(teamPerHour(usd), pod(0.6*usd))
	h.status(out, spend.Refused)
	h.commit(id, "p1", pod(0.6*usd))
	h.counts(pod(0.6*usd), spend.Amounts{})
}

func testHolder(h *harness) {
	by := spend.Holder{Incarnation: "01J", Gateway: "gw 1"}
	h.status(h.ask(teamPerHour(usd), &spend.Reservation{Hold: "h", Kind: "pod", Owner: ann, After: pod(1), Holder: by}), spend.Admitted)
	h.settle(spend.Settlement{Hold: "h", End: spend.Open, ResolveWithin: time.Minute})
	state, err := h.Store.Holds(h.Context(), h.org)
	if err != nil || len(state.Holds) != 1 || state.Holds[0].Holder != by {
		h.Errorf("Holds = %+v, %v, want one held by %+v", state.Holds, err, by)
	}
	if diff := cmp.Diff(h.show().Holds, state.Holds); diff != "" {
		h.Errorf("Holds and Show differ (-show +holds):\n%s", diff)
	}
}

func testFree(h *harness) {
	p := teamPerHour(usd)
	id, _ := h.reserve(p, pod(0.6*usd))
	h.commit(id, "p1", pod(2*usd)) // the platform made it dearer than it said
	out := h.ask(p, &spend.Reservation{Hold: "less", Resource: "p1", Owner: ann, After: pod(3 * usd), Free: true})
	h.status(out, spend.Admitted)
	h.counts(pod(2*usd), spend.Amounts{})
	_, out = h.reserve(p, spend.Amounts{spend.VolumeGB: 1})
	h.status(out, spend.Admitted) // raises no dimension that is limited
}

func testOverlap(h *harness) {
	p := teamPerHour(100 * usd)
	id, _ := h.reserve(p, pod(3))
	h.commit(id, "e1", pod(3))
	h.ask(p, &spend.Reservation{Hold: "a", Resource: "e1", Owner: ann, After: pod(10)})
	h.ask(p, &spend.Reservation{Hold: "b", Resource: "e1", Owner: ann, After: pod(5)})
	h.commit("a", "e1", pod(10))
	h.commit("b", "e1", pod(5)) // the platform may have carried out a last
	h.counts(pod(10), spend.Amounts{})
	h.ask(p, &spend.Reservation{Hold: "c", Resource: "e1", Owner: ann, After: pod(5), Free: true})
	h.commit("c", "e1", pod(5))
	h.counts(pod(5), spend.Amounts{})
}

func testOverlapGone(h *harness) {
	p := teamPerHour(100 * usd)
	id, _ := h.reserve(p, pod(3))
	h.commit(id, "p1", pod(3))
	h.ask(p, &spend.Reservation{Hold: "start", Resource: "p1", Owner: ann, After: pod(10)})
	h.ask(p, &spend.Reservation{Hold: "delete", Resource: "p1", Owner: ann, Free: true})
	h.settle(spend.Settlement{Hold: "delete", End: spend.Commit, Resource: "p1", Gone: true})
	h.counts(pod(3), spend.Amounts{spend.Burn: 7})
	h.settle(spend.Settlement{Hold: "start", End: spend.Release})
	h.counts(pod(3), spend.Amounts{})
}

func testWithoutHold(h *harness) {
	h.settle(spend.Settlement{Hold: "lost", End: spend.Commit, Kind: "pod", Resource: "p1", Owner: ann, Amounts: pod(5)})
	h.counts(pod(5), spend.Amounts{})
	h.settle(spend.Settlement{Hold: "lost too", End: spend.Commit, Kind: "pod", Resource: "p1", Owner: ann, Amounts: pod(4)})
	h.settle(spend.Settlement{Hold: "never", End: spend.Open})
	h.counts(pod(5), spend.Amounts{})
	h.ask(teamPerHour(usd), &spend.Reservation{Hold: "change", Resource: "p1", Owner: ann, After: pod(5), Free: true})
	h.settle(spend.Settlement{Hold: "lost three", End: spend.Commit, Kind: "pod", Resource: "p1", Owner: ann, Gone: true})
	h.counts(pod(5), spend.Amounts{}) // the change may have come last
	h.settle(spend.Settlement{Hold: "change", End: spend.Release})
	h.settle(spend.Settlement{Hold: "lost four", End: spend.Commit, Kind: "pod", Resource: "p1", Owner: ann, Gone: true})
	h.counts(spend.Amounts{}, spend.Amounts{})
}

func testAdjust(h *harness) {
	adjust := func(want bool, a spend.Adjustment) {
		h.Helper()
		a.Kind, a.Resource = "pod", "p1"
		if got, err := spend.Adjust(h.Context(), h.Store, h.org, &a); err != nil || got != want {
			h.Errorf("Adjust(%+v) = %t, %v, want %t", a, got, err, want)
		}
	}
	p := teamPerHour(100 * usd)
	adjust(false, spend.Adjustment{Gone: true})
	adjust(false, spend.Adjustment{Version: 7, Amounts: pod(1)})
	id, _ := h.reserve(p, pod(3))
	h.commit(id, "p1", pod(3))
	adjust(false, spend.Adjustment{Amounts: pod(9)}) // made for no record
	adjust(true, spend.Adjustment{Version: h.record("p1").Version, Amounts: pod(9)})
	h.counts(pod(9), spend.Amounts{})
	h.ask(p, &spend.Reservation{Hold: "start", Resource: "p1", Owner: ann, After: pod(10)})
	adjust(false, spend.Adjustment{Version: h.record("p1").Version, Gone: true}) // under way
	h.settle(spend.Settlement{Hold: "start", End: spend.Release})
	adjust(true, spend.Adjustment{Version: h.record("p1").Version, Gone: true})
	h.counts(spend.Amounts{}, spend.Amounts{})
}

func testRebuild(h *harness) {
	h.org = "another" // nothing is known of it
	p := teamPerHour(usd)
	r := &spend.Reservation{Hold: "h", Kind: "pod", Owner: ann, After: pod(1)}
	h.status(h.ask(p, r), spend.Closed)
	h.status(h.ask(p, &spend.Reservation{Hold: "stop", Owner: ann, Free: true}), spend.Admitted)
	complete := func() bool {
		h.Helper()
		_, complete, err := h.Store.Owners(h.Context(), h.org, []string{"p1"})
		if err != nil {
			h.Fatal(err)
		}
		return complete
	}
	if h.show().Complete || complete() {
		h.Error("the ledger is complete before it was built")
	}
	if done, err := h.Store.FinishRebuild(h.Context(), h.org, "mine"); err != nil || done {
		h.Errorf("Finish without Begin = %t, %v, want false", done, err)
	}
	if err := h.Store.BeginRebuild(h.Context(), h.org, "mine"); err != nil {
		h.Fatal(err)
	}
	if done, err := h.Store.FinishRebuild(h.Context(), h.org, "other"); err != nil || done {
		h.Errorf("Finish with another token = %t, %v, want false", done, err)
	}
	if done, err := h.Store.FinishRebuild(h.Context(), h.org, "mine"); err != nil || !done {
		h.Errorf("Finish = %t, %v, want true", done, err)
	}
	h.status(h.ask(p, r), spend.Admitted)
	if !h.show().Complete || !complete() {
		h.Error("the ledger is not complete after it was rebuilt")
	}
}

func testRace(h *harness) {
	p := teamPerHour(1.5 * usd)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			r := &spend.Reservation{Hold: fmt.Sprint("racer-", i), Kind: "pod", Owner: ann, After: pod(0.43 * usd), Limits: limits(p, ann)}
			out, err := h.Store.Reserve(h.Context(), h.org, r)
			if err != nil {
				h.Errorf("Reserve: %v", err)
			}
			if err == nil && out.Status == spend.Admitted {
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	if got := admitted.Load(); got != 3 {
		h.Errorf("%d of 50 were admitted, want the 3 that fit", got)
	}
	h.counts(spend.Amounts{}, spend.Amounts{1.29 * usd, 3, 3, 0, 0})
}

func testLargest(h *harness) {
	h.movable()
	h.set(time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC))
	h.org = "largest"
	h.rebuild()
	all := spend.Amounts{spend.MaxBurn - 1, spend.MaxCount, spend.MaxCount, spend.MaxCount, spend.MaxCount}
	id, _ := h.reserve(teamPerHour(spend.MaxBurn), all)
	h.commit(id, "p1", all)
	h.counts(all, spend.Amounts{})
	h.set(time.Date(2027, 3, 31, 23, 59, 59, 999e6, time.UTC))
	accrues := func(of time.Duration) int64 {
		product := new(big.Int).Mul(big.NewInt(spend.MaxBurn-1), big.NewInt((of - time.Millisecond).Milliseconds()))
		return product.Quo(product, big.NewInt(time.Hour.Milliseconds())).Int64()
	}
	h.accrued(accrues(24*time.Hour), accrues(31*24*time.Hour))
}

// testNotices: the last word under each name stays, until it is forgotten, for each
// organisation on its own.
func testNotices(h *harness) {
	notices := h.Store
	for _, n := range [][3]string{{"acme", "a", "1"}, {"acme", "b", "1"}, {"acme", "a", "2"}, {"acme", "b", ""}, {"other", "b", "3"}, {"acme", "c", ""}} {
		if err := notices.Notice(h.Context(), n[0], n[1], n[2]); err != nil {
			h.Fatalf("Notice(%q): %v", n, err)
		}
	}
	for org, want := range map[string]map[string]string{"acme": {"a": "2"}, "other": {"b": "3"}, "third": {}} {
		got, err := notices.Noticed(h.Context(), org)
		if err != nil {
			h.Fatalf("Noticed(%s): %v", org, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			h.Errorf("Noticed(%s), want-, got+:\n%s", org, diff)
		}
	}
}
