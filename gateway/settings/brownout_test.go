package settings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func TestHours(t *testing.T) {
	for text, want := range map[string]settings.Hours{
		"10:00-10:30": {Begin: 10 * time.Hour, End: 10*time.Hour + 30*time.Minute},
		"00:00-24:00": {End: 24 * time.Hour},
		"23:30-00:30": {Begin: 23*time.Hour + 30*time.Minute, End: 30 * time.Minute},
	} {
		if diff := cmp.Diff(want, hours(t, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "10:00", "10-11", "10:00-10:00", "24:00-01:00", "9:00-10:00", "10:00-25:00", "10:60-11:00", "10:00 - 11:00", "10:00-11:00-12:00"} {
		var h settings.Hours
		if err := h.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %v, want a fault", text, h)
		}
	}
}

func TestBrownoutValidate(t *testing.T) {
	from, until := at(t, "11-21 10:00:00"), at(t, "11-21 11:00:00")
	for name, tc := range map[string]struct {
		c    settings.Brownout
		want string // "" for none
	}{
		"one window":            {settings.Brownout{Dialects: both(), From: from, Until: until}, ""},
		"daily":                 {settings.Brownout{Dialects: both(), Daily: hours(t, "10:00-10:30")}, ""},
		"daily from a day":      {settings.Brownout{Dialects: both(), Daily: hours(t, "10:00-10:30"), From: from}, ""},
		"no dialect":            {settings.Brownout{From: from, Until: until}, "dialects: "},
		"nothing":               {settings.Brownout{Dialects: both()}, "from: is required"},
		"no end":                {settings.Brownout{Dialects: both(), From: from}, "until: is required"},
		"ends before it begins": {settings.Brownout{Dialects: both(), From: until, Until: from}, "until: must be after"},
		"no length":             {settings.Brownout{Dialects: both(), From: from, Until: from}, "until: must be after"},
		"weekdays of a window":  {settings.Brownout{Dialects: both(), From: from, Until: until, Weekdays: []settings.Weekday{"mon"}}, "weekdays: "},
		"long message":          {settings.Brownout{Dialects: both(), From: from, Until: until, Message: strings.Repeat("x", 401)}, "message: "},
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
