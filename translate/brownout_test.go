package translate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
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

func hours(t *testing.T, s string) translate.Hours {
	t.Helper()
	var h translate.Hours
	if err := h.UnmarshalText([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return h
}

func both() []translate.Dialect { return []translate.Dialect{"v1", "graphql"} }

func TestActive(t *testing.T) {
	once := translate.Brownout{Dialects: both(), From: at(t, "11-21 10:00:00"), Until: at(t, "11-21 11:00:00"), Message: "once"}
	next := translate.Brownout{Dialects: both(), From: at(t, "11-21 11:00:00"), Until: at(t, "11-21 11:30:00"), Message: "next"}
	mornings := translate.Brownout{Dialects: both(), Daily: hours(t, "09:00-09:30"), Weekdays: []translate.Weekday{"mon", "wed"}, Message: "mornings"}
	nights := translate.Brownout{Dialects: both(), Daily: hours(t, "23:30-00:30"), Weekdays: []translate.Weekday{"sat"}}
	bounded := translate.Brownout{Dialects: both(), Daily: hours(t, "00:00-24:00"), From: at(t, "11-22 12:00:00"), Until: at(t, "11-24 12:00:00")}
	for name, tc := range map[string]struct {
		entries []translate.Brownout
		now     string
		until   string // "" when nothing is refused
		message string
	}{
		"before":                   {[]translate.Brownout{once}, "11-21 09:59:59", "", ""},
		"first instant":            {[]translate.Brownout{once}, "11-21 10:00:00", "11-21 11:00:00", "once"},
		"last second":              {[]translate.Brownout{once}, "11-21 10:59:59", "11-21 11:00:00", "once"},
		"its end is out":           {[]translate.Brownout{once}, "11-21 11:00:00", "", ""},
		"windows that touch":       {[]translate.Brownout{next, once}, "11-21 10:30:00", "11-21 11:30:00", "once"},
		"on a listed day":          {[]translate.Brownout{mornings}, "11-23 09:29:59", "11-23 09:30:00", "mornings"},
		"on another day":           {[]translate.Brownout{mornings}, "11-24 09:15:00", "", ""},
		"after its hours":          {[]translate.Brownout{mornings}, "11-23 09:30:00", "", ""},
		"before midnight":          {[]translate.Brownout{nights}, "11-21 23:45:00", "11-22 00:30:00", ""},
		"after midnight":           {[]translate.Brownout{nights}, "11-22 00:15:00", "11-22 00:30:00", ""},
		"midnight of another day":  {[]translate.Brownout{nights}, "11-23 00:15:00", "", ""},
		"recurring, not yet":       {[]translate.Brownout{bounded}, "11-22 11:59:59", "", ""},
		"recurring, days in a row": {[]translate.Brownout{bounded}, "11-22 12:00:00", "11-24 12:00:00", ""},
		"recurring, over":          {[]translate.Brownout{bounded}, "11-24 12:00:00", "", ""},
		"one inside the other":     {[]translate.Brownout{bounded, {Dialects: both(), From: at(t, "11-23 01:00:00"), Until: at(t, "11-23 02:00:00")}}, "11-23 01:30:00", "11-24 12:00:00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			span, message, ok := translate.NewSchedule(tc.entries, "v1").Active(at(t, tc.now))
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
	once := translate.Brownout{Dialects: both(), From: at(t, "11-29 10:00:00").In(time.FixedZone("", 3600)), Until: at(t, "11-29 11:00:00")}
	daily := translate.Brownout{Dialects: both(), Daily: hours(t, "10:00-10:30")}
	for name, tc := range map[string]struct {
		entry translate.Brownout
		now   string
		want  string
	}{
		"more than a week before": {once, "11-22 10:00:00", ""},
		"a week before":           {once, "11-22 10:00:01", "2026-11-29T10:00:00Z/2026-11-29T11:00:00Z"},
		"while it lasts":          {once, "11-29 10:59:59", "2026-11-29T10:00:00Z/2026-11-29T11:00:00Z"},
		"when it is over":         {once, "11-29 11:00:00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := translate.NewSchedule([]translate.Brownout{tc.entry}, "v1").Announce(at(t, tc.now)); got != tc.want {
				t.Errorf("Announce = %q, want %q", got, tc.want)
			}
		})
	}
	got := strings.Split(translate.NewSchedule([]translate.Brownout{daily}, "v1").Announce(at(t, "11-21 10:15:00")), ", ")
	if len(got) != 8 || got[0] != "2026-11-21T10:00:00Z/2026-11-21T10:30:00Z" || got[7] != "2026-11-28T10:00:00Z/2026-11-28T10:30:00Z" {
		t.Errorf("a daily window is announced as %q, want the one under way and a week of them", got)
	}
}

func TestASchedulePerDialect(t *testing.T) {
	now := at(t, "11-21 10:00:00")
	entries := []translate.Brownout{{Dialects: []translate.Dialect{"v1"}, From: now, Until: now.Add(time.Hour)}}
	if _, _, ok := translate.NewSchedule(entries, "v1").Active(now); !ok {
		t.Error("v1 is served, want it refused")
	}
	s := translate.NewSchedule(entries, "graphql")
	if s != nil || s.Announce(now) != "" {
		t.Errorf("graphql has the schedule %v, want none", s)
	}
	if _, _, ok := s.Active(now); ok {
		t.Error("graphql is refused by v1's window")
	}
}

func TestHours(t *testing.T) {
	for text, want := range map[string]translate.Hours{
		"10:00-10:30": {Begin: 10 * time.Hour, End: 10*time.Hour + 30*time.Minute},
		"00:00-24:00": {End: 24 * time.Hour},
		"23:30-00:30": {Begin: 23*time.Hour + 30*time.Minute, End: 30 * time.Minute},
	} {
		if diff := cmp.Diff(want, hours(t, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "10:00", "10-11", "10:00-10:00", "24:00-01:00", "9:00-10:00", "10:00-25:00", "10:60-11:00", "10:00 - 11:00", "10:00-11:00-12:00"} {
		var h translate.Hours
		if err := h.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %v, want a fault", text, h)
		}
	}
}

func TestValidate(t *testing.T) {
	from, until := at(t, "11-21 10:00:00"), at(t, "11-21 11:00:00")
	for name, tc := range map[string]struct {
		c    translate.Brownout
		want string // "" for none
	}{
		"one window":            {translate.Brownout{Dialects: both(), From: from, Until: until}, ""},
		"daily":                 {translate.Brownout{Dialects: both(), Daily: hours(t, "10:00-10:30")}, ""},
		"daily from a day":      {translate.Brownout{Dialects: both(), Daily: hours(t, "10:00-10:30"), From: from}, ""},
		"no dialect":            {translate.Brownout{From: from, Until: until}, "dialects: "},
		"nothing":               {translate.Brownout{Dialects: both()}, "from: is required"},
		"no end":                {translate.Brownout{Dialects: both(), From: from}, "until: is required"},
		"ends before it begins": {translate.Brownout{Dialects: both(), From: until, Until: from}, "until: must be after"},
		"no length":             {translate.Brownout{Dialects: both(), From: from, Until: from}, "until: must be after"},
		"weekdays of a window":  {translate.Brownout{Dialects: both(), From: from, Until: until, Weekdays: []translate.Weekday{"mon"}}, "weekdays: "},
		"long message":          {translate.Brownout{Dialects: both(), From: from, Until: until, Message: strings.Repeat("x", 401)}, "message: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.c.Validate()
			if got := err != nil; got != (tc.want != "") {
				t.Fatalf("err = %v, want %q", err, tc.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("err = %q, want it to begin with %q", err, tc.want)
			}
		})
	}
}
