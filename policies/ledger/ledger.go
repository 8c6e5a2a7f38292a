package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"
)

// Ledger admits calls against the budgets of organisations.
type Ledger struct {
	Store Accounts
	// Costs are the costs of recent runs.
	Costs *RunCosts
	// Loop reconciles the ledger. Without it, the ledger must be complete.
	Loop *Loop
	// Snapshots is this gateway's memory of ledgers.
	Snapshots *Snapshots
	// Logger logs sandboxes above the rate ceiling; required for [Ledger.Observe].
	Logger *slog.Logger

	moved    doneMoves
	observed observed
	flight   singleflight.Group
}

// Ceiling is one limit of a budget and the usage that a call would bring it to. [CeilingUsage] is the corresponding type for reports, which
// involve no call. Monetary amounts are in micro-dollars; see [IsMoney].
type Ceiling struct {
	Scope Scope
	// Index identifies the ceiling among the ceilings of the scope.
	Index int
	Limit int64
	Level
	// RenewsAt is the end of the budget's period; zero for a budget without a period.
	RenewsAt time.Time
	// Horizon is the time for which a budget for an accrued cost counts running resources; zero for other ceilings.
	Horizon time.Duration
	// Threshold is the highest threshold of the organisation reached with the call, in percent; 0 if none.
	Threshold int64
}

// Name returns the scope and the name of the ceiling as shown in messages.
func (c *Ceiling) Name() string { return c.Scope.String() + " " + CeilingName(c.Index) }

// Exceeded reports whether the call needs more than the limit allows.
func (c *Ceiling) Exceeded() bool { return c.Needs > 0 && c.Sum() > c.Limit }

// Remaining returns the amount that remains below the limit after the call.
func (c *Ceiling) Remaining() int64 { return max(0, c.Limit-c.Sum()) }

// Quote is the ledger's answer to a reservation.
type Quote struct {
	// Owner pays for the resource.
	Owner Owner
	// Now is the store's clock. Sent is the time when the request was sent to the store, by this gateway's clock.
	Now, Sent time.Time
	// Refused is the ceiling that the call would exceed; nil if the call was admitted.
	Refused *Ceiling
	// Ceilings are all ceilings that apply to the call.
	Ceilings []*Ceiling
	// Tightest is the ceiling with the least amount remaining; nil if no ceiling applies.
	Tightest *Ceiling
}

// errAlreadySettled means that a hold ended before its reservation was made, because the reservation took longer than the call could
// wait.
var errAlreadySettled = errors.New("ledger: the hold was settled before it was reserved")

var errLostAgain = fmt.Errorf("%w: the ledger was lost again during its rebuild", ErrUnavailable)

// ErrRepeated means that another intent has the fingerprint of the reservation. Package idempotency then determines whether the call is a
// repeat.
var ErrRepeated = errors.New("ledger: another request has the same fingerprint")

// Reserve reserves the cost of a call under a plan. A call that changes a resource of another owner counts against the budgets of that
// owner: if the store reports OtherOwner, Reserve repeats the reservation with the owner of the resource. Reserve returns ErrUnavailable if
// the store does not respond, or if the ledger is incomplete and cannot be rebuilt.
func (l *Ledger) Reserve(ctx context.Context, org string, p *Plan, r Reservation) (Quote, error) {
	if err := l.moved.ensure(ctx, org, p.Moves, l.Loop); err != nil && !r.Free {
		return Quote{}, fmt.Errorf("%w: cannot move the costs of a renamed team: %w", ErrUnavailable, err)
	}
	if !r.Free {
		if err := l.Loop.ensure(ctx, org); err != nil {
			return Quote{}, fmt.Errorf("%w: the ledger was not kept without budgets and cannot be reconciled: %w", ErrUnavailable, err)
		}
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
			lost = at // the reservation may have been made; repeating it with the same hold is safe
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
			return Quote{}, errAlreadySettled
		case Repeated:
			return Quote{}, ErrRepeated
		case IntentsLost:
			return Quote{}, fmt.Errorf("%w: intents are being restored", ErrUnavailable)
		case Closed:
			if rebuilt {
				return Quote{}, errLostAgain
			}
			if err := l.Loop.Rebuild(ctx, org); err != nil {
				return Quote{}, fmt.Errorf("%w: the ledger is incomplete: %w", ErrUnavailable, err)
			}
			rebuilt = true
		}
	}
}

// Settle commits or releases a hold, or marks it as open.
func (l *Ledger) Settle(ctx context.Context, org string, s *Settlement) error {
	err := l.Store.Settle(ctx, org, s)
	if err != nil || s.End == Open && s.NewID == "" {
		l.Loop.Kick(org)
	}
	return err
}

// Owners returns the owners of resources, followed by the owners of jobs. An entry without an owner belongs to the organisation and is
// zero. If an owner is missing from an incomplete ledger, Owners rebuilds the ledger first, and returns ErrUnavailable if the rebuild
// fails.
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
			return nil, fmt.Errorf("%w: the ledger is incomplete: %w", ErrUnavailable, err)
		}
	}
}

// CachedOwners returns the owners of resources as remembered by this gateway, and the zero Owner for resources whose owner is unknown. It
// does not access the store.
func (l *Ledger) CachedOwners(org string, resources []string) []Owner {
	return l.Snapshots.Owners(org, resources)
}

// SetJobOwner records the owner of a job. The record expires after keep.
func (l *Ledger) SetJobOwner(ctx context.Context, org string, j Job, o Owner, keep time.Duration) error {
	return l.Store.SetJobOwner(ctx, org, j, o, keep)
}

// Balances returns the balances of an owner's scopes, in order. It rebuilds an incomplete ledger first.
func (l *Ledger) Balances(ctx context.Context, org string, o Owner) ([]Balance, error) {
	state, err := l.Store.Balances(ctx, org, o)
	if err == nil && !state.Complete {
		if err := l.Loop.Rebuild(ctx, org); err != nil {
			return nil, fmt.Errorf("%w: the ledger is incomplete: %w", ErrUnavailable, err)
		}
		state, err = l.Store.Balances(ctx, org, o)
	}
	return state.Balances, err
}

// limits returns the limits of the scopes of a reservation's owner, in order.
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
			end := forever
			if !c.RenewsAt.IsZero() {
				end = c.RenewsAt.UnixMilli()
			}
			c.Horizon = time.Duration(p.Horizon.ms(out.Now.UnixMilli(), end)) * time.Millisecond
			c.Threshold = p.Reached(c.Used, c.Limit) // by the accrued cost, not the expected cost
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
