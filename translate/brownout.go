package translate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Brownout is one scheduled window or daily hours of refusals. Without daily it is the window from until;
// with daily it recurs, and from and until, either of which may be left out,
// bound the time in which it does.
type Brownout struct {
	Dialects []Dialect `yaml:"dialects,required" doc:"the retired interfaces it is for"`
	From     time.Time `yaml:"from" doc:"when it begins, RFC 3339"`
	Until    time.Time `yaml:"until" doc:"when it has ended, RFC 3339"`
	Daily    Hours     `yaml:"daily" doc:"hours of the day in UTC, as 10:00-10:30; past midnight as 23:30-00:30"`
	Weekdays []Weekday `yaml:"weekdays" doc:"days on which the daily hours begin; none is every day"`
	Message  string    `yaml:"message" doc:"what refused callers are told; empty says until when"`
}

// Dialect is a retired interface.
type Dialect string

// Values lists the dialects that can be browned out.
func (Dialect) Values() []string { return []string{"v1", "graphql"} }

// Weekday is a day of the week, in three small letters.
type Weekday string

// Values lists the days of the week as package time counts them.
func (Weekday) Values() []string { return []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} }

// Hours is a part of the day in UTC. The zero value is none.
type Hours struct {
	// Begin is the time since midnight, End that of the day's end; when it is
	// not after Begin, it is on the next day.
	Begin, End time.Duration
}

// day is how long a day of UTC is.
const day = 24 * time.Hour

// UnmarshalText reads "HH:MM-HH:MM". 24:00 is the end of the day.
func (h *Hours) UnmarshalText(text []byte) error {
	begin, end, ok := strings.Cut(string(text), "-")
	from, ok1 := timeOfDay(begin)
	to, ok2 := timeOfDay(end)
	if !ok || !ok1 || !ok2 || from == day {
		return errors.New("must be two times of the day like 10:00-10:30")
	}
	if from == to {
		return errors.New("must not begin and end at the same time; a whole day is 00:00-24:00")
	}
	*h = Hours{Begin: from, End: to}
	return nil
}

// timeOfDay reads HH:MM.
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

// MarshalText is the reverse of UnmarshalText.
func (h Hours) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%02d:%02d-%02d:%02d", h.Begin/time.Hour, h.Begin%time.Hour/time.Minute, h.End/time.Hour, h.End%time.Hour/time.Minute), nil
}

// length is how long the hours last.
func (h Hours) length() time.Duration {
	if h.End > h.Begin {
		return h.End - h.Begin
	}
	return h.End + day - h.Begin
}

// maxMessage bounds the text refused callers are told, in bytes.
const maxMessage = 400

// Validate reports every fault, each beginning with the path of the setting.
func (c Brownout) Validate() error {
	var faults fault.Found
	faults.If(len(c.Dialects) == 0, "dialects", "names no dialect")
	recurs := c.Daily != Hours{}
	switch {
	case !recurs && c.From.IsZero():
		faults.Add("from", "is required without daily")
	case !recurs && c.Until.IsZero():
		faults.Add("until", "is required without daily")
	case !c.Until.IsZero() && !c.Until.After(c.From):
		faults.Add("until", "is not after from")
	}
	faults.If(!recurs && len(c.Weekdays) > 0, "weekdays", "are for daily hours only")
	faults.If(len(c.Message) > maxMessage, "message", "is longer than %d bytes", maxMessage)
	return errors.Join(faults...)
}
