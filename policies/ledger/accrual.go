package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// AccrualKind is the kind of an [AccrualAdjustment].
type AccrualKind string

// The kinds of adjustments.
const (
	// Credit gives a positive amount back.
	Credit AccrualKind = "credit"
	// Correction adds an amount, or subtracts a negative one.
	Correction AccrualKind = "correction"
	// Reset sets the period and every shorter period within it to zero, and subtracts the amount of the period from longer periods and
	// from a week that began before it, down to zero at most.
	Reset AccrualKind = "reset"
)

// AccrualPeriod is a calendar period in which costs accrue, or the total.
type AccrualPeriod string

// The periods.
const (
	PeriodDay     AccrualPeriod = "day"
	PeriodWeek    AccrualPeriod = "week"
	PeriodMonth   AccrualPeriod = "month"
	PeriodQuarter AccrualPeriod = "quarter"
	PeriodTotal   AccrualPeriod = "total"
)

// Index is the position of the period among the periods of an account, from 0. An unknown period is the day.
func (p AccrualPeriod) Index() int {
	return max(day, slices.Index([]AccrualPeriod{PeriodDay, PeriodWeek, PeriodMonth, PeriodQuarter, PeriodTotal}, p))
}

// AccrualAdjustment is an operator's change of the cost that an owner has accrued in a current period. It changes
// the owner's narrowest scope and the scopes that contain it, as a cost of the owner would. It changes each longer period
// by the same amount; a month or quarter that began within the week falls to zero at most. The adjustment enters the history as an item of [KindAdjustment].
type AccrualAdjustment struct {
	// ID names the request: a repeat with the same ID changes nothing.
	ID string
	// Owner names the scope: a key with its team, a team, or the organisation.
	Owner  Owner
	Kind   AccrualKind
	Period AccrualPeriod
	// Micro is the amount, in micro-dollars: above 0 for a Credit, not 0 for a Correction, 0 for a Reset.
	Micro  int64
	Reason string
}

// AccrualStatus is the outcome of an [AccrualAdjustment].
type AccrualStatus uint8

const (
	// AccrualApplied means that the adjustment was made.
	AccrualApplied AccrualStatus = iota
	// AccrualRepeated means that the same adjustment was made before.
	AccrualRepeated
	// AccrualConflict means that another adjustment has the ID; nothing was changed.
	AccrualConflict
	// AccrualBelowZero means that less has accrued than would be subtracted; nothing was changed.
	AccrualBelowZero
	// AccrualClosed means that the ledger is not complete; nothing was changed.
	AccrualClosed
)

// AccrualOutcome is the result of an [AccrualAdjustment], by the account of its narrowest scope, in micro-dollars.
type AccrualOutcome struct {
	Status AccrualStatus
	// Change was added. Accrued are the accrued costs afterwards, or when the adjustment was first made.
	Change Accrued
	Accrued
}

// AccrualStore changes accrued costs. Each method is one atomic step, and safe to repeat.
type AccrualStore interface {
	// AdjustAccrual makes an adjustment. Its ID is remembered for [AccrualRetention].
	AdjustAccrual(ctx context.Context, org string, a *AccrualAdjustment) (AccrualOutcome, error)
	// MoveAccrual moves accrued costs between teams.
	MoveAccrual(ctx context.Context, org string, m *AccrualMove) (AccrualOutcome, error)
}

// AccrualRetention is how long the IDs of adjustments are remembered, and those of moves but for [AccrualMove.Permanent].
const AccrualRetention = 90 * 24 * time.Hour

// AccrualMove moves what a team has accrued in the current periods to another team. The organisation's account stays.
type AccrualMove struct {
	From, To string // teams
	// Key limits the move to what the key has accrued, as far as the team From has accrued it; "" moves everything, and
	// removes an account that is empty then. The ID of a move with a Key is that of [AccrualAdjustment]; others need none.
	Key, ID string
	// Permanent has the ID remembered without an end.
	Permanent bool
}

// KindAdjustment is the kind of adjustments in the history.
const KindAdjustment = "adjustment"

// Metadata describes the adjustment to the history; see [NewRunItem].
func (a *AccrualAdjustment) Metadata() Metadata {
	return Metadata{Name: string(a.Kind) + ": " + a.Reason, Operation: string(a.Period), Decision: a.ID}
}

// Fingerprint describes the adjustment without its reason: two with the same ID and Request are one.
func (a *AccrualAdjustment) Fingerprint() string {
	return fmt.Sprintf("%q %q %s %s %d", a.Owner.Team, a.Owner.Key, a.Kind, a.Period, a.Micro)
}

// changes returns the amount that the adjustment adds to each period of an account.
func (a *AccrualAdjustment) changes(own *account) (change [periods]int64) {
	first, micro := a.Period.Index(), a.Micro
	switch a.Kind {
	case Credit:
		micro = -micro
	case Reset:
		micro = -own.periods[first].accrued
	case Correction:
	}
	for i, p := range own.periods {
		switch {
		case a.Kind == Reset && i < first && p.start >= own.periods[first].start: // within the period
			change[i] = -p.accrued
		case a.Kind == Reset, first == week && (i == month || i == quarter): // the week may have begun before them
			change[i] = max(micro, -p.accrued)
		case i >= first:
			change[i] = micro
		}
	}
	return change
}

// adjustments are those of the day, by day, with what is left of each.
type adjustments map[time.Time][]*Rollup

// adjustmentsIn returns the adjustments in roll-ups of days, but for those of longer periods: they changed no day.
func adjustmentsIn(days []Rollup) adjustments {
	all := make(adjustments)
	for _, r := range days {
		if r.Item.Kind == KindAdjustment && r.Item.Period == PeriodDay {
			all[r.Start] = append(all[r.Start], &r)
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b *Rollup) int { return a.Item.compare(&b.Item) })
	}
	return all
}

// superseded takes adjustments back that a bill makes as well. Bills correct a wrong price by themselves when its hour has
// closed: a correction in the direction of an adjustment of the same day and scope replaces as much of the adjustment.
// Otherwise the mistake would be corrected twice.
func (a adjustments) superseded(hour time.Time, billed []Rollup) (back []Rollup) {
	for _, b := range billed {
		for _, left := range a[Daily.Start(hour)] {
			if left.Micro < 0 != (b.Micro < 0) || !left.Item.covers(b.Item.Owner) {
				continue
			}
			part := max(left.Micro, b.Micro) // of two negative amounts, the smaller one
			if b.Micro > 0 {
				part = min(left.Micro, b.Micro)
			}
			if part == 0 {
				continue
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
