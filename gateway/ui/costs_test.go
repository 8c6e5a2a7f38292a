package ui_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Pages and downloads have the costs of each range for as long as daily costs are stored, in each time zone.
func TestOldCosts(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	late := time.Date(now.Year(), now.Month()+1, 28, 9, 30, 0, 0, time.UTC) // the first hours of the month before are no longer stored
	day := late.AddDate(0, 0, -50).Format(time.DateOnly)
	oneDay, sinceDay := "from="+day+"&to="+day, "from="+day
	for zone, noted := range map[string]string{"UTC": oneDay, "Europe/Berlin": oneDay + ", " + sinceDay + ", range=last-month"} {
		c := start(t, strings.Replace(text, "- id: acme\n", "- id: acme\n    zone: "+zone+"\n", 1), miniredis.RunT(t))
		c.ahead.Store(int64(late.Sub(now)))
		p := c.as(t, "root")
		for _, page := range []string{"", "cost", "cost.csv", "focus.csv"} {
			for _, span := range []string{oneDay, sinceDay, "range=last-month", "range=30d", "range=mtd"} {
				status, _, body := p.get(c.URL + "/ui/" + page + "?org=acme&" + span)
				if status != http.StatusOK || strings.Contains(body, "previous period are no longer stored") {
					t.Errorf("%s, %s, %s: %d %s", zone, page, span, status, body)
				}
				note := strings.Contains(body, "Hourly costs of this period are no longer stored")
				if want := slices.Contains(strings.Split(noted, ", "), span); page == "cost" && note != want {
					t.Errorf("%s, %s: a note about days: %t, want %t", zone, span, note, want)
				}
			}
		}
	}
}

// A time range that is not one is refused, and the form keeps it.
func TestRangesThatAreNone(t *testing.T) {
	t.Parallel()
	c := start(t, text, miniredis.RunT(t))
	p := c.as(t, "root")
	day := func(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly) }
	for _, tt := range []struct{ from, to, want string }{
		{day(-1), day(-30), "The time range ends before it starts."},
		{day(2), day(3), "The time range starts in the future."},
	} {
		for _, page := range []string{"", "cost", "cost.csv", "focus.csv", "requests"} {
			status, _, body := p.get(c.URL + "/ui/" + page + "?org=acme&from=" + tt.from + "&to=" + tt.to)
			_, form, _ := strings.Cut(body, `<div id="period"`)
			if status != http.StatusBadRequest || !strings.Contains(body, `role="alert"`) || !strings.Contains(form, tt.want) ||
				!strings.Contains(form, `value="`+tt.from+`" required aria-invalid`) || !strings.Contains(form, `value="`+tt.to+`" required aria-invalid`) {
				t.Errorf("%s from %s to %s: %d %s", page, tt.from, tt.to, status, body)
			}
			if strings.Contains(body, `href="/ui/cost?from`) {
				t.Errorf("%s: other pages get the time range", page)
			}
		}
	}
}

// The first day with costs stays the same on the day after.
func TestFirstDay(t *testing.T) {
	t.Parallel()
	store := miniredis.RunT(t)
	c := start(t, text, store)
	now := time.Now().UTC()
	noon := time.Date(now.Year(), now.Month(), now.Day()+1, 12, 0, 0, 0, time.UTC)
	want := "No cost recorded before " + noon.Format("2 Jan 2006")
	for day := range 2 {
		store.SetTime(noon.AddDate(0, 0, day))
		c.ahead.Store(int64(noon.AddDate(0, 0, day).Sub(now)))
		if day == 0 {
			c.pod(t, "1")
			store.SetTime(noon.Add(time.Minute))
		}
		if status, _, body := c.as(t, "root").get(c.URL + "/ui/cost?org=acme"); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("day %d: %d %s, want %q", day, status, body, want)
		}
	}
}
