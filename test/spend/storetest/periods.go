package storetest

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

func testAccrual(h *harness) {
	h.movable()
	p := teamPerHour(10 * usd)
	id, _ := h.reserve(p, pod(usd))
	h.advance(30 * time.Minute) // the platform took its time: the pod ran
	h.commit(id, "p1", pod(usd))
	h.advance(30 * time.Minute)
	h.accrued(usd, usd)
	lost, _ := h.reserve(teamPerHour(10*usd), pod(3*usd))
	h.advance(time.Hour)
	h.accrued(5*usd, 5*usd) // the second may run, too
	h.settle(ledger.Settlement{Hold: lost, End: ledger.Release})
	h.accrued(2*usd, 2*usd)
	h.set(time.Date(2027, 3, 15, 1, 0, 0, 0, time.UTC))
	h.accrued(1*usd, 13*usd)
	h.set(time.Date(2027, 4, 1, 2, 0, 0, 0, time.UTC))
	h.accrued(2*usd, 2*usd)
	h.set(time.Date(2027, 3, 31, 0, 0, 0, 0, time.UTC)) // the clock steps back
	h.accrued(2*usd, 2*usd)
}

// pod creates a pod that costs so much an hour.
func (h *harness) pod(id string, micro int64) {
	h.Helper()
	hold, _ := h.reserve(teamPerHour(10*usd), pod(micro))
	h.commit(hold, id, pod(micro))
}

// The clock was a day ahead when the second pod was created. Once it is right again, the cost of changes counts up to that day.
func testClockSetBack(h *harness) {
	h.movable()
	begin := time.Date(2027, 3, 15, 0, 0, 0, 0, time.UTC)
	h.set(begin)
	h.pod("right", usd)
	h.set(begin.Add(24 * time.Hour))
	h.pod("ahead", usd)
	h.accrued(0, 24*usd)
	h.set(begin.Add(time.Hour))
	h.accrued(0, 24*usd)
	h.pod("back", 2*usd)
	h.accrued(0, (24+2*23)*usd)
	failed, _ := h.reserve(teamPerHour(10*usd), pod(3*usd))
	h.accrued(0, (24+2*23+3*23)*usd)
	h.set(begin.Add(2 * time.Hour))
	h.settle(ledger.Settlement{Hold: failed, End: ledger.Release})
	h.accrued(0, (24+2*23)*usd)
	gone := &ledger.Adjustment{Kind: "pod", Resource: "ahead", Version: h.record("ahead").Version, Gone: true}
	if done, err := ledger.Adjust(h.Context(), h.Store, h.org, gone); err != nil || !done {
		h.Fatalf("Adjust: %t, %v", done, err)
	}
	h.accrued(0, (24+2*23)*usd)
	h.set(begin.Add(25 * time.Hour))
	h.accrued(3*usd, (25+2*24)*usd)
}

func (h *harness) accrued(day, month int64) {
	h.Helper()
	h.reserve(teamPerHour(1), ledger.Amounts{}) // brings it up to date
	for _, s := range each() {
		if b := h.balance(s); b.Day != day || b.Month != month {
			h.Errorf("%s at %s: %d today and %d this month, want %d and %d", s, h.at, b.Day, b.Month, day, month)
		}
	}
}

// testPeriods is the example of the documentation: 18.50 of 20 have accrued, two
// pods of 0.43 run, and a third is asked for.
func testPeriods(h *harness) {
	h.movable()
	for _, tt := range []struct {
		at      time.Duration // of the day
		horizon ledger.Horizon
		want    ledger.Status
	}{
		{15 * time.Hour, 0, ledger.Admitted},
		{16 * time.Hour, 0, ledger.Refused},
		{15 * time.Hour, ledger.UntilPeriodEnd, ledger.Refused},
		{23*time.Hour + 30*time.Minute, ledger.Horizon(30 * time.Minute), ledger.Refused},
	} {
		h.org = fmt.Sprint("org-", tt.at, "-", int64(tt.horizon))
		h.set(time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC))
		h.rebuild()
		free := teamPerHour(1000 * usd)
		id, _ := h.reserve(free, pod(17.64*usd))
		h.commit(id, "once", pod(17.64*usd))
		h.advance(time.Hour)
		h.ask(free, &ledger.Reservation{Hold: "gone" + h.org, Kind: "pod", Resource: "once", Owner: ann, Free: true})
		h.settle(ledger.Settlement{Hold: "gone" + h.org, End: ledger.Commit, Resource: "once", Gone: true})
		h.advance(time.Hour) // it is 14:00 and 17.64 have accrued
		for i := range 2 {
			id, _ := h.reserve(free, pod(0.43*usd))
			h.commit(id, fmt.Sprint("p", i), pod(0.43*usd))
		}
		day := time.Date(2027, 3, 14, 0, 0, 0, 0, time.UTC)
		h.set(day.Add(tt.at))
		p := &ledger.Plan{Teams: map[string]ledger.Budget{"research": {PerDay: catalog.Money(20 * usd)}}, Horizon: tt.horizon}
		_, out := h.reserve(p, pod(0.43*usd))
		if out.Status != tt.want {
			h.Errorf("at %s with horizon %d: status %d, want %d: %+v", tt.at, tt.horizon, out.Status, tt.want, out.Levels[1][ledger.PerDay])
		}
	}
}

// testNextPeriod: what is started shortly before the end of a period must fit into the next one for the rest of the horizon.
func testNextPeriod(h *harness) {
	h.movable()
	for _, tt := range []struct {
		at      time.Duration // of the day
		horizon ledger.Horizon
		burn    int64
		want    ledger.Status
	}{
		{23*time.Hour + 59*time.Minute, 0, 60 * usd, ledger.Refused},
		{23*time.Hour + 59*time.Minute, 0, 20 * usd, ledger.Admitted},
		{23*time.Hour + 59*time.Minute, ledger.UntilPeriodEnd, 60 * usd, ledger.Refused},
		{23*time.Hour + 59*time.Minute, ledger.Horizon(time.Minute), 60 * usd, ledger.Admitted},
		{22 * time.Hour, ledger.UntilPeriodEnd, 9 * usd, ledger.Admitted},
	} {
		h.org = fmt.Sprint("next-", tt.at, "-", tt.burn, "-", int64(tt.horizon))
		h.set(time.Date(2027, 3, 14, 0, 0, 0, 0, time.UTC).Add(tt.at))
		h.rebuild()
		p := &ledger.Plan{Teams: map[string]ledger.Budget{"research": {PerDay: catalog.Money(20 * usd)}}, Horizon: tt.horizon}
		_, out := h.reserve(p, pod(tt.burn))
		if out.Status != tt.want {
			h.Errorf("%d at %s with horizon %d: status %d, want %d: %+v", tt.burn, tt.at, tt.horizon, out.Status, tt.want, out.Levels[1][ledger.PerDay])
		}
	}
}
