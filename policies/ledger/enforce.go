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
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// OverBudgetAction is the action taken when a budget is exceeded. Although every call is checked, a budget can be exceeded because
// resources keep running, a price increases or the budget is lowered. The zero value takes no action.
type OverBudgetAction struct {
	Stop   Order         `yaml:"stop" doc:"order of stopping pods and deleting sandboxes until the budget is met: newest or most expensive first. Locked pods keep running; empty stops nothing"`
	Notice time.Duration `yaml:"notice" doc:"time between the announcement and the first stop; default 15m"`
}

// Order is the order of stopping resources: "newest" or "most_expensive" first. The zero Order stops nothing.
type Order string

// Orders of stopping resources.
const (
	newest        Order = "newest"
	mostExpensive Order = "most_expensive"
)

// Values returns the permitted orders, for the schema of the configuration.
func (Order) Values() []string { return []string{string(newest), string(mostExpensive)} }

// defaultNotice is the notice period if the organisation configures none.
const defaultNotice = 15 * time.Minute

// Validate returns an error if the notice period is negative.
func (o OverBudgetAction) Validate() error {
	if o.Notice < 0 {
		return fault.Errorf("notice", "must not be negative")
	}
	return nil
}

// Excess describes an exceeded budget.
type Excess struct {
	Scope Scope
	// Ceiling is the index of the scope's ceiling. Used and Limit are in micro-dollars for ceilings in money.
	Ceiling     int
	Used, Limit int64
}

// Cause is the reason for stopping pods or for announcing that a resource is idle: an exceeded budget (Excess) or an idle resource (Idle).
// Idle resources that are not pods are only reported. If both Excess and Idle are nil, the pod's deadline has passed.
type Cause struct {
	Org    string
	Excess *Excess
	Idle   *IdleResource
	// StopAt is the time of the first planned stop; zero if nothing will be stopped.
	StopAt time.Time
	// Deleted is set if the pod or sandbox was deleted instead of stopped.
	Deleted bool
	// FirstSent is the time when the notice of the stop was first sent. Later attempts to deliver the notice have the same FirstSent and a
	// later StopAt.
	FirstSent time.Time
}

// due is a cause with the actions that it requires. A due without a cause means that the situation recorded under its name has ended.
type due struct {
	Cause

	name   string
	notice time.Duration
	// pods are stopped in order until the amounts in use are low enough.
	pods []*Record
}

// enough reports whether the amounts in use no longer exceed the budget. It always returns false for the accrued cost of a period, which
// stopping pods does not reduce.
func (p *pass) enough(x *Excess) bool {
	if x == nil || Accrues(x.Ceiling) {
		return false
	}
	sum := p.counted(x.Scope).sum
	return x.Ceiling == PerHour && sum[Burn] <= x.Limit || x.Ceiling == CeilingGPUs && sum[GPUs] <= x.Limit
}

// enforce acts on exceeded budgets and idle resources.
func (p *pass) enforce(ctx context.Context) error {
	plan := p.plan
	if plan == nil || !p.state.Complete {
		return nil
	}
	late := p.deadlines(ctx)
	noticed, err := p.Store.Noticed(ctx, p.org)
	if err != nil {
		return errors.Join(late, err)
	}
	p.noticed = make(map[string]string, len(noticed))
	maps.Copy(p.noticed, noticed)
	var idle []due
	if plan.Idle.For > 0 {
		if idle, err = p.idle(ctx, &plan.Idle); err != nil {
			return errors.Join(late, err)
		}
	}
	errs := []error{late, p.budgets(ctx, plan)}
	for i := range idle {
		errs = append(errs, p.pursue(ctx, &idle[i]))
	}
	return errors.Join(errs...)
}

// announced is the recorded value for a cause that stops nothing.
const announced = "told"

// overPrefix is the prefix of the names of exceeded budgets in the NoticeStore.
const overPrefix = "over:"

// expired reports whether a planned stop of the pods of a budget is so old that no pass can have checked the budget since: the notice
// must be sent again.
func (p *pass) expired(stop time.Time) bool {
	return p.state.Now.Sub(stop) > max(time.Hour, 10*p.Interval)
}

// pursue announces an action, executes the action when it is due, or deletes its record.
func (p *pass) pursue(ctx context.Context, d *due) error {
	noticed := p.noticed[d.name]
	at, err := time.Parse(time.RFC3339, noticed)
	over := d.Excess == nil && d.Idle == nil
	next := noticed
	switch {
	case over:
		next = ""
	case d.notice == 0 && noticed == announced:
	case d.Idle != nil && (d.notice == 0 || err != nil):
		return p.announce(ctx, d, noticed)
	case err != nil || d.Excess != nil && p.expired(at):
		// A stop for a limit in money is not delayed by a receiver that is down.
		d.StopAt = p.state.Now.Add(d.notice).UTC()
		next = d.StopAt.Format(time.RFC3339)
		p.Events.Announce(ctx, &d.Cause, new(Record), func(error) {})
	case !p.state.Now.Before(at):
		d.StopAt = at
		err := p.stop(ctx, d)
		// The platform's lists may lag behind its responses.
		next = p.state.Now.Add(listSlack).UTC().Format(time.RFC3339)
		return errors.Join(err, p.notice(ctx, d.name, next))
	}
	if next == noticed {
		return nil
	}
	return p.notice(ctx, d.name, next)
}

// undelivered is the prefix of the value recorded for an idle resource until its notice is delivered. The time of the first attempt
// follows.
const undelivered = "sent "

// announce sends the notice of an idle resource, unless an attempt is in progress, and records its delivery. Until the notice is
// delivered, each pass sends it again and nothing is stopped: a pod is stopped once d.notice has passed since the delivery.
func (p *pass) announce(ctx context.Context, d *due, noticed string) error {
	key := p.org + " " + d.name
	if _, busy := p.sending.LoadOrStore(key, true); busy {
		return nil
	}
	first, again := strings.CutPrefix(noticed, undelivered)
	if !again {
		first = p.state.Now.UTC().Format(time.RFC3339)
		if err := p.Store.Notice(ctx, p.org, d.name, undelivered+first); err != nil {
			p.sending.Delete(key)
			return err
		}
	}
	if d.notice > 0 {
		d.FirstSent, _ = time.Parse(time.RFC3339, first) // written by this function
		d.StopAt = p.state.Now.Add(d.notice).UTC()
	}
	began := time.Now()
	about := p.record(d.Idle.ID)
	p.Events.Announce(ctx, &d.Cause, &about, func(err error) {
		defer p.sending.Delete(key)
		if err != nil {
			return
		}
		next := announced
		if d.notice > 0 {
			next = d.StopAt.Add(time.Since(began)).Format(time.RFC3339)
		}
		if err := p.Store.Notice(context.WithoutCancel(ctx), p.org, d.name, next); err != nil {
			p.Logger.WarnContext(ctx, "notice was delivered but could not be recorded; the next reconciliation sends it again", "org", p.org, "resource", d.Idle.ID,
				"error", err.Error())
		}
	})
	return nil
}

// record returns the record of a resource. A resource that this pass has added belongs to the organisation.
func (p *pass) record(id string) Record {
	if r := p.records[id]; r != nil {
		return *r
	}
	f := p.found[id]
	return Record{ID: id, Kind: string(f.Kind), Metadata: Metadata{Name: f.Name}}
}

// overName returns the name of an exceeded budget in the NoticeStore.
func overName(s Scope, ceiling int) string {
	return overPrefix + string(s.Kind) + ":" + s.ID + ":" + CeilingName(ceiling)
}

// budgets acts on exceeded budgets. Narrower scopes come first, because the stops for a team can suffice for the organisation.
func (p *pass) budgets(ctx context.Context, plan *Plan) error {
	var errs []error
	exceeded := make(map[string]*scoped)
	for _, b := range slices.Backward(p.state.Balances) { // sorted by State.Sort: the organisation is first
		over := plan.Action(b.Scope)
		if over.Stop == "" {
			continue
		}
		counted := p.counted(b.Scope)
		for i := range Ceilings {
			name, x := overName(b.Scope, i), excess(plan, b, counted.sum, i)
			if x != nil {
				errs = append(errs, p.pursue(ctx, &due{
					Cause: Cause{Org: p.org, Excess: x}, name: name, notice: cmp.Or(over.Notice, defaultNotice),
					pods: p.ordered(slices.Clone(counted.list), over.Stop),
				}))
			}
			if x != nil || counted.reduced { // this pass may have met the budget
				exceeded[name] = counted
			}
		}
	}
	settled := p.state.Now.Add(listSlack) // when the platform's lists contain the stops of this pass
	for name, value := range p.noticed {
		if !strings.HasPrefix(name, overPrefix) {
			continue
		}
		if c := exceeded[name]; c == nil {
			errs = append(errs, p.notice(ctx, name, ""))
		} else if at, err := time.Parse(time.RFC3339, value); c.reduced && err == nil && at.Before(settled) {
			errs = append(errs, p.notice(ctx, name, settled.UTC().Format(time.RFC3339)))
		}
	}
	return errors.Join(errs...)
}

// notice records a value in the NoticeStore under a name; "" deletes the name.
func (p *pass) notice(ctx context.Context, name, value string) error {
	if p.noticed[name] = value; value == "" {
		delete(p.noticed, name)
	}
	return p.Store.Notice(ctx, p.org, name, value)
}

// scoped holds the resources of a scope with their total amounts, as reported by the platform.
type scoped struct {
	list []*Record
	sum  Amounts
	// reduced is set if this pass has stopped or deleted one of the resources.
	reduced bool
}

// counted returns the resources of a scope.
func (p *pass) counted(s Scope) *scoped {
	if p.scopes == nil {
		p.scopes = p.byScope()
	}
	return cmp.Or(p.scopes[s], new(scoped))
}

// byScope returns the resources of each scope.
func (p *pass) byScope() map[Scope]*scoped {
	all := make(map[Scope]*scoped)
	for id, f := range p.found {
		r := p.records[id]
		if r == nil {
			r = &Record{ID: id, Kind: string(f.Kind)} // added by this pass, owned by the organisation
		}
		for _, s := range r.Owner.Scopes() {
			if all[s] == nil {
				all[s] = new(scoped)
			}
			all[s].list = append(all[s].list, r)
			all[s].sum.add(f.Amounts, 1)
		}
	}
	return all
}

// excess returns a budget of the scope if it is exceeded and can be met by stopping pods, or nil. sum is the total of the scope's
// resources.
func excess(plan *Plan, b Balance, sum Amounts, ceiling int) *Excess {
	x := &Excess{Scope: b.Scope, Ceiling: ceiling, Limit: plan.Budget(b.Scope).Limits()[ceiling]}
	exceeded := false
	switch {
	case Accrues(ceiling): // running resources keep accruing cost
		x.Used = b.Accrued.list()[ceiling-PerDay]
		exceeded = x.Used >= x.Limit
	case ceiling == PerHour:
		x.Used = sum[Burn]
		exceeded = x.Used > x.Limit
	case ceiling == CeilingGPUs:
		x.Used = sum[GPUs]
		exceeded = x.Used > x.Limit
	}
	if x.Limit == 0 || !exceeded {
		return nil
	}
	return x
}

// ordered returns the resources that can be stopped, in the given order.
func (p *pass) ordered(list []*Record, order Order) []*Record {
	list = slices.DeleteFunc(list, func(r *Record) bool { return !p.found[r.ID].Stoppable })
	slices.SortFunc(list, func(a, b *Record) int {
		if order == mostExpensive {
			return cmp.Or(cmp.Compare(p.found[b.ID].Amounts[Burn], p.found[a.ID].Amounts[Burn]), cmp.Compare(a.ID, b.ID))
		}
		return cmp.Or(cmp.Compare(p.found[a.ID].Age, p.found[b.ID].Age), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// stop stops pods until the budget is met. For a period budget it stops all of them.
func (p *pass) stop(ctx context.Context, d *due) error {
	var errs []error
	for _, r := range d.pods {
		if p.enough(d.Excess) {
			break
		}
		if !p.found[r.ID].Stoppable {
			continue // stopped for another cause in this pass
		}
		after, deleted, err := p.halt(ctx, r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.reduce(r, after)
		why := d.Cause
		why.Deleted = deleted
		p.Events.Stopped(ctx, &why, r)
		if _, err := Adjust(ctx, p.Store, p.org,
			&Adjustment{Kind: r.Kind, Resource: r.ID, Version: r.Version, Amounts: after, Metadata: r.Metadata}); err != nil {
			errs = append(errs, err) // retried by the next pass
		}
	}
	return errors.Join(errs...)
}

// reduce records that this pass has stopped or deleted a resource.
func (p *pass) reduce(r *Record, after Amounts) {
	f := p.found[r.ID]
	for _, s := range r.Owner.Scopes() {
		c := p.counted(s)
		c.sum.add(f.Amounts, -1)
		c.sum.add(after, 1)
		c.reduced = true
	}
	f.Amounts, f.Stoppable = after, false
}

// halt stops a pod or deletes a sandbox. It returns the remaining amounts.
func (p *pass) halt(ctx context.Context, r *Record) (after Amounts, deleted bool, err error) {
	if r.Kind == string(operation.KindSandbox) {
		return after, true, p.Platform.Delete(ctx, p.org, operation.KindSandbox, r.ID)
	}
	after, err = p.Platform.StopPod(ctx, p.org, r.ID)
	return after, false, err
}
