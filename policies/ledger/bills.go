package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Bill is the platform's bill for a resource in the hour beginning at Hour, in micro-dollars.
type Bill struct {
	Resource string
	Kind     operation.Kind
	Hour     time.Time
	Micro    int64
}

// Bills corrects counted costs to match the platform's bills once an hour is closed. It corrects both the roll-ups of the hour and the
// owners' accrued costs. A correction is the bill minus the counted cost of the hour, so a repeated correction adds nothing.
// [Posting.Version] prevents two gateways from posting the same difference. Bills is safe for concurrent use.
type Bills struct {
	Store    Store
	Platform Platform
	// Delay is the time from the end of an hour until its bills are final; 0 disables corrections.
	Delay     time.Duration
	Retention Retention

	lastAsked sync.Map // organisation to the time of its latest bill request
}

// Corrections summarizes the changes that made counted costs match the platform's bills.
type Corrections struct {
	// Hours is the number of corrected hours, summed over resources.
	Hours int
	// Added and Subtracted are the amounts added to and subtracted from the counted costs, in micro-dollars.
	Added, Subtracted int64
}

const (
	// billsNotice is the name of the notice that stores the start and end of the range of hours whose costs were compared with bills.
	billsNotice = "bills"
	// gapNotice is the name of the notice that stores the hours whose roll-ups were lost although their accrued costs were restored.
	gapNotice = "history gap"
	// billsRevised is the time after which a compared hour is compared once more, because platforms revise their bills.
	billsRevised = 24 * time.Hour
	// billsStep limits the time range of one comparison.
	billsStep = 24 * time.Hour
	// billsPause is the minimum time between two bill requests for one organisation.
	billsPause = 5 * time.Minute
	// billsSlack is the difference, in micro-dollars, that rounding alone can cause between a counted cost and a bill.
	billsSlack = 2
)

// Follow compares the costs of each hour that has closed since the last call with the bills for the hour. It also compares earlier hours
// again, because the platform may have revised their bills. It starts with the first whole hour after the first call.
func (b *Bills) Follow(ctx context.Context, org string, now time.Time) (c Corrections, err error) {
	if b.Delay == 0 {
		return c, nil
	}
	noticed, err := b.Store.Noticed(ctx, org)
	if err != nil {
		return c, err
	}
	next := Hourly.Start(now).Add(time.Hour)
	begin, until, _ := strings.Cut(noticed[billsNotice], " ")
	first, err1 := time.Parse(time.RFC3339, begin)
	last, err2 := time.Parse(time.RFC3339, until)
	if err1 != nil || err2 != nil {
		return c, b.compared(ctx, org, next, next)
	}
	if asked, ok := b.lastAsked.Load(org); ok && now.Sub(asked.(time.Time)).Abs() < billsPause { //nolint:forcetypeassert // nothing else is stored
		return c, nil
	}
	from := last.Add(-billsRevised)
	for _, earliest := range []time.Time{first, next.AddDate(0, 0, -b.Retention.Hourly)} {
		if from.Before(earliest) {
			from = earliest
		}
	}
	to := Hourly.Start(now.Add(-b.Delay))
	if !to.After(last) || !to.After(from) {
		return c, nil
	}
	if last.Before(from) {
		last = from
	}
	if step := last.Add(billsStep); step.Before(to) {
		to = step
	}
	b.lastAsked.Store(org, now)
	bills, err := b.Platform.Bills(ctx, org, from, to)
	if err != nil {
		return c, fmt.Errorf("correct costs of %s: %w", org, err)
	}
	for range rollTries {
		done, err := b.correct(ctx, org, from, to, bills, &c)
		if err != nil {
			return c, fmt.Errorf("correct costs of %s: %w", org, err)
		}
		if done {
			b.lastAsked.Delete(org)
			return c, b.compared(ctx, org, first, to)
		}
	}
	return c, fmt.Errorf("correct costs of %s: %w: other gateways changed the costs at the same time", org, ErrUnavailable)
}

// compared records that the costs between first and last were compared with bills.
func (b *Bills) compared(ctx context.Context, org string, first, last time.Time) error {
	return b.Store.Notice(ctx, org, billsNotice, span(first, last))
}

// lost records, before a ledger is rebuilt, which roll-ups the store has lost: all hours after the latest one that it still has.
func (b *Bills) lost(ctx context.Context, org string, state *State) error {
	if b.Delay == 0 || state.Lost != LostAll && state.Lost != LostChanges && state.Lost != LostServer {
		return nil
	}
	from, to, err := b.gap(ctx, org)
	if err != nil {
		return err
	}
	rolled, err := b.Store.RollupProgress(ctx, org)
	if err != nil {
		return err
	}
	end := Hourly.Start(state.Now).Add(time.Hour)
	if to.Equal(end) {
		return nil // recorded by an earlier attempt
	}
	since := quarterOf(state)
	if !rolled.Until.IsZero() {
		since = Hourly.Start(rolled.Until)
	}
	if from.IsZero() || since.Before(from) {
		from = since
	}
	return b.Store.Notice(ctx, org, gapNotice, span(from, end))
}

// scheduleAll schedules a comparison of all hours since the start of the quarter for which hourly roll-ups are kept. It is called after a
// rebuild, because the bills contain costs that no gateway remembered.
func (b *Bills) scheduleAll(ctx context.Context, org string, state *State) error {
	if b.Delay == 0 {
		return nil
	}
	if !slices.ContainsFunc(state.Balances, func(a Balance) bool { return a.Scope.Kind == KindOrg && a.Total > 0 }) {
		if err := b.Store.Notice(ctx, org, gapNotice, ""); err != nil {
			return err
		}
	}
	first := quarterOf(state)
	return b.compared(ctx, org, first, first)
}

// quarterOf returns the first hour of the quarter that contains the state's time.
func quarterOf(state *State) time.Time {
	c := state.Zone.Calendar(state.Now)
	start, _ := c.bounds(quarter, state.Now.UnixMilli())
	return Hourly.Start(time.UnixMilli(start)).UTC()
}

// gap returns the hours whose roll-ups were lost, or two zero times.
func (b *Bills) gap(ctx context.Context, org string) (from, to time.Time, err error) {
	noticed, err := b.Store.Noticed(ctx, org)
	if err != nil || noticed[gapNotice] == "" {
		return from, to, err
	}
	begin, end, _ := strings.Cut(noticed[gapNotice], " ")
	if from, err = time.Parse(time.RFC3339, begin); err == nil {
		to, err = time.Parse(time.RFC3339, end)
	}
	return from, to, err
}

// span formats a range for the notice store.
func span(from, to time.Time) string {
	return from.UTC().Format(time.RFC3339) + " " + to.UTC().Format(time.RFC3339)
}

// correct posts the differences hour by hour. It returns false if another posting was made in the meantime.
func (b *Bills) correct(ctx context.Context, org string, from, to time.Time, bills []Bill, c *Corrections) (bool, error) {
	at, err := b.Store.RollupProgress(ctx, org)
	if err != nil || at.Until.Before(to) {
		return false, err
	}
	ledger, err := b.Store.Show(ctx, org)
	if err != nil {
		return false, err
	}
	first, last := ledger.Zone.Calendar(from), ledger.Zone.Calendar(to.Add(-time.Hour))
	days := hoursBetween(time.UnixMilli(first.Day()[0]), time.UnixMilli(last.Day()[1])) // whole days, for their adjustments
	around, err := b.Store.Rollups(ctx, org, Hourly, days)
	if err != nil {
		return false, err
	}
	gapFrom, gapTo, err := b.gap(ctx, org)
	if err != nil {
		return false, err
	}
	items, made := itemsOf(&ledger, around), adjustmentsIn(around, ledger.Zone)
	for _, hour := range hoursBetween(from, to) {
		diffs := differences(hour, around, bills, items)
		// Post additions first, because accrued costs cannot fall below zero.
		diffs = append(diffs, made.superseded(hour, diffs)...)
		slices.SortStableFunc(diffs, func(a, b Rollup) int { return cmp.Compare(b.Micro, a.Micro) })
		for billed := range slices.Chunk(diffs, rollSize) {
			quiet := !hour.Before(gapFrom) && hour.Before(gapTo)
			p := &Posting{
				Version: at.Version, Until: at.Until, Retention: b.Retention, Billed: billed, Transfers: at.Transfers, HistoryOnly: quiet,
			}
			if done, err := b.Store.Post(ctx, org, p); err != nil || !done {
				return false, err
			}
			at.Version++
			for _, r := range billed {
				if r.Item.Kind == KindAdjustment {
					continue
				}
				c.Hours++
				c.Added, c.Subtracted = c.Added+max(0, r.Micro), c.Subtracted+max(0, -r.Micro)
			}
		}
	}
	return true, nil
}

// hoursBetween returns the starts of the hours that overlap a range.
func hoursBetween(from, to time.Time) (hours []time.Time) {
	for hour := Hourly.Start(from); hour.Before(to); hour = hour.Add(time.Hour) {
		hours = append(hours, hour)
	}
	return hours
}

// itemsOf returns the known items by resource: from the ledger, or from the roll-ups for resources that no longer exist.
func itemsOf(ledger *State, counted []Rollup) map[string]Item {
	items := make(map[string]Item)
	for _, r := range counted {
		if IsCounted(operation.Kind(r.Item.Kind)) {
			items[r.Item.Resource] = r.Item
		}
	}
	for _, r := range ledger.Resources {
		items[r.ID] = NewItem(r.ID, r.Kind, r.Owner, r.Metadata)
	}
	return items
}

// differences returns the billed cost minus the counted cost of an hour, for each item; it is negative if the bill is lower.
//
// A cost without a bill is left unchanged: bills arrive late, and a correction that frees budget must be certain. Only endpoints may
// cost nothing. An idle endpoint is distinguished from a missing bill by the presence of other bills.
func differences(hour time.Time, counted []Rollup, bills []Bill, items map[string]Item) []Rollup {
	billed, closed := make(map[string]int64), false
	was := make(map[string][]Rollup)
	for _, bill := range bills {
		if bill.Hour.Equal(hour) {
			billed[bill.Resource] += bill.Micro
			closed = true
		}
	}
	sums := make(map[string]int64)
	for _, r := range counted {
		if r.Start.Equal(hour) {
			r.Item.Terms = Terms{} // bills have no rates
			sums[r.Item.Resource] += r.Micro
			rows := was[r.Item.Resource]
			if i := slices.IndexFunc(rows, func(known Rollup) bool { return known.Item == r.Item }); i >= 0 {
				rows[i].Micro += r.Micro
			} else {
				was[r.Item.Resource] = append(rows, r)
			}
		}
	}
	for _, bill := range bills {
		if id := bill.Resource; bill.Hour.Equal(hour) && was[id] == nil {
			item, known := items[id]
			if !known { // unknown owner: charge the organisation
				item = Item{Resource: id, Kind: string(bill.Kind)}
			}
			was[id] = []Rollup{{Start: hour, Item: item}}
		}
	}
	var out []Rollup
	for id, rows := range was {
		micro, known := billed[id]
		known = known || closed && operation.Kind(rows[0].Item.Kind) == operation.KindEndpoint
		if diff := micro - sums[id]; known && max(diff, -diff) > billsSlack {
			out = append(out, share(rows, sums[id], max(0, micro))...)
		}
	}
	slices.SortFunc(out, func(a, b Rollup) int { return a.Item.compare(&b.Item) })
	return out
}

// share splits a resource's correction among its roll-ups, in proportion to the counted cost of each owner.
func share(rows []Rollup, sum, billed int64) []Rollup {
	slices.SortFunc(rows, func(a, b Rollup) int { return int(min(1, max(-1, b.Micro-a.Micro))) })
	if sum == 0 {
		rows = rows[:1]
	}
	out, left := make([]Rollup, 0, len(rows)), billed
	for i, r := range slices.Backward(rows) { // the largest comes last and takes the remainder
		part := left
		if i > 0 {
			part = min(left, int64(float64(billed)*(float64(r.Micro)/float64(sum))))
		}
		left -= part
		if r.Micro = part - r.Micro; r.Micro != 0 {
			out = append(out, r)
		}
	}
	return out
}
