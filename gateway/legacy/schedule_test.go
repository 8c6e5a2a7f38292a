package legacy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// at reads a time of the week that begins on Saturday, 2026-11-21.
func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse("2006-01-02 15:04:05", "2026-"+s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func hours(t *testing.T, s string) settings.Hours {
	t.Helper()
	var h settings.Hours
	if err := h.UnmarshalText([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return h
}

func both() []settings.Dialect { return []settings.Dialect{"v1", "graphql"} }

func TestActive(t *testing.T) {
	once := settings.Brownout{Dialects: both(), From: at(t, "11-21 10:00:00"), Until: at(t, "11-21 11:00:00"), Message: "once"}
	next := settings.Brownout{Dialects: both(), From: at(t, "11-21 11:00:00"), Until: at(t, "11-21 11:30:00"), Message: "next"}
	mornings := settings.Brownout{Dialects: both(), Daily: hours(t, "09:00-09:30"), Weekdays: []settings.Weekday{"mon", "wed"}, Message: "mornings"}
	nights := settings.Brownout{Dialects: both(), Daily: hours(t, "23:30-00:30"), Weekdays: []settings.Weekday{"sat"}}
	bounded := settings.Brownout{Dialects: both(), Daily: hours(t, "00:00-24:00"), From: at(t, "11-22 12:00:00"), Until: at(t, "11-24 12:00:00")}
	month := settings.Brownout{Dialects: both(), Daily: hours(t, "00:00-24:00"), From: at(t, "11-01 00:00:00"), Until: at(t, "12-24 09:00:00")}
	halves := []settings.Brownout{
		{Dialects: both(), Daily: hours(t, "00:00-12:00"), Until: at(t, "12-30 00:00:00")}, {Dialects: both(), Daily: hours(t, "12:00-24:00"), Until: at(t, "12-28 23:00:00")},
	}
	for name, tc := range map[string]struct {
		entries []settings.Brownout
		now     string
		until   string // "" when nothing is refused
		message string
	}{
		"before":                   {[]settings.Brownout{once}, "11-21 09:59:59", "", ""},
		"first instant":            {[]settings.Brownout{once}, "11-21 10:00:00", "11-21 11:00:00", "once"},
		"last second":              {[]settings.Brownout{once}, "11-21 10:59:59", "11-21 11:00:00", "once"},
		"its end is out":           {[]settings.Brownout{once}, "11-21 11:00:00", "", ""},
		"windows that touch":       {[]settings.Brownout{next, once}, "11-21 10:30:00", "11-21 11:30:00", "once"},
		"on a listed day":          {[]settings.Brownout{mornings}, "11-23 09:29:59", "11-23 09:30:00", "mornings"},
		"on another day":           {[]settings.Brownout{mornings}, "11-24 09:15:00", "", ""},
		"after its hours":          {[]settings.Brownout{mornings}, "11-23 09:30:00", "", ""},
		"before midnight":          {[]settings.Brownout{nights}, "11-21 23:45:00", "11-22 00:30:00", ""},
		"after midnight":           {[]settings.Brownout{nights}, "11-22 00:15:00", "11-22 00:30:00", ""},
		"midnight of another day":  {[]settings.Brownout{nights}, "11-23 00:15:00", "", ""},
		"recurring, not yet":       {[]settings.Brownout{bounded}, "11-22 11:59:59", "", ""},
		"recurring, days in a row": {[]settings.Brownout{bounded}, "11-22 12:00:00", "11-24 12:00:00", ""},
		"recurring, weeks":         {[]settings.Brownout{month}, "11-21 10:00:00", "12-24 09:00:00", ""},
		"recurring, by halves":     {halves, "11-21 10:00:00", "12-28 23:00:00", ""},
		"recurring, over":          {[]settings.Brownout{bounded}, "11-24 12:00:00", "", ""},
		"one inside the other":     {[]settings.Brownout{bounded, {Dialects: both(), From: at(t, "11-23 01:00:00"), Until: at(t, "11-23 02:00:00")}}, "11-23 01:30:00", "11-24 12:00:00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			span, message, ok := legacy.NewSchedule(tc.entries, "v1").Active(at(t, tc.now))
			if ok != (tc.until != "") {
				t.Fatalf("active = %t (%v), want %t", ok, span, !ok)
			}
			if ok && !span.Until.Equal(at(t, tc.until)) || message != tc.message {
				t.Errorf("until %v, %q; want until %s, %q", span.Until, message, tc.until, tc.message)
			}
		})
	}
}

func TestAnnounce(t *testing.T) {
	once := settings.Brownout{Dialects: both(), From: at(t, "11-29 10:00:00").In(time.FixedZone("", 3600)), Until: at(t, "11-29 11:00:00")}
	daily := settings.Brownout{Dialects: both(), Daily: hours(t, "10:00-10:30")}
	for name, tc := range map[string]struct {
		entry settings.Brownout
		now   string
		want  string
	}{
		"more than a week before": {once, "11-22 10:00:00", ""},
		"a week before":           {once, "11-22 10:00:01", "2026-11-29T10:00:00Z/2026-11-29T11:00:00Z"},
		"while it lasts":          {once, "11-29 10:59:59", "2026-11-29T10:00:00Z/2026-11-29T11:00:00Z"},
		"when it is over":         {once, "11-29 11:00:00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := legacy.NewSchedule([]settings.Brownout{tc.entry}, "v1").Announce(at(t, tc.now)); got != tc.want {
				t.Errorf("Announce = %q, want %q", got, tc.want)
			}
		})
	}
	got := strings.Split(legacy.NewSchedule([]settings.Brownout{daily}, "v1").Announce(at(t, "11-21 10:15:00")), ", ")
	if len(got) != 8 || got[0] != "2026-11-21T10:00:00Z/2026-11-21T10:30:00Z" || got[7] != "2026-11-28T10:00:00Z/2026-11-28T10:30:00Z" {
		t.Errorf("a daily window is announced as %q, want the one under way and a week of them", got)
	}
}

// A brownout without an end is announced for a year, and one that continues after the next week is announced up to its end.
func TestAnnounceLong(t *testing.T) {
	from := at(t, "11-21 00:00:00")
	for name, tc := range map[string]struct {
		entry settings.Brownout
		want  string
	}{
		"endless": {settings.Brownout{Dialects: both(), Daily: hours(t, "00:00-24:00"), From: from}, "2026-11-21T00:00:00Z/2027-11-29T00:00:00Z"},
		"always":  {settings.Brownout{Dialects: both(), Daily: hours(t, "00:00-24:00")}, "2026-11-21T00:00:00Z/2027-11-29T00:00:00Z"},
		"later":   {settings.Brownout{Dialects: both(), Daily: hours(t, "00:00-24:00"), From: from.AddDate(0, 0, 6), Until: from.AddDate(0, 0, 20)}, "2026-11-27T00:00:00Z/2026-12-11T00:00:00Z"},
	} {
		if got := legacy.NewSchedule([]settings.Brownout{tc.entry}, "v1").Announce(at(t, "11-21 10:15:00")); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestASchedulePerDialect(t *testing.T) {
	now := at(t, "11-21 10:00:00")
	entries := []settings.Brownout{{Dialects: []settings.Dialect{"v1"}, From: now, Until: now.Add(time.Hour)}}
	if _, _, ok := legacy.NewSchedule(entries, "v1").Active(now); !ok {
		t.Error("v1 is served, want it refused")
	}
	s := legacy.NewSchedule(entries, "graphql")
	if s != nil || s.Announce(now) != "" {
		t.Errorf("graphql has the schedule %v, want none", s)
	}
	if _, _, ok := s.Active(now); ok {
		t.Error("graphql is refused by v1's window")
	}
}
