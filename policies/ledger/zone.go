package ledger

import (
	"fmt"
	"time"
)

// Zone is the time zone that determines when days, weeks, months and quarters begin. The zero Zone is UTC.
type Zone struct{ location *time.Location }

// Zones returns the zone of an organisation. A nil Zones returns UTC.
type Zones func(org string) Zone

// Of returns the zone of an organisation.
func (z Zones) Of(org string) Zone {
	if z == nil {
		return Zone{}
	}
	return z(org)
}

// UnmarshalText implements encoding.TextUnmarshaler. The text is a name in the IANA time zone database.
func (z *Zone) UnmarshalText(text []byte) error {
	location, err := time.LoadLocation(string(text))
	if err != nil || location == time.Local {
		return fmt.Errorf(`%q is not a time zone: use a name such as "Europe/Berlin"`, text)
	}
	z.location = location
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (z Zone) MarshalText() ([]byte, error) {
	if z.location == nil {
		return nil, nil
	}
	return []byte(z.location.String()), nil
}

// Location returns the zone as a [time.Location].
func (z Zone) Location() *time.Location {
	if z.location == nil {
		return time.UTC
	}
	return z.location
}

// Calendar holds the starts of consecutive days, weeks, months and quarters around a time, in Unix milliseconds and in ascending order; see
// [Zone.Calendar]. Each period ends when the next one begins. The last list is for the total, whose only period begins at 0 and never ends.
type Calendar [periods][]int64

// Calendar returns the calendar for a time. It contains the starts of the previous, the current and the next day and the end of the next
// day. It also contains the weeks (starting on Monday, as in ISO 8601), months and quarters that contain these days, at most two of each
// kind.
func (z Zone) Calendar(at time.Time) Calendar {
	y, m, d := at.In(z.Location()).Date()
	var c Calendar
	for i := -1; i <= 2; i++ {
		c[day] = append(c[day], z.begin(y, m, d+i))
	}
	before := time.Date(y, m, d-1, 0, 0, 0, 0, time.UTC)
	y, m, d = before.Date()
	monday := d - (int(before.Weekday())+6)%7
	first := m - (m-1)%3
	for i := range 3 {
		c[week] = append(c[week], z.begin(y, m, monday+7*i))
		c[month] = append(c[month], z.begin(y, m+time.Month(i), 1))
		c[quarter] = append(c[quarter], z.begin(y, first+time.Month(3*i), 1))
	}
	c[total] = []int64{0, forever}
	return c
}

// begin returns the first moment of a day. If a clock change skips midnight, the day begins at the change. If midnight occurs twice, the
// day begins at the first of them.
func (z Zone) begin(y int, m time.Month, d int) int64 {
	t := time.Date(y, m, d, 0, 0, 0, 0, z.Location())
	from, to := t.ZoneBounds()
	if h, minute, s := t.Clock(); h+minute+s > 0 { // midnight does not exist: t is off by the clock change
		if h < 12 {
			return from.UnixMilli()
		}
		return to.UnixMilli()
	}
	if !from.IsZero() {
		_, offset := t.Zone()
		_, before := from.Add(-1).Zone()
		if first := t.Add(time.Duration(offset-before) * time.Second); first.Before(from) {
			t = first
		}
	}
	return t.UnixMilli()
}

// day returns the start of the day that contains a time, in Unix milliseconds.
func (z Zone) day(at time.Time) int64 {
	y, m, d := at.In(z.Location()).Date()
	return z.begin(y, m, d)
}

// Day returns the start and the end of the calendar's middle day.
func (c *Calendar) Day() [2]int64 { return [2]int64(c[day][1:3]) }

// bounds returns the start and the end of the period that contains a time. For a time after the calendar, both are the end of the
// calendar.
func (c *Calendar) bounds(which int, ms int64) (start, end int64) {
	for _, end = range c[which] {
		if end > ms {
			return start, end
		}
		start = end
	}
	return start, end
}

// days returns the ends of the days from the day of at to the day that ends at end.
func (z Zone) days(at, end time.Time) []time.Time {
	y, m, d := at.In(z.Location()).Date()
	for list := []time.Time(nil); ; d++ {
		next := time.UnixMilli(z.begin(y, m, d+1)).In(z.Location())
		if list = append(list, next); !next.Before(end) {
			return list
		}
	}
}

// Ends returns the ends of the current periods, and the zero time for the total, which has no end.
func (z Zone) Ends(at time.Time) (ends [periods]time.Time) {
	c := z.Calendar(at)
	for i := range ends {
		_, end := c.bounds(i, at.UnixMilli())
		if end == forever {
			continue
		}
		ends[i] = time.UnixMilli(end).In(z.Location())
	}
	return ends
}
