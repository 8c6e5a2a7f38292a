package settings

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Brownout schedules the refusal of calls to legacy dialects, so that callers notice the planned shutdown. If Daily is zero, calls are
// refused from From to Until. Otherwise calls are refused in the time range Daily, on all days or on those in Weekdays; From and Until are
// then optional bounds.
type Brownout struct {
	Dialects []Dialect `yaml:"dialects,required" doc:"interfaces that refuse calls"`
	From     time.Time `yaml:"from" doc:"start time (RFC 3339)"`
	Until    time.Time `yaml:"until" doc:"end time (RFC 3339)"`
	Daily    Hours     `yaml:"daily" doc:"daily time range in UTC, such as 10:00-10:30 or 23:30-00:30"`
	Weekdays []Weekday `yaml:"weekdays" doc:"weekdays on which the daily range begins; default every day"`
	Message  string    `yaml:"message" doc:"text of refusals; default a text with the end time"`
}

// Dialect is the name of a legacy API: "v1" or "graphql".
type Dialect string

// Values lists the dialects that a brownout can name.
func (Dialect) Values() []string { return []string{"v1", "graphql"} }

// Weekday is an English day of the week, abbreviated to three lower-case letters.
type Weekday string

// Values lists the weekdays, indexed by [time.Weekday].
func (Weekday) Values() []string { return []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} }

// Hours is a daily time range in UTC. The zero Hours means that the range is unset.
type Hours struct {
	// Begin and End are durations since midnight. If End is not after Begin, the range ends on the next day.
	Begin, End time.Duration
}

// day is the length of a UTC day.
const day = 24 * time.Hour

// UnmarshalText parses "HH:MM-HH:MM". It accepts 24:00 as the end of the day.
func (h *Hours) UnmarshalText(text []byte) error {
	begin, end, ok := strings.Cut(string(text), "-")
	from, ok1 := timeOfDay(begin)
	to, ok2 := timeOfDay(end)
	if !ok || !ok1 || !ok2 || from == day {
		return errors.New("must be a time range such as 10:00-10:30")
	}
	if from == to {
		return errors.New("must not begin and end at the same time; for a whole day, write 00:00-24:00")
	}
	*h = Hours{Begin: from, End: to}
	return nil
}

// timeOfDay parses HH:MM.
func timeOfDay(s string) (time.Duration, bool) {
	if s == "24:00" {
		return day, true
	}
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		return 0, false
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, true
}

// MarshalText formats h as "HH:MM-HH:MM".
func (h Hours) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%02d:%02d-%02d:%02d", h.Begin/time.Hour, h.Begin%time.Hour/time.Minute, h.End/time.Hour,
		h.End%time.Hour/time.Minute), nil
}

// maxBrownoutMessage is the maximum length of Brownout.Message in bytes.
const maxBrownoutMessage = 400

// Validate returns all faults of c, joined. Their paths are relative to c.
func (c Brownout) Validate() error {
	var faults fault.Found
	faults.If(len(c.Dialects) == 0, "dialects", "must contain v1, graphql or both")
	recurs := c.Daily != Hours{}
	switch {
	case !recurs && c.From.IsZero():
		faults.Add("from", "is required if daily is not set")
	case !recurs && c.Until.IsZero():
		faults.Add("until", "is required if daily is not set")
	case !c.Until.IsZero() && !c.Until.After(c.From):
		faults.Add("until", "must be after from")
	}
	faults.If(!recurs && len(c.Weekdays) > 0, "weekdays", "must be empty if daily is not set")
	faults.If(len(c.Message) > maxBrownoutMessage, "message", "must have at most %d bytes", maxBrownoutMessage)
	return errors.Join(faults...)
}
