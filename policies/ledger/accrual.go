package ledger

import (
	"fmt"
	"slices"
	"time"
)

// AccrualKind is the kind of an [AccrualAdjustment].
type AccrualKind string

// Kinds of adjustments.
const (
	// Credit subtracts a positive amount.
	Credit AccrualKind = "credit"
	// Correction adds an amount, which may be negative.
	Correction AccrualKind = "correction"
	// Reset sets the period, and every shorter period within it, to zero. It subtracts the period's amount from longer periods, and from a
	// week that began before the period, but these do not fall below zero.
	Reset AccrualKind = "reset"
)

// AccrualPeriod is a calendar period for which accrued costs are summed, or the total over all time.
type AccrualPeriod string

// Accrual periods. PeriodTotal is not a period: it covers all time.
const (
	PeriodDay     AccrualPeriod = "day"
	PeriodWeek    AccrualPeriod = "week"
	PeriodMonth   AccrualPeriod = "month"
	PeriodQuarter AccrualPeriod = "quarter"
	PeriodTotal   AccrualPeriod = "total"
)

// Index returns the position of the period in an account, from 0. It returns the index of the day for an unknown period.
func (p AccrualPeriod) Index() int {
	return max(day, slices.Index([]AccrualPeriod{PeriodDay, PeriodWeek, PeriodMonth, PeriodQuarter, PeriodTotal}, p))
}

// AccrualAdjustment changes the cost that an owner has accrued in a current period. It changes the owner's narrowest scope and all scopes
// that contain it, in the same way as a cost of the owner does. Each longer period changes by the same amount, except that a month or
// quarter that began within the week does not fall below zero. The adjustment is recorded in the history as an item of [KindAdjustment].
type AccrualAdjustment struct {
	// ID identifies the request: repeating an adjustment with the same ID changes nothing.
	ID string
	// Owner selects the scope: a key with its team, a team, or the organisation.
	Owner  Owner
	Kind   AccrualKind
	Period AccrualPeriod
	// Micro is the amount in micro-dollars: positive for a Credit, nonzero for a Correction, 0 for a Reset.
	Micro  int64
	Reason string
}

// AccrualStatus is the outcome of an [AccrualAdjustment].
type AccrualStatus uint8

const (
	// AccrualApplied means that the adjustment was applied.
	AccrualApplied AccrualStatus = iota
	// AccrualRepeated means that the same adjustment was applied earlier.
	AccrualRepeated
	// AccrualConflict means that a different adjustment has the same ID, or that a move was computed from earlier roll-ups; nothing was
	// changed.
	AccrualConflict
	// AccrualBelowZero means that the scope has accrued less than the adjustment would subtract; nothing was changed.
	AccrualBelowZero
	// AccrualClosed means that the ledger is incomplete and must be rebuilt first; nothing was changed.
	AccrualClosed
)

// AccrualOutcome is the outcome of an [AccrualAdjustment] for its narrowest scope, in micro-dollars.
type AccrualOutcome struct {
	Status AccrualStatus
	// Change is the amount added to each period. Accrued is the accrued cost after the adjustment. If the adjustment is repeated, both have
	// the values from its first application.
	Change Accrued
	Accrued
}

// AccrualRetention is the retention time of the IDs of adjustments.
const AccrualRetention = 90 * 24 * time.Hour

// AccrualMove moves the costs that a team has accrued in the current periods to another team. The organisation's account does not
// change.
type AccrualMove struct {
	From, To string // teams
	// Key limits the move to Amounts, the part of the key's accrued cost that the account of the team From contains. An empty Key moves all
	// costs of the team, and removes the account of the team if it is empty afterwards.
	Key     string
	Amounts Accrued
	// Version is the version of the roll-ups that the move was computed from. The move is rejected if the roll-ups have changed since.
	Version int64
	// Transfers replaces [RollupProgress.Transfers]. Nothing is replaced if the team or the key has no account.
	Transfers Transfers
}

// KindAdjustment is the item kind of adjustments in the history.
const KindAdjustment = "adjustment"

// Metadata returns the description of the adjustment for the history; see [NewRunItem].
func (a *AccrualAdjustment) Metadata() Metadata {
	return Metadata{Name: string(a.Kind) + ": " + a.Reason, Operation: string(a.Period), Decision: a.ID}
}

// Fingerprint encodes the adjustment without its reason. Two adjustments with the same ID and Fingerprint are the same request.
func (a *AccrualAdjustment) Fingerprint() string {
	return fmt.Sprintf("%q %q %s %s %d", a.Owner.Team, a.Owner.Key, a.Kind, a.Period, a.Micro)
}

// adjustments holds the adjustments of the cost of a day, by the start of the day in the zone of the organisation. It contains the part of
// each adjustment that has not been superseded by bills.
type adjustments struct {
	zone Zone
	days map[int64][]*Rollup
}

// adjustmentsIn returns the adjustments in hourly roll-ups. It omits adjustments of longer periods, which changed no day. An adjustment
// belongs to the day in which its hour began.
func adjustmentsIn(hours []Rollup, z Zone) adjustments {
	all := adjustments{zone: z, days: make(map[int64][]*Rollup)}
	for _, r := range hours {
		if r.Item.Kind != KindAdjustment || r.Item.Period != PeriodDay {
			continue
		}
		start := z.day(r.Start)
		list := all.days[start]
		if i := slices.IndexFunc(list, func(known *Rollup) bool { return known.Item == r.Item }); i >= 0 {
			list[i].Micro += r.Micro
			continue
		}
		all.days[start] = append(list, &r)
	}
	for _, list := range all.days {
		slices.SortFunc(list, func(a, b *Rollup) int { return a.Item.compare(&b.Item) })
	}
	return all
}

// superseded reverses the part of an adjustment that a bill also makes, because otherwise the mistake would be corrected twice. After an
// hour has closed, its bill corrects a wrong price without an adjustment. A bill correction in the same direction as an adjustment of the
// same day and scope therefore replaces that part of the adjustment.
func (a adjustments) superseded(hour time.Time, billed []Rollup) (back []Rollup) {
	for _, b := range billed {
		for _, left := range a.days[a.zone.day(hour)] {
			opposite := left.Micro < 0 != (b.Micro < 0)
			if left.Micro == 0 || b.Micro == 0 || opposite || !left.Item.covers(b.Item.Owner) {
				continue
			}
			part := max(left.Micro, b.Micro) // of two negative amounts, the one closer to zero
			if b.Micro > 0 {
				part = min(left.Micro, b.Micro)
			}
			left.Micro -= part
			b.Micro -= part
			back = append(back, Rollup{Start: hour, Item: left.Item, Micro: -part})
		}
	}
	return back
}

// covers reports whether the scope of an adjustment contains an owner.
func (i *Item) covers(o Owner) bool {
	switch {
	case i.Key != "":
		return i.Key == o.Key
	case i.Team != "":
		return i.Team == o.Team
	}
	return true
}
