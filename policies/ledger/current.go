package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// sharedTimeout limits reads that several callers share and that therefore do not end with the context of one caller.
const sharedTimeout = 10 * time.Second

// current holds the costs that no posting contains yet, and the version of the roll-ups without these costs. Callers share it.
type current struct {
	version int64
	rollups []Rollup
}

// current computes the costs up to now that are not rolled up yet. It writes only if an organisation has never been rolled up, which is
// when its history begins. Concurrent callers share one read.
func (h *History) current(ctx context.Context, org string) (current, error) {
	v, err, _ := h.flight.Do(org, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedTimeout)
		defer cancel()
		t, err := h.Store.RollupInput(ctx, org)
		if err == nil && t.Until.IsZero() {
			if err = h.RollUp(ctx, org); err == nil {
				t, err = h.Store.RollupInput(ctx, org)
			}
		}
		if err != nil {
			return current{}, err
		}
		out := current{version: t.Version}
		for r := newRolling(&t, h.known(org)); !r.done; {
			out.rollups = append(out.rollups, r.next().Rollups...)
		}
		return out, nil
	})
	c, _ := v.(current)
	return c, err
}

// costs returns the roll-ups of hours and days, followed by all costs that are not rolled up yet. Callers that read the same roll-ups
// concurrently share one read.
func (h *History) costs(ctx context.Context, org string, hours, days []time.Time) ([]Rollup, error) {
	for range rollTries {
		now, err := h.current(ctx, org)
		if err != nil {
			return nil, fmt.Errorf("read costs of %s: %w", org, err)
		}
		byDay, err := h.stored(ctx, org, now.version, Daily, days)
		if err != nil {
			return nil, err
		}
		byHour, err := h.stored(ctx, org, now.version, Hourly, hours)
		if err != nil {
			return nil, err
		}
		at, err := h.Store.RollupProgress(ctx, org)
		if err != nil {
			return nil, err
		}
		if at.Version == now.version {
			return slices.Concat(byDay, byHour, now.rollups), nil
		}
	}
	return nil, fmt.Errorf("read costs of %s: %w: roll-ups changed during the read", org, ErrUnavailable)
}

// stored reads roll-ups that are at least as recent as a version. The caller must not change them.
func (h *History) stored(ctx context.Context, org string, version int64, u Unit, starts []time.Time) ([]Rollup, error) {
	if len(starts) == 0 {
		return nil, nil
	}
	key := fmt.Sprint(org, " ", version, u, starts[0].Unix(), starts[len(starts)-1].Unix(), len(starts))
	v, err, _ := h.flight.Do(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedTimeout)
		defer cancel()
		return h.Store.Rollups(ctx, org, u, starts)
	})
	rows, _ := v.([]Rollup)
	return rows, err
}

// Shared reads the whole ledger of an organisation for a report. Concurrent calls share one read, which may have begun before this call.
// The caller may modify the slices of the returned State.
func (l *Ledger) Shared(ctx context.Context, org string) (State, error) {
	v, err, _ := l.flight.Do(org, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedTimeout)
		defer cancel()
		return l.Store.Show(ctx, org)
	})
	state, _ := v.(State)
	state.Balances, state.Resources, state.Holds = slices.Clone(state.Balances), slices.Clone(state.Resources), slices.Clone(state.Holds)
	return state, err
}
