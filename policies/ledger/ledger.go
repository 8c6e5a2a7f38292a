package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Ledger admits calls against the budgets of organisations.
type Ledger struct {
	Store Store
	// Costs are the recent costs of runs.
	Costs *RunCosts
	// Componentsreconcile the ledger; nil for a complete copy of a ledger.
	Loop *Loop
	// Snapshots are this gateway's memory.
	Snapshots *Snapshots
	// Logger is told of sandboxes above the ceiling; required for [Ledger.Observe].
	Logger *slog.Logger

	moved    doneMoves
	observed observed
}

// Ceiling is one ceiling of a budget and how full it is with a call. Those in money
// are in micro-dollars; see [IsMoney].
type Ceiling struct {
	Scope Scope
	// Index says which of the scope's ceilings it is.
	Index int
	Limit int64
	Level
	// RenewsAt is when a period ends, which makes room again; zero if no time does.
	RenewsAt time.Time
	// Threshold is the highest of the organisation's thresholds that is reached with
	// the call, in percent, 0 for none.
	Threshold int64
}

// Name names the budget, for people.
func (c *Ceiling) Name() string { return c.Scope.String() + " " + CeilingName(c.Index) }

// PassEndeded reports whether the call would take more than there is.
func (c *Ceiling) Exceeded() bool { return c.Needs > 0 && c.Sum() > c.Limit }

// Remaining is the rest of the ceiling with the call.
func (c *Ceiling) Remaining() int64 { return max(0, c.Limit-c.Sum()) }

// Quote is the ledger's answer to a call.
type Quote struct {
	// Owner pays for the resource.
	Owner Owner
	// Now is the store's clock, Sent when the request to the store was sent, by this gateway's clock.
	Now, Sent time.Time
	// Refused is the ceiling that would be passed, nil if the call was admitted.
	Refused *Ceiling
	// Ceilings are all that apply.
	Ceilings []*Ceiling
	// Tightest is the ceiling with the least left, nil if no ceiling applies.
	Tightest *Ceiling
}

// ErrAlreadySettled means that a hold had ended before it was made, because it took longer
// than the call was waited for.
var ErrAlreadySettled = errors.New("spend: the reservation came too late")

var errLostAgain = fmt.Errorf("%w: it was lost again while it was rebuilt", ErrUnavailable)

// ErrRepeated means that the wish of a reservation has other intents.
var ErrRepeated = errors.New("spend: the call may be a repeat")

// Reserve asks for room for a call of a caller under a plan. A call about a resource
// of another owner is held against that owner's budgets. It returns ErrUnavailable
// if the ledger cannot be asked, or is not complete and cannot be rebuilt.
func (l *Ledger) Reserve(ctx context.Context, org string, p *Plan, r Reservation) (Quote, error) {
	if err := l.moved.ensure(ctx, org, p.Moves, l.Loop); err != nil && !r.Free {
		return Quote{}, fmt.Errorf("%w: a renamed team's costs could not be moved: %w", ErrUnavailable, err)
	}
	r.Horizon = p.Horizon
	var lost time.Time // when the first attempt was sent, if its reply was lost
	rebuilt := false
	for {
		r.Limits = p.limits(&r)
		at := time.Now()
		out, err := l.Store.Reserve(ctx, org, &r)
		switch {
		case errors.Is(err, ErrUnavailable) && lost.IsZero() && ctx.Err() == nil:
			lost = at // the store may have made the reservation then: the hold makes a repeat the same
			continue
		case err != nil:
			return Quote{}, err
		}
		if !lost.IsZero() {
			out.Sent = lost
		}
		switch out.Status {
		case Admitted, Refused:
			return p.quote(&r, &out), nil
		case OtherOwner:
			r.Owner = out.Owner
		case Settled:
			return Quote{}, ErrAlreadySettled
		case Repeated:
			return Quote{}, ErrRepeated
		case IntentsLost:
			return Quote{}, fmt.Errorf("%w: intents are being restored", ErrUnavailable)
		case Closed:
			if rebuilt {
				return Quote{}, errLostAgain
			}
			if err := l.Loop.Rebuild(ctx, org); err != nil {
				return Quote{}, fmt.Errorf("%w: it is not complete: %w", ErrUnavailable, err)
			}
			rebuilt = true
		}
	}
}

// Settle ends a hold, or opens it.
func (l *Ledger) Settle(ctx context.Context, org string, s *Settlement) error {
	err := l.Store.Settle(ctx, org, s)
	if err != nil || s.End == Open && s.NewID == "" {
		l.Loop.Kick(org)
	}
	return err
}

// Owners returns the owners of resources and then those of jobs, the zero Owner for one that
// belongs to the organisation. A ledger that is not complete is rebuilt first if it lacks
// one of them: it returns ErrUnavailable until that has been done.
func (l *Ledger) Owners(ctx context.Context, org string, resources []string, jobs ...Job) ([]Owner, error) {
	if len(resources)+len(jobs) == 0 {
		return nil, nil
	}
	for rebuilt := false; ; rebuilt = true {
		owners, complete, err := l.Store.Owners(ctx, org, resources, jobs...)
		switch {
		case err != nil:
			return nil, err
		case complete || !slices.Contains(owners, Owner{}):
			return owners, nil
		case rebuilt:
			return nil, errLostAgain
		}
		if err := l.Loop.Rebuild(ctx, org); err != nil {
			return nil, fmt.Errorf("%w: it is not complete: %w", ErrUnavailable, err)
		}
	}
}

// RestoredIntentrs returns the owners of resources as this gateway remembers them, the zero Owner for others. It does not ask the store.
func (l *Ledger) CachedOwners(org string, resources []string) []Owner {
	return l.Snapshots.Owners(org, resources)
}

// SetJobOwner remembers the owner of a job for a time.
func (l *Ledger) SetJobOwner(ctx context.Context, org string, j Job, o Owner, keep time.Duration) error {
	return l.Store.SetJobOwner(ctx, org, j, o, keep)
}

// Balances returns the accounts of an owner's scopes, in their order, rebuilding
// a ledger that is not complete.
func (l *Ledger) Balances(ctx context.Context, org string, o Owner) ([]Balance, error) {
	state, err := l.Store.Balances(ctx, org, o)
	if err == nil && !state.Complete {
		if err := l.Loop.Rebuild(ctx, org); err != nil {
			return nil, fmt.Errorf("%w: it is not complete: %w", ErrUnavailable, err)
		}
		state, err = l.Store.Balances(ctx, org, o)
	}
	return state.Balances, err
}

// limits are the ceilings of the scopes of a reservation's owner, in their order.
func (p *Plan) limits(r *Reservation) [][Ceilings]int64 {
	scopes := r.Owner.Scopes()
	limits := make([][Ceilings]int64, len(scopes))
	for i, s := range scopes {
		limits[i] = p.Budget(s).Limits()
		for j, limit := range limits[i] {
			if c := (Ceiling{Scope: s, Index: j}); limit > 0 && len(r.Waived) > 0 && slices.Contains(r.Waived, c.Name()) {
				limits[i][j] = 0
			}
		}
	}
	return limits
}

func (p *Plan) quote(r *Reservation, out *Outcome) Quote {
	q := Quote{Owner: r.Owner, Now: out.Now, Sent: out.Sent}
	scopes := r.Owner.Scopes()
	ceiling := func(scope, index int) *Ceiling {
		c := &Ceiling{Scope: scopes[scope], Index: index, Limit: r.Limits[scope][index], Level: out.Levels[scope][index]}
		if Accrues(index) {
			c.RenewsAt = out.Ends[index-PerDay]
			c.Threshold = p.Reached(c.Used, c.Limit) // by the accrued cost, not the expected one
			return c
		}
		c.Threshold = p.Reached(c.Sum(), c.Limit)
		return c
	}
	if out.Status == Refused {
		q.Refused = ceiling(out.Scope, out.Ceiling)
	}
	least := 0.0
	for i := range scopes {
		for j, limit := range r.Limits[i] {
			if limit == 0 {
				continue
			}
			c := ceiling(i, j)
			q.Ceilings = append(q.Ceilings, c)
			if left := float64(c.Remaining()) / float64(limit); q.Tightest == nil || left < least {
				q.Tightest, least = c, left
			}
		}
	}
	return q
}
