package storetest

import (
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// in puts the organisation into a zone.
func (h *harness) in(zone string) {
	h.Helper()
	if err := h.zone.UnmarshalText([]byte(zone)); err != nil {
		h.Fatal(err)
	}
}

// running commits a pod that costs a dollar per hour.
func (h *harness) running() {
	h.Helper()
	h.rebuild()
	id, _ := h.reserve(teamPerHour(10*usd), pod(usd))
	h.commit(id, "p1", pod(usd))
}

// moment is a time in UTC.
func (h *harness) moment(text string) time.Time {
	h.Helper()
	at, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		h.Fatal(err)
	}
	return at
}

// testZoneDays: the day of a budget begins at the midnight of the zone and is as long
// as the clocks there make it, and room returns then.
func testZoneDays(h *harness) {
	h.movable()
	for _, tt := range []struct {
		zone, begin string // UTC
		length      time.Duration
	}{
		{"UTC", "2027-03-14 00:00:00", 24 * time.Hour},
		{"Europe/Berlin", "2027-03-27 23:00:00", 23 * time.Hour},
		{"Europe/Berlin", "2027-10-30 22:00:00", 25 * time.Hour},
		{"America/New_York", "2027-03-14 05:00:00", 23 * time.Hour},
		{"Asia/Kolkata", "2027-03-13 18:30:00", 24 * time.Hour},
		{"Asia/Kathmandu", "2027-03-13 18:15:00", 24 * time.Hour},
		{"Australia/Lord_Howe", "2027-04-03 13:00:00", 24*time.Hour + 30*time.Minute},
		{"America/Havana", "2027-11-07 04:00:00", 25 * time.Hour}, // has two midnights
		{"Africa/Cairo", "2027-04-29 22:00:00", 23 * time.Hour},   // has none
		{"Pacific/Kiritimati", "2027-03-13 10:00:00", 24 * time.Hour},
	} {
		h.in(tt.zone)
		h.org = tt.zone + tt.begin
		begin := h.moment(tt.begin)
		end := begin.Add(tt.length)
		h.set(begin.Add(-time.Hour))
		h.running()
		of := func(when string, at time.Time, want int64) {
			h.Helper()
			h.set(at)
			h.reserve(teamPerHour(1), ledger.Amounts{}) // brings it up to date
			for _, s := range each() {
				if got := h.balance(s).Day; got != want {
					h.Errorf("%s, %s: %s has accrued %d %s, want %d", tt.zone, tt.begin, s, got, when, want)
				}
			}
		}
		of("at the end of the day before", begin.Add(-time.Millisecond), usd-1)
		of("at the beginning", begin, 0)
		of("at the end", end.Add(-time.Hour), int64((tt.length-time.Hour)/time.Minute)*usd/60)
		p := &ledger.Plan{Teams: map[string]ledger.Budget{"research": {PerDay: catalog.Money(int64(tt.length/time.Minute) * usd / 60)}}}
		_, out := h.reserve(p, pod(usd))
		h.status(out, ledger.Refused)
		if got := out.Ends[0]; !got.Equal(end) {
			h.Errorf("%s: the day ends at %s, want %s", tt.zone, got.UTC(), end)
		}
		h.set(end)
		_, out = h.reserve(p, pod(usd))
		h.status(out, ledger.Admitted)
		of("in the next day", end.Add(30*time.Minute), usd)
	}
}

// testZonePeriods: weeks begin on Monday, months and quarters on their first day, at the midnight of the zone, across changes
// of the clocks and of the year. Room returns then.
func testZonePeriods(h *harness) {
	h.movable()
	of := map[int]ledger.AccrualPeriod{ledger.PerWeek: ledger.PeriodWeek, ledger.PerMonth: ledger.PeriodMonth, ledger.PerQuarter: ledger.PeriodQuarter}
	for _, tt := range []struct {
		zone, begin, end string // UTC
		ceiling          int
	}{
		{"Europe/Berlin", "2027-02-28 23:00:00", "2027-03-31 22:00:00", ledger.PerMonth},
		{"Asia/Kolkata", "2027-11-30 18:30:00", "2027-12-31 18:30:00", ledger.PerMonth},
		{"America/Los_Angeles", "2028-02-01 08:00:00", "2028-03-01 08:00:00", ledger.PerMonth},
		{"UTC", "2026-12-28 00:00:00", "2027-01-04 00:00:00", ledger.PerWeek},                // week 53 of 2026
		{"UTC", "2027-12-27 00:00:00", "2028-01-03 00:00:00", ledger.PerWeek},                // week 52 of 2027
		{"Europe/Berlin", "2027-03-21 23:00:00", "2027-03-28 22:00:00", ledger.PerWeek},      // 167 hours
		{"America/New_York", "2027-11-01 04:00:00", "2027-11-08 05:00:00", ledger.PerWeek},   // 169 hours
		{"Pacific/Kiritimati", "2028-02-27 10:00:00", "2028-03-05 10:00:00", ledger.PerWeek}, // with a leap day
		{"Europe/Berlin", "2026-12-31 23:00:00", "2027-03-31 22:00:00", ledger.PerQuarter},
		{"Asia/Kolkata", "2027-09-30 18:30:00", "2027-12-31 18:30:00", ledger.PerQuarter},
		{"UTC", "2028-01-01 00:00:00", "2028-04-01 00:00:00", ledger.PerQuarter},
	} {
		h.in(tt.zone)
		h.org = tt.zone + tt.begin + ledger.CeilingName(tt.ceiling)
		begin, end := h.moment(tt.begin), h.moment(tt.end)
		h.set(begin.Add(-time.Hour))
		h.running()
		length := int64(end.Sub(begin) / time.Hour)
		limit := catalog.Money(length * usd)
		full := &ledger.Plan{Teams: map[string]ledger.Budget{"research": map[int]ledger.Budget{
			ledger.PerWeek: {PerWeek: limit}, ledger.PerMonth: {PerMonth: limit}, ledger.PerQuarter: {PerQuarter: limit},
		}[tt.ceiling]}}
		for _, step := range []struct {
			at   time.Time
			want int64
		}{
			{begin.Add(-time.Millisecond), usd - 1},
			{begin, 0},
			{begin.Add(time.Hour), usd},
			{begin.Add(49 * time.Hour), 49 * usd},
			{end.Add(-time.Hour), (length - 1) * usd},
			{end, 0},
			{end.Add(3 * time.Hour), 3 * usd},
		} {
			h.set(step.at)
			for _, written := range []bool{false, true} {
				if got := h.balance(each()[1]).Of(of[tt.ceiling]); got != step.want {
					h.Errorf("%s of %s, %s, written %t: %d have accrued, want %d", ledger.CeilingName(tt.ceiling), tt.zone, step.at, written, got, step.want)
				}
				h.reserve(teamPerHour(1), ledger.Amounts{}) // brings it up to date
			}
			id, out := h.reserve(full, pod(usd))
			if last := step.at.Equal(end.Add(-time.Hour)); last != (out.Status == ledger.Refused) {
				h.Errorf("%s of %s, %s: status %d: %+v", ledger.CeilingName(tt.ceiling), tt.zone, step.at, out.Status, out.Levels[1])
			} else if ends := out.Ends[tt.ceiling-ledger.PerDay]; last && !ends.Equal(end) {
				h.Errorf("%s of %s ends at %s, want %s", ledger.CeilingName(tt.ceiling), tt.zone, ends.UTC(), end)
			} else if !last {
				h.settle(ledger.Settlement{Hold: id, End: ledger.Release})
			}
		}
	}
}

// testTotal: a budget without a period counts from the first day on. No date makes room, and a horizon that reaches to the
// end of the period is the default one.
func testTotal(h *harness) {
	h.movable()
	h.set(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))
	h.running()
	for _, days := range []int{1, 40, 60, 400} { // over days, months, quarters and a year
		h.set(time.Date(2026, 11, 20+days, 0, 0, 0, 0, time.UTC))
		if got, want := h.balance(each()[1]).Total, int64(days)*24*usd; got != want {
			h.Errorf("after %d days: %d have accrued, want %d", days, got, want)
		}
	}
	p := &ledger.Plan{Teams: map[string]ledger.Budget{"research": {Total: 9602 * usd}}, Horizon: ledger.UntilPeriodEnd}
	_, out := h.reserve(p, pod(usd))
	h.status(out, ledger.Admitted)
	if got, want := out.Levels[1][ledger.InTotal], (ledger.Level{Used: 9600 * usd, Reserved: usd, Needs: usd}); got != want {
		h.Errorf("total is %+v, want %+v", got, want)
	}
	_, out = h.reserve(p, pod(usd))
	h.status(out, ledger.Refused)
	if out.Ceiling != ledger.InTotal || !out.Ends[ledger.InTotal-ledger.PerDay].IsZero() {
		h.Errorf("refused by ceiling %d, room at %s, want total and no time", out.Ceiling, out.Ends[ledger.InTotal-ledger.PerDay])
	}
}

// testAnotherZone: a period that is under way when the zone changes goes on until the
// next one begins in the new zone, with all that has accrued.
func testAnotherZone(h *harness) {
	h.movable()
	for _, tt := range []struct {
		to, changed, end string // UTC
	}{
		{"America/New_York", "2027-03-10 12:00:00", "2027-03-11 05:00:00"}, // whose day began later
		{"America/New_York", "2027-03-10 02:00:00", "2027-03-10 05:00:00"}, // whose day has not begun
		{"Europe/Berlin", "2027-03-10 12:00:00", "2027-03-10 23:00:00"},    // whose day began sooner
		{"Europe/Berlin", "2027-03-10 23:30:00", "2027-03-11 23:00:00"},    // whose next day has begun
	} {
		h.in("UTC")
		h.org = tt.to + tt.changed
		begin, changed, end := h.moment("2027-03-10 00:00:00"), h.moment(tt.changed), h.moment(tt.end)
		h.set(begin)
		h.running()
		h.set(changed)
		h.reserve(teamPerHour(1), ledger.Amounts{}) // brings it up to date
		h.in(tt.to)
		for _, step := range []struct {
			at   time.Time
			from time.Time
		}{{changed, begin}, {end.Add(-time.Minute), begin}, {end.Add(time.Hour), end}} {
			h.set(step.at)
			h.reserve(teamPerHour(1), ledger.Amounts{})
			if got, want := h.balance(each()[1]).Day, int64(step.at.Sub(step.from)/time.Minute)*usd/60; got != want {
				h.Errorf("to %s at %s: %d have accrued at %s, want %d", tt.to, tt.changed, got, step.at, want)
			}
		}
		if got, want := h.balance(each()[1]).Month, int64(h.at.Sub(begin)/time.Minute)*usd/60; got != want {
			h.Errorf("to %s at %s: %d have accrued in the month, want %d", tt.to, tt.changed, got, want)
		}
	}
}
