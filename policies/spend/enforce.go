package spend

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Over says what is done about a budget that is passed all the same: because what
// runs goes on accruing, prices rose, or the budget was lowered. The zero Over does
// nothing.
type Over struct {
	Stop   Order         `yaml:"stop" doc:"which of the pods that a passed budget counts are stopped until it holds, those made last or those that cost most first; empty is none. Locked pods go on, and nothing is deleted"`
	Notice time.Duration `yaml:"notice" doc:"how long before the first stop it is announced; 0 is 15m"`
}

// Order says what is stopped first.
type Order string

// The orders.
const (
	Newest  Order = "newest"
	Dearest Order = "dearest"
)

// Values lists the orders.
func (Order) Values() []string { return []string{string(Newest), string(Dearest)} }

// defaultNotice is the notice unless an organisation says otherwise.
const defaultNotice = 15 * time.Minute

// Validate reports a notice that is none.
func (o Over) Validate() error {
	if o.Notice < 0 {
		return fault.Errorf("notice", "must not be negative")
	}
	return nil
}

// Excess is a budget that is passed.
type Excess struct {
	Org   string
	Scope Scope
	// Ceiling says which of the scope's ceilings it is; Used and Limit of one in money
	// are in micro-dollars.
	Ceiling     int
	Used, Limit int64
	// StopAt is when pods begin to be stopped.
	StopAt time.Time
}

// Enforcer stops pods of budgets that are passed.
type Enforcer struct {
	Notices Notices
	// Plan returns the budgets of an organisation, nil for none.
	Plan func(org string) *Plan
	// Announce tells that pods will be stopped, Stopped that one was. They do not wait
	// for the telling.
	Announce func(ctx context.Context, e Excess)
	Stopped  func(ctx context.Context, e Excess, r Record)
	// Stop stops a pod and returns what it takes then.
	Stop func(ctx context.Context, org, id string) (Amounts, error)
}

// enforce compares the budgets that are enforced with what the platform has.
func (e *Enforcer) enforce(ctx context.Context, p *pass) error {
	plan := e.Plan(p.org)
	if plan == nil || !p.state.Complete {
		return nil
	}
	var noticed map[string]string
	var errs []error
	for _, b := range p.state.Balances {
		over := plan.Over(b.Scope)
		if over.Stop == "" {
			continue
		}
		if noticed == nil {
			var err error
			if noticed, err = e.Notices.Noticed(ctx, p.org); err != nil {
				return err
			}
		}
		name := "over:" + string(b.Scope.Kind) + ":" + b.Scope.ID
		x := p.excess(plan, b)
		at, err := time.Parse(time.RFC3339, noticed[name])
		switch {
		case x == nil && noticed[name] != "":
			errs = append(errs, e.Notices.Notice(ctx, p.org, name, ""))
		case x == nil:
		case err != nil:
			x.StopAt = p.state.Now.Add(cmp.Or(over.Notice, defaultNotice)).UTC()
			e.Announce(ctx, *x)
			errs = append(errs, e.Notices.Notice(ctx, p.org, name, x.StopAt.Format(time.RFC3339)))
		case !p.state.Now.Before(at):
			x.StopAt = at
			errs = append(errs, e.stop(ctx, p, x, over.Stop))
			// What the platform lists may lag behind what it was told.
			errs = append(errs, e.Notices.Notice(ctx, p.org, name, p.state.Now.Add(listSlack).UTC().Format(time.RFC3339)))
		}
	}
	return errors.Join(errs...)
}

// of lists the records that a scope counts and the platform has, with what they take
// by its word.
func (p *pass) of(s Scope) (list []*Record, sum Amounts) {
	for id, f := range p.found {
		r := p.records[id]
		if r == nil {
			r = &Record{ID: id, Kind: string(f.Kind)} // entered by this pass, the organisation's
		}
		if slices.Contains(r.Owner.Scopes(), s) {
			list = append(list, r)
			sum.add(f.Amounts, 1)
		}
	}
	return list, sum
}

// excess returns the budget of a scope that is passed and that stopping pods makes
// good, nil for none.
func (p *pass) excess(plan *Plan, b Balance) *Excess {
	_, sum := p.of(b.Scope)
	limits := plan.Budget(b.Scope).Limits()
	for _, c := range []struct {
		ceiling int
		used    int64
		passed  bool
	}{
		{PerMonth, b.Month, b.Month >= limits[PerMonth]}, // what runs goes on accruing
		{PerDay, b.Day, b.Day >= limits[PerDay]},
		{PerHour, sum[Burn], sum[Burn] > limits[PerHour]},
		{MaxGPUs, sum[GPUs], sum[GPUs] > limits[MaxGPUs]},
	} {
		if limit := limits[c.ceiling]; limit > 0 && c.passed {
			return &Excess{Org: p.org, Scope: b.Scope, Ceiling: c.ceiling, Used: c.used, Limit: limit}
		}
	}
	return nil
}

// stop stops pods until the budget holds: all of them, if it is one of a period.
func (e *Enforcer) stop(ctx context.Context, p *pass, x *Excess, order Order) error {
	list, sum := p.of(x.Scope)
	list = slices.DeleteFunc(list, func(r *Record) bool { return !p.found[r.ID].Stoppable })
	slices.SortFunc(list, func(a, b *Record) int {
		if order == Dearest {
			return cmp.Or(cmp.Compare(p.found[b.ID].Amounts[Burn], p.found[a.ID].Amounts[Burn]), cmp.Compare(a.ID, b.ID))
		}
		return cmp.Or(cmp.Compare(p.found[a.ID].Age, p.found[b.ID].Age), cmp.Compare(a.ID, b.ID))
	})
	var errs []error
	for _, r := range list {
		if x.Ceiling == PerHour && sum[Burn] <= x.Limit || x.Ceiling == MaxGPUs && sum[GPUs] <= x.Limit {
			break
		}
		after, err := e.Stop(ctx, p.org, r.ID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sum.add(p.found[r.ID].Amounts, -1)
		sum.add(after, 1)
		e.Stopped(ctx, *x, *r)
		if _, err := p.Store.Adjust(ctx, p.org, &Adjustment{Kind: r.Kind, Resource: r.ID, Version: r.Version, Amounts: after, About: r.About}); err != nil {
			errs = append(errs, err) // the next pass will see it
		}
	}
	return errors.Join(errs...)
}
