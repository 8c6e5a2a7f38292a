package ledger

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Unusual defines when the cost of an hour triggers an alert. The zero Unusual triggers none.
type Unusual struct {
	Times   int64         `yaml:"times" doc:"multiple of the usual hourly cost that triggers an alert for a key, a team or the organisation, at most once a day each; 0 disables these alerts. The usual cost is the highest of three figures: the average of this hour of the day over 14 days, the cost of the same hour a week ago, and the average of all hours of 14 days. Requires 7 days of history"`
	AtLeast catalog.Money `yaml:"at_least" doc:"minimum hourly cost that triggers an alert; default 1" unit:"USD"`
}

// Validate checks u and joins the errors it finds, each with its path.
func (u Unusual) Validate() error {
	var errs fault.Found
	errs.If(u.Times < 0 || u.Times == 1, "times", "must be 0 or at least 2")
	errs.If(u.AtLeast < 0, "at_least", "must not be negative")
	errs.If(u.Times == 0 && u.AtLeast != 0, "times", "is required if at_least is set")
	return errors.Join(errs...)
}

const (
	usualDays    = 14 // number of days that an hour is compared with
	minDays      = 7  // days of history that a scope must have
	defaultLeast = catalog.Money(1_000_000)
)

// usual holds the past costs of one scope in micro-dollars, today first: of the current hour of the day, and of whole days.
type usual struct {
	hours [usualDays + 1]int64
	days  [usualDays + 1]int64
}

// of returns the usual cost of the hour, or false if there is too little history.
func (u *usual) of() (micro int64, known bool) {
	first := usualDays // the first day with a cost, which may be incomplete
	for first > 0 && u.days[first] == 0 {
		first--
	}
	whole := first - 1
	if first == usualDays {
		whole = usualDays // the history began earlier
	}
	if whole < minDays {
		return 0, false
	}
	var hours, days int64
	for i := 1; i <= whole; i++ {
		hours, days = hours+u.hours[i], days+u.days[i]
	}
	n := int64(whole)
	return max(hours/n, u.hours[7], days/(24*n)), true
}

// unusual returns an alert for each scope with an unusually expensive current hour.
func (h *History) unusual(ctx context.Context, org string, u Unusual, state *State) ([]Alert, error) {
	if err := h.RollUp(ctx, org); err != nil { // passes roll up whole hours only
		return nil, err
	}
	now := state.Now.UTC()
	hours, days := make([]time.Time, usualDays+1), make([]time.Time, usualDays+1)
	for i := range hours {
		hours[i], days[i] = Hourly.Start(now).AddDate(0, 0, -i), Daily.Start(now).AddDate(0, 0, -i)
	}
	past := make(map[Scope]*usual)
	for unit, starts := range map[Unit][]time.Time{Hourly: hours, Daily: days} {
		rows, err := h.Store.Rollups(ctx, org, unit, starts)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			i := int(starts[0].Sub(r.Start) / Daily.Length())
			for _, s := range r.Item.Owner.Scopes() {
				if past[s] == nil {
					past[s] = new(usual)
				}
				if unit == Hourly {
					past[s].hours[i] += r.Micro
				} else {
					past[s].days[i] += r.Micro
				}
			}
		}
	}
	least := int64(cmp.Or(u.AtLeast, defaultLeast))
	var out []Alert
	for _, s := range slices.SortedFunc(maps.Keys(past), func(a, b Scope) int { return strings.Compare(a.String(), b.String()) }) {
		spent := past[s].hours[0]
		micro, known := past[s].of()
		if !known || spent < least || spent/u.Times <= micro {
			continue
		}
		a := Alert{Org: org, Scope: s, Used: spent, Usual: &micro, At: now}
		a.name = strings.Join([]string{"unusual", string(s.Kind), s.ID}, ":")
		a.rank = now.In(state.Zone.Location()).Format(time.DateOnly)
		a.ID = strings.Join([]string{org, a.name, a.rank}, ":")
		out = append(out, a)
	}
	return out, nil
}
