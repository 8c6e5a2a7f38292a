package ui

import (
	"net/url"
	"time"
)

// Names of time ranges, as values of the parameter range.
const (
	lastHour     = "1h"
	last24Hours  = "24h"
	last7Days    = "7d"
	last30Days   = "30d"
	monthToDate  = "mtd"
	lastMonth    = "last-month"
	customPeriod = "custom"
)

// period is the time range of a page. The zero value means that the page has no time range.
type period struct {
	// Name is the name of the range, and Chosen reports whether the address specifies it.
	Name   string
	Chosen bool
	// From is inclusive, To is exclusive. Both are in the organisation's zone, except bounds of UTC days.
	From, To time.Time
	// Days reports that From and To are the bounds of UTC days because hourly costs of the range are no longer stored.
	Days bool
	// Fault explains why From and To, which the address specifies, are not a range. It is empty for a valid range.
	Fault string
}

// newPeriod parses the time range of a page from the parameter "range", or from the parameters "from" and "to", which are times or dates. A
// date in "to" is inclusive. If the parameters are missing or malformed, the fallback range is used.
func newPeriod(q url.Values, fallback string, now time.Time, zone *time.Location) period {
	now = now.In(zone)
	if from, to := boundary(q.Get("from"), zone, 0), boundary(q.Get("to"), zone, 1); q.Get("range") == "" && !from.IsZero() {
		p := period{Name: customPeriod, From: from, To: to}
		switch {
		case !from.Before(now):
			p.Fault = "The time range starts in the future. Choose an earlier start."
		case !to.IsZero() && !from.Before(to):
			p.Fault = "The time range ends before it starts. Choose a later end or an earlier start."
		default:
			p.Chosen = true
		}
		if to.IsZero() || p.Chosen && to.After(now) {
			p.To = now
		}
		return p
	}
	p := period{Name: q.Get("range"), Chosen: true}
	if !p.set(now) {
		p = period{Name: fallback}
		p.set(now)
	}
	return p
}

// boundary parses a time or a date and adds days to a date. It returns the zero time if text is invalid.
func boundary(text string, zone *time.Location, days int) time.Time {
	if day, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return day.AddDate(0, 0, days)
	}
	at, _ := time.Parse(time.RFC3339, text)
	if at.IsZero() {
		return at
	}
	return at.In(zone)
}

// set sets From and To according to Name, and reports whether Name is a known range. Ranges of days start at midnight.
func (p *period) set(now time.Time) bool {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	p.To = now
	switch p.Name {
	case lastHour:
		p.From = now.Add(-time.Hour)
	case last24Hours:
		p.From = now.Add(-24 * time.Hour)
	case last7Days:
		p.From = today.AddDate(0, 0, -6)
	case last30Days:
		p.From = today.AddDate(0, 0, -29)
	case monthToDate:
		p.From = month
	case lastMonth:
		p.From, p.To = month.AddDate(0, -1, 0), month
	default:
		return false
	}
	return true
}

// Label returns a readable name of the range.
func (p period) Label() string {
	if p.Name == customPeriod {
		return p.From.Format("2 Jan 2006") + " – " + p.LastDay().Format("2 Jan 2006")
	}
	return map[string]string{
		lastHour: "Last hour", last24Hours: "Last 24 hours", last7Days: "Last 7 days", last30Days: "Last 30 days",
		monthToDate: "Month to date", lastMonth: "Last month",
	}[p.Name]
}

// LastDay returns the last day of the range.
func (p period) LastDay() time.Time { return p.To.Add(-time.Nanosecond) }

// stored returns the range for which costs are shown. The ledger keeps hourly costs for hourlyDays days, and then only the costs of UTC
// days. If the range requires hourly costs that are no longer stored, stored returns the UTC days with the same dates.
func (p period) stored(now time.Time, hourlyDays int) period {
	expired := func(hour time.Time) bool { return !hour.AddDate(0, 0, hourlyDays).Add(time.Hour).After(now) }
	if !expired(p.From.UTC().Truncate(time.Hour)) {
		return p
	}
	days, hours := p, p.Bucket() == "hour"
	days.From = utcDay(p.From)
	if end := utcDay(p.LastDay()).AddDate(0, 0, 1); !end.After(now) && (hours || expired(p.To.UTC().Truncate(24*time.Hour))) {
		days.To = end
	}
	days.Days = hours || !days.From.Equal(p.From) || !days.To.Equal(p.To)
	return days
}

// utcDay returns the start of the UTC day that has the same date as t in its own zone.
func utcDay(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// Bucket returns the bucket length of a chart over the range: "hour" for up to two days with hourly costs, otherwise "day".
func (p period) Bucket() string {
	if !p.Days && p.To.Sub(p.From) <= 48*time.Hour {
		return "hour"
	}
	return "day"
}

// Values returns the range as the parameters "from" and "to" of an endpoint. The range is extended to full hours, because costs are stored
// by hour.
func (p period) Values() url.Values {
	to := p.To.UTC().Truncate(time.Hour)
	if to.Before(p.To) {
		to = to.Add(time.Hour)
	}
	return url.Values{"from": {p.From.UTC().Truncate(time.Hour).Format(time.RFC3339)}, "to": {to.Format(time.RFC3339)}}
}

// Since returns the start of the range as the parameter "since" of an endpoint.
func (p period) Since() string { return p.From.UTC().Format(time.RFC3339) }

// zone returns the time zone of the organisation, or UTC if the gateway does not know the zone.
func (v *visit) zone() *time.Location {
	zone, err := time.LoadLocation(v.tenant().Zone) // "" is UTC
	if err != nil {
		return time.UTC
	}
	return zone
}

// Period returns the time range of the page.
func (v *visit) Period() period { return v.period }

// ZoneName returns the name of the organisation's time zone for scripts.
func (f *frame) ZoneName() string { return f.zone().String() }

// Zone returns the name of the page's time zone at the time of the request, such as CET, UTC+1.
func (f *frame) Zone() string {
	at := f.now().In(f.zone())
	name, offset := at.Zone()
	if offset == 0 {
		return "UTC"
	}
	return name + ", UTC" + at.Format("-07:00")
}

// Periods returns links to the page with other time ranges.
func (f *frame) Periods() (out []link) {
	for _, name := range []string{lastHour, last24Hours, last7Days, last30Days, monthToDate, lastMonth} {
		p := period{Name: name}
		out = append(out, link{
			Title: p.Label(),
			Path:  f.With("range", name, "from", "", "to", "", "cursor", "", "before", "", "page", ""), Here: name == f.period.Name,
		})
	}
	return out
}
