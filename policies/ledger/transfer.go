package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Transfer records a move of accrued costs from one team to another. The accounts of the teams contain the move, but roll-ups keep the team
// that incurred the cost.
type Transfer struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Key is the key whose costs were moved; "" for all costs of the team.
	Key string `json:"key,omitempty"`
	// At is the time of the move in Unix milliseconds. The costs of its hour and of earlier hours were moved.
	At int64 `json:"at"`
	// Part is the amount that was moved of the key's cost in the hour of At, in micro-dollars.
	Part int64 `json:"part,omitempty"`
}

// Transfers are the moves of an organisation's accrued costs, in the order of their times.
type Transfers []Transfer

// of reports whether t has moved costs that an owner incurred in an hour.
func (t *Transfer) of(o Owner, hour time.Time) bool {
	return o.Team == t.From && (t.Key == "" || t.Key == o.Key) && hour.UnixMilli() <= t.At
}

// Payer returns the owner whose accounts contain the cost that o incurred in an hour.
func (t Transfers) Payer(o Owner, hour time.Time) Owner {
	for i := range t {
		if t[i].of(o, hour) {
			o.Team = t[i].To
		}
	}
	return o
}

// last returns the index of an earlier transfer that m repeats, or -1. No later transfer concerns the same costs.
func (t Transfers) last(m Move) int {
	for i := range slices.Backward(t) {
		e := &t[i]
		switch {
		case e.From == m.From && e.To == m.To && e.Key == m.Key:
			return i
		case e.Key != "" && m.Key != "" && e.Key != m.Key:
		case e.From == m.From, e.From == m.To, e.To == m.From, e.To == m.To:
			return -1
		}
	}
	return -1
}

// accrued returns how much of the key's cost in roll-ups the account of its team contains in the periods that began at the given times, and
// how much of that was incurred in the hour of now. A roll-up belongs to the periods in which it began.
func (t Transfers) accrued(rows []Rollup, o Owner, starts [periods]int64, now time.Time) (a Accrued, part int64) {
	type cell struct {
		start  time.Time
		period int // the shortest period that contains the cost
	}
	cells := make(map[cell]map[string]int64) // by team
	for _, r := range rows {
		if r.Item.Key != o.Key {
			continue
		}
		c := cell{r.Start, r.Item.Period.Index()}
		if cells[c] == nil {
			cells[c] = make(map[string]int64)
		}
		cells[c][r.Item.Team] += r.Micro
	}
	var sums [periods]int64
	for c, teams := range cells {
		for i := range t {
			if !t[i].of(Owner{t[i].From, o.Key}, c.start) {
				continue
			}
			moved := teams[t[i].From]
			if t[i].Key != "" && c.period == day && Hourly.Start(time.UnixMilli(t[i].At)).Equal(c.start) {
				moved = min(moved, t[i].Part)
			}
			teams[t[i].From] -= moved
			teams[t[i].To] += moved
		}
		for i := c.period; i < periods; i++ {
			if c.start.UnixMilli() >= starts[i] {
				sums[i] += teams[o.Team]
			}
		}
		if c.period == day && c.start.Equal(Hourly.Start(now)) {
			part += teams[o.Team]
		}
	}
	for i := range sums {
		sums[i] = max(0, sums[i])
	}
	return accruedOf(sums), part
}

// units returns the hours and days of the roll-ups from a time until now. It prefers days, except for those in which a period began or costs
// of the key were moved.
func (t Transfers) units(key string, keep Retention, from, now time.Time, starts [periods]int64) (hours, days []time.Time) {
	edges := append(starts[:], now.UnixMilli())
	for i := range t {
		if t[i].Key == "" || t[i].Key == key {
			edges = append(edges, t[i].At)
		}
	}
	for start := Daily.Start(from); !start.After(now); start = start.Add(Daily.Length()) {
		end := start.Add(Daily.Length())
		within := func(ms int64) bool { return ms >= start.UnixMilli() && ms < end.UnixMilli() }
		if keep.End(Hourly, start).After(now) && slices.ContainsFunc(edges, within) {
			hours = append(hours, hoursBetween(start, end)...)
		} else {
			days = append(days, start)
		}
	}
	return hours, days
}

// moveAccrued moves the accrued costs of m.
func (r *Reconciler) moveAccrued(ctx context.Context, org string, m Move, state *State) (AccrualOutcome, error) {
	for range rollTries {
		at, err := r.Store.RollupProgress(ctx, org)
		if err != nil {
			return AccrualOutcome{}, err
		}
		a := &AccrualMove{From: m.From, To: m.To, Key: m.Key, Version: at.Version}
		next, earlier := Transfer{From: m.From, To: m.To, Key: m.Key, At: at.Now.UnixMilli()}, at.Transfers.last(m)
		if m.Key != "" {
			if earlier >= 0 && !m.Again {
				return AccrualOutcome{}, nil
			}
			if a.Amounts, next.Part, err = r.accruedOf(ctx, org, Owner{m.From, m.Key}, &at, state); err != nil {
				return AccrualOutcome{}, err
			}
		}
		a.Transfers = slices.Clone(at.Transfers)
		if earlier >= 0 {
			if was := a.Transfers[earlier]; Hourly.Start(time.UnixMilli(was.At)).Equal(Hourly.Start(at.Now)) {
				next.Part += was.Part
			}
			a.Transfers = slices.Delete(a.Transfers, earlier, earlier+1)
		}
		a.Transfers = append(a.Transfers, next)
		out, err := r.Store.MoveAccrual(ctx, org, a)
		if err != nil || out.Status != AccrualConflict {
			return out, err
		}
	}
	return AccrualOutcome{}, fmt.Errorf("move costs of %s: %w: other gateways rolled up costs at the same time", org, ErrUnavailable)
}

// accruedOf returns the cost of a key that the account of a team contains, and how much of it was incurred in the current hour.
func (r *Reconciler) accruedOf(ctx context.Context, org string, o Owner, at *RollupProgress, s *State) (a Accrued, part int64, err error) {
	var starts [periods]int64
	c := s.Zone.Calendar(at.Now)
	for i := range starts {
		starts[i], _ = c.bounds(i, at.Now.UnixMilli())
	}
	keep := r.History.Retention
	from := time.UnixMilli(starts[quarter])
	older := func(b Balance) bool { return b.Scope == Scope{KindKey, o.Key} && b.Total != b.Quarter }
	if first := at.Now.AddDate(0, 0, -keep.Daily); first.After(from) || slices.ContainsFunc(s.Balances, older) {
		from = first
	}
	hours, days := at.Transfers.units(o.Key, keep, from, at.Now, starts)
	rows, err := r.History.costs(ctx, org, hours, days)
	if err != nil {
		return a, 0, err
	}
	a, part = at.Transfers.accrued(rows, o, starts, at.Now)
	return a, part, nil
}
