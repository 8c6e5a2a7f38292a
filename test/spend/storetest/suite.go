package storetest

import (
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Fixture is a store under test.
type Fixture struct {
	// Store is empty.
	Store ledger.Store
	// SetTime moves the store's clock. Nil: the clock cannot be moved, and the cases
	// that need that are left out.
	SetTime func(time.Time)
}

// Test runs the suite; newFixture is called once for each case, with the zones that
// the store is to ask for.
func Test(t *testing.T, newFixture func(t *testing.T, zones ledger.Zones) Fixture) {
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
		{"an open hold is taken over", testTakeOver},
		{"a hold names its holder", testHolder},
		{"owners", testOwners},
		{"what was found meanwhile goes to who asked for it", testTransfer},
		{"a resource gets another owner", testAssign},
		{"jobs have owners", testJobs},
		{"a lowering is free", testFree},
		{"changes that overlap lower nothing", testOverlap},
		{"a removal that overlaps", testOverlapGone},
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
		{"accrual after the clock was set back", testClockSetBack},
		{"periods", testPeriods},
		{"next period", testNextPeriod},
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
		{"adjusted accruals of a team and its key", testAdjustAccrualOfTeamAndKey},
		{"adjusted accruals of each period", testAdjustPeriods},
		{"accruals that move", testMoveAccrual},
		{"accruals that move again", testMoveAgain},
		{"accruals that move later", testMoveLater},
		{"accruals of each period that move", testMovePeriods},
		{"bills after a move", testMoveBilled},
		{"ids of adjusted accruals", testAccrualIDs},
		{"adjustments in the history", testAdjustmentHistory},
		{"bills after an adjustment", testAdjustmentBilled},
		{"bills after opposite adjustments", testOppositeAdjustmentBilled},
		{"bills after an adjustment in a zone", testAdjustmentBilledInZone},
		{"notices", testNotices},
		{"model", testModel},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &harness{T: t, org: "acme", at: start}
			h.Fixture = newFixture(t, func(string) ledger.Zone { return h.zone })
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
	zone ledger.Zone
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
		h.status(out, ledger.Admitted)
		holds = append(holds, id)
	}
	_, out := h.reserve(p, pod(0.43*usd))
	h.status(out, ledger.Refused)
	if out.Scope != 1 || out.Ceiling != ledger.PerHour {
		h.Errorf("refused by scope %d, ceiling %d, want the team's per_hour", out.Scope, out.Ceiling)
	}
	if got, want := out.Levels[1][ledger.PerHour], (ledger.Level{Reserved: 1.29 * usd, Needs: 0.43 * usd}); got != want {
		h.Errorf("level = %+v, want %+v", got, want)
	}
	h.settle(ledger.Settlement{Hold: holds[0], End: ledger.Release})
	_, out = h.reserve(p, pod(0.43*usd))
	h.status(out, ledger.Admitted)
	h.counts(ledger.Amounts{}, ledger.Amounts{1.29 * usd, 3, 3, 0, 0})
}

func testCeilings(h *harness) {
	for _, tt := range []struct {
		budget  ledger.Budget
		after   ledger.Amounts
		ceiling int
	}{
		{ledger.Budget{PerHour: 10}, ledger.Amounts{ledger.Burn: 11}, ledger.PerHour},
		// However little is left of the period.
		{ledger.Budget{PerDay: 10}, ledger.Amounts{ledger.Burn: usd}, ledger.PerDay},
		{ledger.Budget{PerWeek: 10}, ledger.Amounts{ledger.Burn: usd}, ledger.PerWeek},
		{ledger.Budget{PerMonth: 10}, ledger.Amounts{ledger.Burn: usd}, ledger.PerMonth},
		{ledger.Budget{PerQuarter: 10}, ledger.Amounts{ledger.Burn: usd}, ledger.PerQuarter},
		{ledger.Budget{Total: 10}, ledger.Amounts{ledger.Burn: usd}, ledger.InTotal},
		{ledger.Budget{GPUs: 2}, ledger.Amounts{ledger.GPUs: 3}, ledger.CeilingGPUs},
		{ledger.Budget{Pods: 2}, ledger.Amounts{ledger.Pods: 3}, ledger.CeilingPods},
		{ledger.Budget{Workers: 2}, ledger.Amounts{ledger.Workers: 3}, ledger.CeilingWorkers},
		{ledger.Budget{VolumeGB: 2}, ledger.Amounts{ledger.VolumeGB: 3}, ledger.CeilingVolumeGB},
	} {
		for scope, p := range []*ledger.Plan{
			{Keys: map[string]ledger.Budget{"ann": tt.budget}},
			{Teams: map[string]ledger.Budget{"research": tt.budget}},
			{Org: tt.budget},
		} {
			_, out := h.reserve(p, tt.after)
			if out.Status != ledger.Refused || out.Scope != scope || out.Ceiling != tt.ceiling {
				h.Errorf("%+v of scope %d: %d by scope %d, ceiling %d", tt.budget, scope, out.Status, out.Scope, out.Ceiling)
			}
		}
	}
	h.counts(ledger.Amounts{}, ledger.Amounts{})
}

func testCommit(h *harness) {
	p := teamPerHour(usd)
	id, _ := h.reserve(p, pod(0.43*usd))
	h.commit(id, "p1", pod(0.40*usd))
	h.counts(pod(0.40*usd), ledger.Amounts{})
	stop := h.ask(p, &ledger.Reservation{Hold: "stop", Kind: "pod", Resource: "p1", Owner: ann, Free: true})
	h.status(stop, ledger.Admitted)
	h.commit("stop", "p1", ledger.Amounts{ledger.Burn: 100, ledger.Pods: 1})
	h.counts(ledger.Amounts{ledger.Burn: 100, ledger.Pods: 1}, ledger.Amounts{})
	h.ask(p, &ledger.Reservation{Hold: "start", Kind: "pod", Resource: "p1", Owner: ann, After: pod(0.43 * usd)})
	h.counts(ledger.Amounts{ledger.Burn: 100, ledger.Pods: 1}, ledger.Amounts{ledger.Burn: 0.43*usd - 100, ledger.GPUs: 1})
	h.settle(ledger.Settlement{Hold: "start", End: ledger.Release})
	h.ask(p, &ledger.Reservation{Hold: "delete", Kind: "pod", Resource: "p1", Owner: ann, Free: true})
	h.settle(ledger.Settlement{Hold: "delete", End: ledger.Commit, Kind: "pod", Resource: "p1", Gone: true})
	h.counts(ledger.Amounts{}, ledger.Amounts{})
	if got := h.show(); len(got.Resources) != 0 || len(got.Holds) != 0 {
		h.Errorf("left are %v and %v, want nothing", got.Resources, got.Holds)
	}
}

func testRepeats(h *harness) {
	p := teamPerHour(usd)
	r := &ledger.Reservation{Hold: "h", Kind: "pod", Owner: ann, After: pod(0.6 * usd)}
	for range 3 {
		h.status(h.ask(p, r), ledger.Admitted)
	}
	h.counts(ledger.Amounts{}, pod(0.6*usd))
	for range 3 {
		h.commit("h", "p1", pod(0.6*usd))
	}
	h.counts(pod(0.6*usd), ledger.Amounts{})
	h.ask(p, &ledger.Reservation{Hold: "d", Kind: "pod", Resource: "p1", Owner: ann, Free: true})
	for range 2 {
		h.settle(ledger.Settlement{Hold: "d", End: ledger.Commit, Resource: "p1", Gone: true})
	}
	h.commit("h", "p1", pod(0.6*usd)) // late
	h.counts(ledger.Amounts{}, ledger.Amounts{})
}

func testIntents(h *harness) {
	p := teamPerHour(3 * usd)
	row := func(id string) string { return fmt.Sprintf("{%q:1}", id) }
	note := func(id string, past ...string) *ledger.IntentRecord {
		return &ledger.IntentRecord{Org: h.org, Fingerprint: "wish", Lookalike: "like", Response: "answer", Intent: id, Row: row(id), Owner: "ann", Ignored: past}
	}
	ask := func(n *ledger.IntentRecord) ledger.Outcome {
		return h.ask(p, &ledger.Reservation{Hold: n.Intent, Kind: "pod", Owner: ann, After: pod(0.6 * usd), Intent: n})
	}
	ending := func(id, was, row string) *ledger.IntentUpdate {
		return &ledger.IntentUpdate{Org: h.org, Created: "made", Fingerprint: "wish", Lookalike: "like", Response: "answer", Intent: id, OldRow: was, Row: row, SetCreated: true, UnsetLookalike: true}
	}
	two := pod(1.2 * usd)
	two[ledger.GPUs], two[ledger.Pods] = 2, 2
	first := ask(note("h"))
	h.status(first, ledger.Admitted)
	h.status(ask(note("h")), ledger.Admitted) // it is held already
	h.status(ask(note("i")), ledger.Repeated)
	h.status(ask(note("i", "h")), ledger.Admitted)
	h.counts(ledger.Amounts{}, two)
	was := fmt.Sprintf("%d %s", first.Now.UnixMilli(), row("h"))
	h.settle(ledger.Settlement{Hold: "h", End: ledger.Commit, Kind: "pod", Resource: "p1", Amounts: pod(0.6 * usd), Intent: ending("h", was, "0 {}")})
	h.status(ask(note("j", "i")), ledger.Repeated) // h goes on
	h.settle(ledger.Settlement{Hold: "h", End: ledger.Release, Intent: ending("h", was, "")})
	h.status(ask(note("j", "i")), ledger.Repeated) // it is another row by now
	h.settle(ledger.Settlement{Hold: "h", End: ledger.Release, Intent: ending("h", "0 {}", "")})
	h.status(ask(note("j", "i")), ledger.Admitted)
	h.counts(pod(0.6*usd), two)
}

func testEnded(h *harness) {
	h.settle(ledger.Settlement{Hold: "h", End: ledger.Release})
	h.status(h.ask(teamPerHour(usd), &ledger.Reservation{Hold: "h", Kind: "pod", Owner: ann, After: pod(1)}), ledger.Settled)
	h.counts(ledger.Amounts{}, ledger.Amounts{})
}

func testOpen(h *harness) {
	id, _ := h.reserve(teamPerHour(usd), pod(0.6*usd))
	h.settle(ledger.Settlement{Hold: id, End: ledger.Open, ResolveWithin: time.Minute})
	h.counts(ledger.Amounts{}, pod(0.6*usd))
	s := h.show()
	if len(s.Holds) != 1 || !s.Holds[0].Open || s.Holds[0].Until.Sub(s.Holds[0].At) < time.Minute {
		h.Errorf("holds = %+v, want one that is open for a minute", s.Holds)
	}
	_, out := h.reserve(teamPerHour(usd), pod(0.6*usd))
	h.status(out, ledger.Refused)
	h.commit(id, "p1", pod(0.6*usd))
	h.counts(pod(0.6*usd), ledger.Amounts{})
}

func testTakeOver(h *harness) {
	p := teamPerHour(usd)
	id, _ := h.reserve(p, ledger.Amounts{ledger.Pods: 1})
	h.commit(id, "p1", ledger.Amounts{ledger.Pods: 1})
	start := func(id string, burn int64) ledger.Outcome {
		h.Helper()
		return h.ask(p, &ledger.Reservation{Hold: id, Kind: "pod", Resource: "p1", Owner: ann, After: pod(burn)})
	}
	stopped, runs := ledger.Amounts{ledger.Pods: 1}, func(burn int64) ledger.Amounts { return ledger.Amounts{ledger.Burn: burn, ledger.GPUs: 1} }
	h.status(start("lost", 0.6*usd), ledger.Admitted)
	h.status(start("racing", 0.6*usd), ledger.Refused) // the first call is in progress
	h.settle(ledger.Settlement{Hold: "lost", End: ledger.Open, ResolveWithin: time.Minute})
	h.status(start("more", 1.1*usd), ledger.Refused)
	h.status(start("again", 0.8*usd), ledger.Admitted)
	h.status(start("again", 0.8*usd), ledger.Admitted)
	h.status(start("racing too", 0.6*usd), ledger.Refused)
	h.counts(stopped, runs(0.8*usd))
	for range 2 {
		h.settle(ledger.Settlement{Hold: "again", End: ledger.Release}) // the lost call may have started the pod
		h.counts(stopped, runs(0.8*usd))
	}
	if s := h.show(); len(s.Holds) != 1 || !s.Holds[0].Open || s.Holds[0].Until.Sub(s.Holds[0].At) < 50*time.Second {
		h.Errorf("holds = %+v, want one that is open for a minute", s.Holds)
	}
	h.status(start("less", 0.7*usd), ledger.Refused) // does not cover what may run
	h.status(start("third", 0.9*usd), ledger.Admitted)
	h.commit("third", "p1", pod(0.9*usd))
	h.settle(ledger.Settlement{Hold: "lost", End: ledger.Commit, Kind: "pod", Resource: "p1", Amounts: stopped}) // late
	h.counts(pod(0.9*usd), ledger.Amounts{})
	if s := h.show(); len(s.Holds) != 0 || s.Resources[0].Pending != 0 {
		h.Errorf("left are %+v about %+v, want no hold", s.Holds, s.Resources)
	}
}

func testHolder(h *harness) {
	by := ledger.Holder{Incarnation: "01J", Gateway: "gw 1"}
	h.status(h.ask(teamPerHour(usd), &ledger.Reservation{Hold: "h", Kind: "pod", Owner: ann, After: pod(1), Holder: by}), ledger.Admitted)
	h.settle(ledger.Settlement{Hold: "h", End: ledger.Open, ResolveWithin: time.Minute})
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
	out := h.ask(p, &ledger.Reservation{Hold: "less", Resource: "p1", Owner: ann, After: pod(3 * usd), Free: true})
	h.status(out, ledger.Admitted)
	h.counts(pod(2*usd), ledger.Amounts{})
	_, out = h.reserve(p, ledger.Amounts{ledger.VolumeGB: 1})
	h.status(out, ledger.Admitted) // raises no dimension that is limited
}

func testOverlap(h *harness) {
	p := teamPerHour(100 * usd)
	id, _ := h.reserve(p, pod(3))
	h.commit(id, "e1", pod(3))
	h.ask(p, &ledger.Reservation{Hold: "a", Resource: "e1", Owner: ann, After: pod(10)})
	h.ask(p, &ledger.Reservation{Hold: "b", Resource: "e1", Owner: ann, After: pod(5)})
	h.commit("a", "e1", pod(10))
	h.commit("b", "e1", pod(5)) // the platform may have carried out a last
	h.counts(pod(10), ledger.Amounts{})
	h.ask(p, &ledger.Reservation{Hold: "c", Resource: "e1", Owner: ann, After: pod(5), Free: true})
	h.commit("c", "e1", pod(5))
	h.counts(pod(5), ledger.Amounts{})
}

func testOverlapGone(h *harness) {
	p := teamPerHour(100 * usd)
	id, _ := h.reserve(p, pod(3))
	h.commit(id, "p1", pod(3))
	h.ask(p, &ledger.Reservation{Hold: "start", Kind: "pod", Resource: "p1", Owner: ann, After: pod(10)})
	for _, kind := range []string{"endpoint", "pod"} {
		h.counts(pod(3), ledger.Amounts{ledger.Burn: 7})
		h.ask(p, &ledger.Reservation{Hold: "delete " + kind, Kind: kind, Resource: "p1", Owner: ann, Free: true})
		h.settle(ledger.Settlement{Hold: "delete " + kind, End: ledger.Commit, Kind: kind, Resource: "p1", Gone: true})
	}
	h.counts(ledger.Amounts{}, ledger.Amounts{ledger.Burn: 7})
	h.commit("start", "p1", pod(10)) // late
	h.counts(ledger.Amounts{}, ledger.Amounts{})
}

func testWithoutHold(h *harness) {
	h.settle(ledger.Settlement{Hold: "lost", End: ledger.Commit, Kind: "pod", Resource: "p1", Owner: ann, Amounts: pod(5)})
	h.counts(pod(5), ledger.Amounts{})
	h.settle(ledger.Settlement{Hold: "lost too", End: ledger.Commit, Kind: "pod", Resource: "p1", Owner: ann, Amounts: pod(4)})
	h.settle(ledger.Settlement{Hold: "never", End: ledger.Open})
	h.counts(pod(5), ledger.Amounts{})
	h.ask(teamPerHour(usd), &ledger.Reservation{Hold: "change", Resource: "p1", Owner: ann, After: pod(5), Free: true})
	h.settle(ledger.Settlement{Hold: "lost three", End: ledger.Commit, Kind: "pod", Resource: "p1", Owner: ann, Gone: true})
	h.counts(ledger.Amounts{}, ledger.Amounts{})
	h.settle(ledger.Settlement{Hold: "change", End: ledger.Release})
	h.counts(ledger.Amounts{}, ledger.Amounts{})
}

func testAdjust(h *harness) {
	adjust := func(want bool, a ledger.Adjustment) {
		h.Helper()
		a.Kind, a.Resource = "pod", "p1"
		if got, err := ledger.Adjust(h.Context(), h.Store, h.org, &a); err != nil || got != want {
			h.Errorf("Adjust(%+v) = %t, %v, want %t", a, got, err, want)
		}
	}
	p := teamPerHour(100 * usd)
	adjust(false, ledger.Adjustment{Gone: true})
	adjust(false, ledger.Adjustment{Version: 7, Amounts: pod(1)})
	id, _ := h.reserve(p, pod(3))
	h.commit(id, "p1", pod(3))
	adjust(false, ledger.Adjustment{Amounts: pod(9)}) // made for no record
	adjust(true, ledger.Adjustment{Version: h.record("p1").Version, Amounts: pod(9)})
	h.counts(pod(9), ledger.Amounts{})
	h.ask(p, &ledger.Reservation{Hold: "start", Resource: "p1", Owner: ann, After: pod(10)})
	adjust(false, ledger.Adjustment{Version: h.record("p1").Version, Gone: true}) // under way
	h.settle(ledger.Settlement{Hold: "start", End: ledger.Release})
	adjust(true, ledger.Adjustment{Version: h.record("p1").Version, Gone: true})
	h.counts(ledger.Amounts{}, ledger.Amounts{})
}

func testRebuild(h *harness) {
	h.org = "another" // nothing is known of it
	p := teamPerHour(usd)
	r := &ledger.Reservation{Hold: "h", Kind: "pod", Owner: ann, After: pod(1)}
	h.status(h.ask(p, r), ledger.Closed)
	h.status(h.ask(p, &ledger.Reservation{Hold: "stop", Owner: ann, Free: true}), ledger.Admitted)
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
	h.status(h.ask(p, r), ledger.Admitted)
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
			r := &ledger.Reservation{Hold: fmt.Sprint("racer-", i), Kind: "pod", Owner: ann, After: pod(0.43 * usd), Limits: limits(p, ann)}
			out, err := h.Store.Reserve(h.Context(), h.org, r)
			if err != nil {
				h.Errorf("Reserve: %v", err)
			}
			if err == nil && out.Status == ledger.Admitted {
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	if got := admitted.Load(); got != 3 {
		h.Errorf("%d of 50 were admitted, want the 3 that fit", got)
	}
	h.counts(ledger.Amounts{}, ledger.Amounts{1.29 * usd, 3, 3, 0, 0})
}

func testLargest(h *harness) {
	h.movable()
	h.set(time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC))
	h.org = "largest"
	h.rebuild()
	all := ledger.Amounts{ledger.MaxBurn - 1, ledger.MaxCount, ledger.MaxCount, ledger.MaxCount, ledger.MaxCount}
	id, _ := h.reserve(teamPerHour(ledger.MaxBurn), all)
	h.commit(id, "p1", all)
	h.counts(all, ledger.Amounts{})
	h.set(time.Date(2027, 3, 31, 23, 59, 59, 999e6, time.UTC))
	accrues := func(of time.Duration) int64 {
		product := new(big.Int).Mul(big.NewInt(ledger.MaxBurn-1), big.NewInt((of - time.Millisecond).Milliseconds()))
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
