package storetest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// accrue lets an owner's run cost an amount once.
func (h *harness) accrue(o ledger.Owner, micro int64) {
	h.Helper()
	h.n++
	id := fmt.Sprintf("run-%d", h.n)
	h.ask(&ledger.Plan{}, &ledger.Reservation{Hold: id, Kind: "job", Owner: o, After: ledger.Amounts{ledger.Cost: micro}, Metadata: ledger.Metadata{Name: "model"}})
	h.settle(ledger.Settlement{Hold: id, End: ledger.Commit, WholeReservation: true})
}

// amend makes an adjustment of an owner.
func (h *harness) amend(id string, o ledger.Owner, kind ledger.AccrualKind, period ledger.AccrualPeriod, micro int64) ledger.AccrualOutcome {
	h.Helper()
	out, err := h.Store.AdjustAccrual(h.Context(), h.org, &ledger.AccrualAdjustment{ID: id, Owner: o, Kind: kind, Period: period, Micro: micro, Reason: "a wrong price"})
	if err != nil {
		h.Fatalf("AdjustAccrual(%s): %v", id, err)
	}
	return out
}

// accruals fails unless the scopes have accrued so much in the day and in the month.
func (h *harness) accruals(when string, want map[string][2]int64) {
	h.Helper()
	got := make(map[string][2]int64)
	for _, b := range h.show().Balances {
		got[b.Scope.String()] = [2]int64{b.Day, b.Month}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("%s, want-, got+:\n%s", when, diff)
	}
}

// every is the same amount in every period.
func every(micro int64) ledger.Accrued {
	return ledger.Accrued{Day: micro, Week: micro, Month: micro, Quarter: micro, Total: micro}
}

var (
	team = ledger.Owner{Team: ann.Team}
	all  = ledger.Owner{}
)

func testAdjustAccrual(h *harness) {
	const key, research, organisation = "key ann", "team research", "organisation"
	h.accrue(ann, 10*usd)
	out := h.amend("a", ann, ledger.Credit, ledger.PeriodDay, 3*usd)
	want := ledger.AccrualOutcome{Change: every(-3 * usd), Accrued: every(7 * usd)}
	if out != want {
		h.Errorf("a credit: %+v, want %+v", out, want)
	}
	h.accruals("a credit of the day counts in the month and in all scopes", map[string][2]int64{key: {7 * usd, 7 * usd}, research: {7 * usd, 7 * usd}, organisation: {7 * usd, 7 * usd}})
	want.Status = ledger.AccrualRepeated
	if out := h.amend("a", ann, ledger.Credit, ledger.PeriodDay, 3*usd); out != want {
		h.Errorf("the same again: %+v, want %+v", out, want)
	}
	for _, other := range []ledger.AccrualOutcome{h.amend("a", ann, ledger.Credit, ledger.PeriodDay, 2*usd), h.amend("a", team, ledger.Credit, ledger.PeriodDay, 3*usd), h.amend("a", ann, ledger.Credit, ledger.PeriodMonth, 3*usd)} {
		if other.Status != ledger.AccrualConflict {
			h.Errorf("another adjustment with the id: %+v, want a conflict", other)
		}
	}
	h.amend("b", team, ledger.Correction, ledger.PeriodMonth, -2*usd)
	h.amend("c", team, ledger.Correction, ledger.PeriodDay, usd)
	h.accruals("corrections of the team", map[string][2]int64{key: {7 * usd, 7 * usd}, research: {8 * usd, 6 * usd}, organisation: {8 * usd, 6 * usd}})
	if out := h.amend("d", team, ledger.Credit, ledger.PeriodDay, 6*usd+1); out.Status != ledger.AccrualBelowZero || out.Day != 8*usd || out.Month != 6*usd {
		h.Errorf("more than has accrued: %+v, want a refusal with what has", out)
	}
	h.amend("d", all, ledger.Reset, ledger.PeriodDay, 0)
	h.accruals("the day of the organisation", map[string][2]int64{key: {7 * usd, 7 * usd}, research: {8 * usd, 6 * usd}, organisation: {0, 0}})
	h.amend("e", ann, ledger.Reset, ledger.PeriodMonth, 0)
	h.accruals("the month of the key", map[string][2]int64{key: {0, 0}, research: {usd, 0}, organisation: {0, 0}})
	if out := h.amend("f", ledger.Owner{Team: "new"}, ledger.Reset, ledger.PeriodDay, 0); out != (ledger.AccrualOutcome{}) {
		h.Errorf("nothing: %+v", out)
	}
	h.accrue(ann, usd)
	h.status(h.run(perDay(3*usd), "g", usd), ledger.Admitted)
	h.status(h.run(perDay(3*usd), "i", usd), ledger.Refused) // two have accrued, and one is reserved
}

// What was subtracted from a team is not subtracted from the organisation again when it is subtracted from a key of the team.
func testAdjustAccrualOfTeamAndKey(h *harness) {
	other := ledger.Owner{Team: "ops", Key: "bob"}
	h.roll()
	h.accrue(ann, 10*usd)
	h.accrue(other, 5*usd)
	h.amend("a", team, ledger.Credit, ledger.PeriodDay, 8*usd)
	out := h.amend("b", ann, ledger.Reset, ledger.PeriodDay, 0)
	if want := (ledger.AccrualOutcome{Change: every(-10 * usd)}); out != want {
		h.Errorf("the reset of the key: %+v, want %+v", out, want)
	}
	h.accruals("a credit of the team, and a reset of its key", map[string][2]int64{
		"key ann": {0, 0}, "team research": {0, 0}, "key bob": {5 * usd, 5 * usd}, "team ops": {5 * usd, 5 * usd}, "organisation": {5 * usd, 5 * usd},
	})
	h.roll()
	if _, sum := h.adjustments(); sum != 5*usd {
		h.Errorf("the history has %d micro-dollars, want as much as the organisation accrued", sum)
	}
}

// adjustments are the items of adjustments in the history of the day, with their sums, and the sum of the history.
func (h *harness) adjustments() (items map[string]int64, sum int64) {
	h.Helper()
	rows, err := h.Store.Rollups(h.Context(), h.org, ledger.Daily, []time.Time{ledger.Daily.Start(h.show().Now)})
	if err != nil {
		h.Fatalf("Rollups: %v", err)
	}
	items = make(map[string]int64)
	for _, r := range rows {
		if i := r.Item; i.Kind == ledger.KindAdjustment {
			items[fmt.Sprintf("%s %s/%s %s (%s)", i.Resource, i.Team, i.Key, i.Name, i.Period)] += r.Micro
		}
		sum += r.Micro
	}
	return items, sum
}

func testAdjustmentHistory(h *harness) {
	h.roll()
	h.accrue(ann, 5*usd)
	h.amend("a", ann, ledger.Credit, ledger.PeriodDay, 2*usd)
	h.amend("a", ann, ledger.Credit, ledger.PeriodDay, 2*usd)
	h.amend("b", team, ledger.Correction, ledger.PeriodMonth, 0.5*usd)
	h.amend("c", all, ledger.Reset, ledger.PeriodDay, 0)
	h.roll()
	want := map[string]int64{
		"a research/ann credit: a wrong price (day)": -2 * usd, "b research/ correction: a wrong price (month)": 0.5 * usd, "c / reset: a wrong price (day)": -3 * usd,
	}
	got, sum := h.adjustments()
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("adjustments, want-, got+:\n%s", diff)
	}
	if month := h.balance(ledger.Scope{Kind: ledger.KindOrg}).Month; sum != month {
		h.Errorf("the history has %d, and %d have accrued", sum, month)
	}
}

// testAdjustmentBilled: a bill that corrects the mistake that was adjusted takes the adjustment back, and nothing is
// corrected twice.
func testAdjustmentBilled(h *harness) {
	h.movable()
	h.roll()
	h.running() // a dollar per hour
	s := new(statement)
	b := h.follower(s)
	h.follow(b) // from 13:00 on
	h.set(start.Add(4 * time.Hour))
	for hour := range 4 {
		s.charge("p1", operation.KindPod, hour, 0.4*usd)
	}
	h.amend("a", team, ledger.Credit, ledger.PeriodDay, 0.9*usd)
	h.amend("b", ledger.Owner{Team: "other"}, ledger.Correction, ledger.PeriodDay, usd)
	h.amend("c", team, ledger.Credit, ledger.PeriodMonth, 0.1*usd)
	h.set(start.Add(5 * time.Hour)) // 13:00 and 14:00 have closed: 0.6 USD each were too much
	h.follow(b)
	h.set(start.Add(6 * time.Hour))
	h.follow(b)
	got, _ := h.adjustments()
	want := map[string]int64{"a research/ credit: a wrong price (day)": 0, "b other/ correction: a wrong price (day)": usd, "c research/ credit: a wrong price (month)": -0.1 * usd}
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("adjustments, want-, got+:\n%s", diff)
	}
	const billed = 6*usd - 3*0.6*usd
	h.accruals("by the bills", map[string][2]int64{
		"key ann": {billed, billed}, "team research": {billed, billed - 0.1*usd}, "team other": {usd, usd}, "organisation": {billed + usd, billed + 0.9*usd},
	})
}

// testOppositeAdjustmentBilled: a bill takes back adjustments of its own direction only, even if they are larger than its correction.
func testOppositeAdjustmentBilled(h *harness) {
	h.movable()
	h.roll()
	h.running() // a dollar per hour
	s := new(statement)
	b := h.follower(s)
	h.follow(b) // from 13:00 on
	h.set(start.Add(4 * time.Hour))
	s.charge("p1", operation.KindPod, 1, 0.4*usd)
	h.amend("a", team, ledger.Correction, ledger.PeriodDay, -2*usd)
	h.amend("b", team, ledger.Correction, ledger.PeriodDay, usd)
	h.follow(b)
	got, _ := h.adjustments()
	want := map[string]int64{"a research/ correction: a wrong price (day)": -1.4 * usd, "b research/ correction: a wrong price (day)": usd}
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("adjustments, want-, got+:\n%s", diff)
	}
}

// testAdjustmentBilledInZone: the day of an adjustment is a day of the organisation's zone, as the day of its cost is.
func testAdjustmentBilledInZone(h *harness) {
	h.movable()
	h.in("America/Los_Angeles")
	h.set(h.moment("2027-03-15 22:00:00")) // 15:00 there
	h.roll()
	h.running() // a dollar per hour
	s := new(statement)
	b := h.follower(s)
	h.follow(b)                            // from 23:00 on
	h.set(h.moment("2027-03-16 00:30:00")) // the next day in UTC
	h.amend("a", team, ledger.Credit, ledger.PeriodDay, 0.6*usd)
	s.bills = append(s.bills, ledger.Bill{Resource: "p1", Kind: operation.KindPod, Hour: h.moment("2027-03-15 23:00:00"), Micro: 0.4 * usd})
	h.set(h.moment("2027-03-16 02:00:00"))
	h.follow(b)
	if got := h.balance(each()[1]).Day; got != 3.4*usd {
		h.Errorf("the day of the team has %d, want %d: the bill replaces the credit", got, int64(3.4*usd))
	}
	h.set(h.moment("2027-03-16 08:30:00")) // the next day there
	h.amend("b", team, ledger.Credit, ledger.PeriodDay, 0.6*usd)
	s.bills = append(s.bills, ledger.Bill{Resource: "p1", Kind: operation.KindPod, Hour: h.moment("2027-03-16 00:00:00"), Micro: 0.4 * usd})
	before := h.balance(each()[1])
	h.follow(b)
	if got := h.balance(each()[1]); got.Day != before.Day || got.Month != before.Month-0.6*usd {
		h.Errorf("the team has %+v, and had %+v: the bill of a day does not replace the credit of another", got.Accrued, before.Accrued)
	}
}

// testAccrualIDs: the id of an adjustment is remembered for its time.
func testAccrualIDs(h *harness) {
	h.movable()
	for _, tt := range []struct {
		after time.Duration
		want  ledger.AccrualStatus
	}{
		{0, ledger.AccrualApplied}, {ledger.AccrualRetention - time.Minute, ledger.AccrualRepeated}, {2 * time.Minute, ledger.AccrualApplied},
	} {
		h.advance(tt.after)
		if got := h.amend("a", ann, ledger.Correction, ledger.PeriodDay, usd).Status; got != tt.want {
			h.Errorf("after %s more: %v, want %v", tt.after, got, tt.want)
		}
	}
}

// testAdjustPeriods: an adjustment of a period counts in each longer period, and in no shorter one. A reset also empties each shorter
// period within its period, whatever earlier adjustments took from the longer periods.
func testAdjustPeriods(h *harness) {
	h.movable()
	h.set(time.Date(2027, 3, 31, 12, 0, 0, 0, time.UTC)) // Wednesday
	h.accrue(ann, 10*usd)
	h.set(time.Date(2027, 4, 1, 12, 0, 0, 0, time.UTC)) // in the same week
	for _, step := range []struct {
		cost   int64 // accrues before the adjustment
		kind   ledger.AccrualKind
		period ledger.AccrualPeriod
		micro  int64
		want   ledger.Accrued
	}{
		{usd, ledger.Correction, ledger.PeriodTotal, 5 * usd, ledger.Accrued{Day: usd, Week: 11 * usd, Month: usd, Quarter: usd, Total: 16 * usd}},
		{0, ledger.Correction, ledger.PeriodQuarter, 2 * usd, ledger.Accrued{Day: usd, Week: 11 * usd, Month: usd, Quarter: 3 * usd, Total: 18 * usd}},
		{0, ledger.Correction, ledger.PeriodWeek, usd, ledger.Accrued{Day: usd, Week: 12 * usd, Month: 2 * usd, Quarter: 4 * usd, Total: 19 * usd}},
		{0, ledger.Credit, ledger.PeriodWeek, 3 * usd, ledger.Accrued{Day: usd, Week: 9 * usd, Month: 0, Quarter: usd, Total: 16 * usd}}, // the month is younger
		{0, ledger.Reset, ledger.PeriodWeek, 0, ledger.Accrued{Total: 7 * usd}},
		{10 * usd, ledger.Credit, ledger.PeriodWeek, 4 * usd, ledger.Accrued{Day: 10 * usd, Week: 6 * usd, Month: 6 * usd, Quarter: 6 * usd, Total: 13 * usd}},
		{0, ledger.Reset, ledger.PeriodWeek, 0, ledger.Accrued{Total: 7 * usd}},
		{10 * usd, ledger.Credit, ledger.PeriodMonth, 4 * usd, ledger.Accrued{Day: 10 * usd, Week: 10 * usd, Month: 6 * usd, Quarter: 6 * usd, Total: 13 * usd}},
		{0, ledger.Reset, ledger.PeriodMonth, 0, ledger.Accrued{Week: 4 * usd, Total: 7 * usd}}, // the week began before the month
		{10 * usd, ledger.Credit, ledger.PeriodQuarter, 4 * usd, ledger.Accrued{Day: 10 * usd, Week: 14 * usd, Month: 10 * usd, Quarter: 6 * usd, Total: 13 * usd}},
		{0, ledger.Reset, ledger.PeriodQuarter, 0, ledger.Accrued{Week: 8 * usd, Total: 7 * usd}},
		{0, ledger.Reset, ledger.PeriodWeek, 0, ledger.Accrued{}}, // the total has less than the week
		{10 * usd, ledger.Credit, ledger.PeriodTotal, 3 * usd, ledger.Accrued{Day: 10 * usd, Week: 10 * usd, Month: 10 * usd, Quarter: 10 * usd, Total: 7 * usd}},
	} {
		if step.cost > 0 {
			h.accrue(ann, step.cost)
		}
		h.amended(step.kind, step.period, step.micro, step.want)
	}
	before := h.balance(each()[1]).Accrued
	for _, period := range []ledger.AccrualPeriod{ledger.PeriodWeek, ledger.PeriodTotal} {
		if out := h.amend("", team, ledger.Credit, period, 8*usd); out.Status != ledger.AccrualBelowZero || out.Accrued != before || h.balance(each()[1]).Accrued != before {
			h.Errorf("more than the %s has accrued: %+v, want a refusal", period, out)
		}
	}
	h.amended(ledger.Reset, ledger.PeriodTotal, 0, ledger.Accrued{})
	h.set(time.Date(2027, 4, 14, 12, 0, 0, 0, time.UTC)) // the week is within the month
	for _, period := range []ledger.AccrualPeriod{ledger.PeriodMonth, ledger.PeriodQuarter, ledger.PeriodTotal} {
		h.accrue(ann, usd)
		h.amend("", team, ledger.Credit, period, 0.4*usd)
		h.amended(ledger.Reset, period, 0, ledger.Accrued{})
	}
}

// amended adjusts the team, and fails unless the team has the accrued costs afterwards.
func (h *harness) amended(kind ledger.AccrualKind, period ledger.AccrualPeriod, micro int64, want ledger.Accrued) {
	h.Helper()
	out := h.amend("", team, kind, period, micro)
	if got := h.balance(each()[1]).Accrued; got != want || out.Accrued != want {
		h.Errorf("%s of the %s: %+v, reported %+v, want %+v", kind, period, got, out.Accrued, want)
	}
}
