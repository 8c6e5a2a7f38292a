package storetest

import (
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/spend"
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
			h.reserve(teamPerHour(1), spend.Amounts{}) // brings it up to date
			for _, s := range each() {
				if got := h.balance(s).Day; got != want {
					h.Errorf("%s, %s: %s has accrued %d %s, want %d", tt.zone, tt.begin, s, got, when, want)
				}
			}
		}
		of("at the end of the day before", begin.Add(-time.Millisecond), usd-1)
		of("at the beginning", begin, 0)
		of("at the end", end.Add(-time.Hour), int64((tt.length-time.Hour)/time.Minute)*usd/60)
		p := &spend.Plan{Teams: map[string]spend.Budget{"research": {PerDay: catalog.Money(int64(tt.length/time.Minute) * usd / 60)}}}
		_, out := h.reserve(p, pod(usd))
		h.status(out, spend.Refused)
		if got := out.Ends[0]; !got.Equal(end) {
			h.Errorf("%s: the day ends at %s, want %s", tt.zone, got.UTC(), end)
		}
		h.set(end)
		_, out = h.reserve(p, pod(usd))
		h.status(out, spend.Admitted)
		of("in the next day", end.Add(30*time.Minute), usd)
	}
}

func testZoneMonths(h *harness) {
	h.movable()
	for _, tt := range []struct {
		zone, begin, end string // UTC
	}{
		{"Europe/Berlin", "2027-02-28 23:00:00", "2027-03-31 22:00:00"},
		{"Asia/Kolkata", "2027-11-30 18:30:00", "2027-12-31 18:30:00"},
		{"America/Los_Angeles", "2028-02-01 08:00:00", "2028-03-01 08:00:00"},
	} {
		h.in(tt.zone)
		h.org = tt.zone
		begin, end := h.moment(tt.begin), h.moment(tt.end)
		h.set(begin.Add(-time.Hour))
		h.running()
		for _, step := range []struct {
			at   time.Time
			want int64
		}{{begin, 0}, {begin.Add(time.Hour), usd}, {end.Add(-time.Hour), int64(end.Sub(begin)/time.Hour-1) * usd}, {end, 0}, {end.Add(3 * time.Hour), 3 * usd}} {
			h.set(step.at)
			if got := h.balance(each()[1]).Month; got != step.want {
				h.Errorf("%s, %s: %d have accrued, want %d", tt.zone, step.at, got, step.want)
			}
		}
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
		h.reserve(teamPerHour(1), spend.Amounts{}) // brings it up to date
		h.in(tt.to)
		for _, step := range []struct {
			at   time.Time
			from time.Time
		}{{changed, begin}, {end.Add(-time.Minute), begin}, {end.Add(time.Hour), end}} {
			h.set(step.at)
			h.reserve(teamPerHour(1), spend.Amounts{})
			if got, want := h.balance(each()[1]).Day, int64(step.at.Sub(step.from)/time.Minute)*usd/60; got != want {
				h.Errorf("to %s at %s: %d have accrued at %s, want %d", tt.to, tt.changed, got, step.at, want)
			}
		}
		if got, want := h.balance(each()[1]).Month, int64(h.at.Sub(begin)/time.Minute)*usd/60; got != want {
			h.Errorf("to %s at %s: %d have accrued in the month, want %d", tt.to, tt.changed, got, want)
		}
	}
}
