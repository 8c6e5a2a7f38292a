package storetest

import (
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// bob is another caller of ann's team.
var bob = ledger.Owner{Team: ann.Team, Key: "bob"}

func testMoveAccrual(h *harness) {
	version := int64(0)
	move := func(m ledger.AccrualMove) ledger.AccrualOutcome {
		h.Helper()
		m.Version = version
		out, err := h.Store.MoveAccrual(h.Context(), h.org, &m)
		if err != nil {
			h.Fatalf("MoveAccrual(%+v): %v", m, err)
		}
		version = h.tally().Version
		return out
	}
	if out := move(ledger.AccrualMove{From: "research", To: "science"}); out != (ledger.AccrualOutcome{}) {
		h.Errorf("nothing: %+v", out)
	}
	h.accrue(ann, 3*usd)
	h.accrue(bob, 2*usd)
	h.amend("a", bob, ledger.Correction, ledger.PeriodMonth, usd)
	amounts := ledger.Accrued{Day: 2 * usd, Week: 2 * usd, Month: 3 * usd, Quarter: 3 * usd, Total: 9 * usd} // more than the key has in total
	transfers := ledger.Transfers{{From: "research", To: "ops", Key: "bob", At: 1, Part: 2}}
	move(ledger.AccrualMove{From: "research", To: "ops", Key: "bob", Amounts: amounts, Transfers: transfers})
	moved := map[string][2]int64{
		"key ann": {3 * usd, 3 * usd}, "key bob": {2 * usd, 3 * usd}, "team research": {3 * usd, 3 * usd}, "team ops": {2 * usd, 3 * usd}, "organisation": {5 * usd, 6 * usd},
	}
	h.accruals("what a key has accrued", moved)
	if got := h.tally().Transfers; len(got) != 1 || got[0] != transfers[0] {
		h.Errorf("transfers: %+v, want %+v", got, transfers)
	}
	version--
	if out := move(ledger.AccrualMove{From: "research", To: "ops", Key: "bob", Amounts: amounts}); out.Status != ledger.AccrualConflict {
		h.Errorf("a move of an earlier version: %+v, want a conflict", out)
	}
	h.accruals("after a conflict", moved)
	h.run(&ledger.Plan{}, "under way", usd)
	move(ledger.AccrualMove{From: "research", To: "science"})
	h.accruals("everything", map[string][2]int64{
		"key ann": {3 * usd, 3 * usd}, "key bob": {2 * usd, 3 * usd}, "team research": {0, 0}, "team science": {3 * usd, 3 * usd}, "team ops": {2 * usd, 3 * usd}, "organisation": {5 * usd, 6 * usd},
	})
	h.settle(ledger.Settlement{Hold: "under way", End: ledger.Commit, WholeReservation: true})
	move(ledger.AccrualMove{From: "research", To: "science"})
	h.accruals("the rest", map[string][2]int64{
		"key ann": {4 * usd, 4 * usd}, "key bob": {2 * usd, 3 * usd}, "team science": {4 * usd, 4 * usd}, "team ops": {2 * usd, 3 * usd}, "organisation": {6 * usd, 7 * usd},
	})
}

// transfer moves bob between teams.
func (h *harness) transfer(from, to string, again bool) {
	h.Helper()
	r := &ledger.Reconciler{Deps: &ledger.Deps{History: &ledger.History{Store: h.Store, Retention: retention}}, Store: h.Store}
	if _, err := r.Move(h.Context(), h.org, ledger.Move{From: from, To: to, Key: bob.Key, Again: again}); err != nil {
		h.Fatalf("Move from %s to %s: %v", from, to, err)
	}
}

// teams fails unless the teams have accrued so much today and this month.
func (h *harness) teams(when string, want map[string]int64) {
	h.Helper()
	for id, micro := range want {
		if b := h.balance(ledger.Scope{Kind: ledger.KindTeam, ID: id}); b.Day != micro || b.Month != micro || b.Total != micro {
			h.Errorf("%s: team %s has %+v, want %d", when, id, b.Accrued, micro)
		}
	}
}

// testMoveAgain: a move takes what the key has accrued in the team that it leaves, however often the key moves or the move is repeated.
func testMoveAgain(h *harness) {
	h.roll()
	h.accrue(ann, 3*usd)
	h.accrue(bob, 2*usd)
	for range 2 {
		h.transfer("research", "ops", true)
		h.teams("a move, and its repetition", map[string]int64{"research": 3 * usd, "ops": 2 * usd})
	}
	h.accrue(bob, usd)
	h.transfer("research", "ops", true)
	h.teams("what was accrued meanwhile", map[string]int64{"research": 3 * usd, "ops": 3 * usd})
	h.accrue(ledger.Owner{Team: "ops", Key: "bob"}, 4*usd)
	h.transfer("research", "ops", true)
	h.teams("what was accrued in the new team", map[string]int64{"research": 3 * usd, "ops": 7 * usd})
	h.transfer("ops", "research", false)
	h.teams("back", map[string]int64{"research": 10 * usd, "ops": 0})
	h.accrue(bob, usd)
	for range 2 {
		h.transfer("research", "ops", false)
		h.teams("the first move again", map[string]int64{"research": 3 * usd, "ops": 8 * usd})
	}
}

// testMoveLater: what a key accrues in its new team before its move does not count as the former team's.
func testMoveLater(h *harness) {
	h.roll()
	h.accrue(ann, 3*usd)
	h.accrue(bob, usd)
	h.accrue(ledger.Owner{Team: "ops", Key: "bob"}, 2*usd)
	h.amend("a", bob, ledger.Credit, ledger.PeriodDay, 0.4*usd)
	h.roll()
	h.transfer("research", "ops", false)
	h.teams("a late move", map[string]int64{"research": 3 * usd, "ops": 2.6 * usd})
}

// testMovePeriods: a move takes what was accrued in each period, from roll-ups of hours and of days.
func testMovePeriods(h *harness) {
	h.movable()
	h.in("America/Los_Angeles") // the second quarter begins at 07:00 in UTC
	h.roll()
	history := &ledger.History{Store: h.Store, Retention: ledger.Retention{Hourly: 40, Daily: 60}}
	for _, at := range []string{"2027-03-28 12:00:00", "2027-04-01 06:30:00", "2027-04-01 07:30:00", "2027-05-01 12:00:00", "2027-05-02 06:30:00", "2027-05-02 07:30:00"} {
		h.set(h.moment(at))
		h.accrue(ann, 10*usd)
		h.accrue(bob, usd)
		if err := history.RollUp(h.Context(), h.org); err != nil {
			h.Fatalf("RollUp: %v", err)
		}
	}
	r := &ledger.Reconciler{Deps: &ledger.Deps{History: history}, Store: h.Store}
	out, err := r.Move(h.Context(), h.org, ledger.Move{From: "research", To: "ops", Key: bob.Key})
	if want := (ledger.Accrued{Day: usd, Week: 3 * usd, Month: 3 * usd, Quarter: 4 * usd, Total: 6 * usd}); err != nil || out.Accrued != want {
		h.Errorf("moved %+v, %v, want %+v", out.Accrued, err, want)
	}
}

// testMoveBilled: bills of the hours before a move correct the team to which the costs were moved.
func testMoveBilled(h *harness) {
	h.movable()
	h.roll()
	for _, o := range []ledger.Owner{ann, bob} {
		h.settle(ledger.Settlement{Hold: o.Key, End: ledger.Commit, Kind: "pod", Resource: o.Key, Owner: o, Amounts: pod(usd)})
	}
	s := new(statement)
	b := h.follower(s)
	h.follow(b) // from 13:00 on
	h.advance(150 * time.Minute)
	h.transfer("research", "ops", false)
	h.teams("the move", map[string]int64{"research": 2.5 * usd, "ops": 2.5 * usd})
	for hour := range 3 {
		s.charge("ann", operation.KindPod, hour, usd)
		s.charge("bob", operation.KindPod, hour, 0.25*usd)
	}
	h.set(start.Add(5 * time.Hour)) // 13:00 and 14:00 have closed: bob was moved at 14:30
	h.follow(b)
	h.teams("the bills", map[string]int64{"research": 5 * usd, "ops": 3.5 * usd})
	h.transfer("ops", "research", true)
	h.teams("back", map[string]int64{"research": 8.5 * usd, "ops": 0})
}
