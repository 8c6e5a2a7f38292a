package ledger

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

// zoneNames are of every kind: halves and quarters of an hour, days without midnight
// or with two, and days that were left out.
var zoneNames = []string{ //nolint:gochecknoglobals // read only
	"UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/St_Johns", "America/Havana", "America/Sao_Paulo", "America/Santiago",
	"Africa/Cairo", "Africa/Casablanca", "Asia/Amman", "Asia/Beirut", "Asia/Gaza", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Tehran", "Asia/Pyongyang",
	"Atlantic/Azores", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "Pacific/Kiritimati", "Pacific/Kwajalein", "Antarctica/Troll",
}

func zone(t interface{ Fatal(args ...any) }, name string) (z Zone) {
	if err := z.UnmarshalText([]byte(name)); err != nil {
		t.Fatal(err)
	}
	return z
}

// Periods have no gap and do not overlap: each begins when another one ends, at any
// time of asking, and the calendars of two times agree.
func TestPeriodsTileTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(zoneNames).Draw(t, "zone")
		z := zone(t, name)
		first := time.Date(1975, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
		last := time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
		ms := rapid.Int64Range(first, last).Draw(t, "ms")
		if rapid.Bool().Draw(t, "near a change of the clocks") {
			if _, to := time.UnixMilli(ms).In(z.Location()).ZoneBounds(); !to.IsZero() {
				ms = to.UnixMilli() + rapid.Int64Range(-26*hour, 26*hour).Draw(t, "from there")
			}
		}
		c := z.Calendar(time.UnixMilli(ms))
		for which, longest := range []int64{49 * hour, 9 * 24 * hour, 33 * 24 * hour, 94 * 24 * hour} {
			if !slices.IsSorted(c[which]) {
				t.Fatalf("%s: %v is not in order", name, c[which])
			}
			start, end := c.bounds(which, ms)
			if start > ms || ms >= end || end-start > longest {
				t.Fatalf("%s: period %d of %d is from %d to %d", name, which, ms, start, end)
			}
			for _, other := range []int64{start, end - 1, start + rapid.Int64Range(0, end-start-1).Draw(t, "other")} {
				calendar := z.Calendar(time.UnixMilli(other))
				if s, e := calendar.bounds(which, other); s != start || e != end {
					t.Fatalf("%s: %d and %d are in one period, which is from %d to %d and from %d to %d", name, ms, other, start, end, s, e)
				}
			}
			calendar := z.Calendar(time.UnixMilli(end))
			if next, _ := calendar.bounds(which, end); next != end {
				t.Fatalf("%s: after %d, the next period begins at %d", name, end, next)
			}
		}
	})
}

// Weeks are those of ISO 8601, and quarters begin with each third month, whatever the zone.
func TestWeeksAndQuartersBegin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(zoneNames).Draw(t, "zone")
		z := zone(t, name)
		at := time.Unix(rapid.Int64Range(0, 2_900_000_000).Draw(t, "seconds"), 0).In(z.Location())
		c := z.Calendar(at)
		of := func(which int) (time.Time, time.Time) {
			start, end := c.bounds(which, at.UnixMilli())
			return time.UnixMilli(start).In(z.Location()), time.UnixMilli(end - 1).In(z.Location())
		}
		year, number := at.ISOWeek()
		for _, edge := range []func() time.Time{func() time.Time { s, _ := of(week); return s }, func() time.Time { _, e := of(week); return e }} {
			if y, n := edge().ISOWeek(); y != year || n != number {
				t.Fatalf("%s: the week of %s contains %s, want week %d of %d alone", name, at, edge(), number, year)
			}
		}
		first, last := of(quarter)
		if first.Month() != at.Month()-(at.Month()-1)%3 || first.Day() != 1 || last.Month() != first.Month()+2 || first.Year() != at.Year() || last.Year() != at.Year() {
			t.Fatalf("%s: the quarter of %s is from %s to %s", name, at, first, last)
		}
	})
}

// A day begins at midnight, or when the clocks skip it, and a month with its first day.
func TestDaysBegin(t *testing.T) {
	for _, tt := range []struct{ zone, at, day, month string }{
		{"UTC", "2028-02-29T13:14:15Z", "2028-02-29T00:00:00Z", "2028-02-01T00:00:00Z"},
		{"Europe/Berlin", "2027-03-28T12:00:00Z", "2027-03-28T00:00:00+01:00", "2027-03-01T00:00:00+01:00"},
		{"Europe/Berlin", "2027-10-31T12:00:00Z", "2027-10-31T00:00:00+02:00", "2027-10-01T00:00:00+02:00"},
		{"Asia/Kathmandu", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00+05:45", "2027-01-01T00:00:00+05:45"},
		{"Pacific/Kiritimati", "2027-02-28T11:00:00Z", "2027-03-01T00:00:00+14:00", "2027-03-01T00:00:00+14:00"},
		{"Africa/Cairo", "2027-04-30T12:00:00Z", "2027-04-30T01:00:00+03:00", "2027-04-01T00:00:00+02:00"},
		{"America/Santiago", "2027-09-05T12:00:00Z", "2027-09-05T01:00:00-03:00", "2027-09-01T00:00:00-04:00"},
		{"America/Havana", "2027-11-07T12:00:00Z", "2027-11-07T00:00:00-04:00", "2027-11-01T00:00:00-04:00"},
		{"Asia/Amman", "2021-10-29T12:00:00Z", "2021-10-29T00:00:00+03:00", "2021-10-01T00:00:00+03:00"},
		{"Pacific/Apia", "2011-12-31T00:00:00Z", "2011-12-31T00:00:00+14:00", "2011-12-01T00:00:00-10:00"}, // there was no 30th
	} {
		z := zone(t, tt.zone)
		at, err := time.Parse(time.RFC3339, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		c := z.Calendar(at)
		for which, want := range map[int]string{day: tt.day, month: tt.month} {
			start, _ := c.bounds(which, at.UnixMilli())
			if got := time.UnixMilli(start).In(z.Location()).Format(time.RFC3339); got != want {
				t.Errorf("%s: period %d of %s begins %s, want %s", tt.zone, which, tt.at, got, want)
			}
		}
	}
}

func TestZoneNames(t *testing.T) {
	for _, name := range []string{"Local", "Europe/Atlantis", "CEST+1", "../zoneinfo"} {
		if err := new(Zone).UnmarshalText([]byte(name)); err == nil {
			t.Errorf("%q is a zone, want it refused", name)
		}
	}
}
