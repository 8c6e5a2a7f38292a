package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Reconciler updates ledgers to match the platform. It settles holds with unknown outcomes, records resources created outside the gateway,
// and removes resources that no longer exist.
//
// A resource that is not in the ledger and was not created by the call of a hold gets the first owner in this list that is known:
//   - the owner that a gateway remembers from a lost ledger, or, in a rebuild, the owner in the audit log ([Gateway].RecordedOwners)
//   - the owner named by the labels of the resource ([LabelledOwner])
//   - the owner of the resource before it was removed from the ledger
//   - the organisation
//
// [Reconciler.Assign] changes the owner later.
//
// Two reconcilers can work on the same ledger: entries that have changed since they were read are not adjusted.
type Reconciler struct {
	*Deps

	Store Store

	images  *Snapshots
	outbox  *Outbox
	bills   *Bills
	kept    keptLedgers
	sending sync.Map // names of notices being delivered, prefixed with their organisation
}

// Report is what one pass of the Reconciler found and changed. A resource is Adopted if it was added to the ledger. It is also Unmanaged if
// the ledger was complete without it, which means that it was created outside the gateway. A resource is Missing if the platform's list
// omits it although it may still exist, and Unowned if it belongs to no caller.
type Report struct {
	// Resources is the number of resources at the platform.
	Resources int
	// Adopted is the number of resources added to the ledger, Removed the number of resources that no longer exist, and Changed
	// the number of resources whose amounts differed from the ledger.
	Adopted, Removed, Changed int
	// OwnersRestored is the number of Adopted resources whose owners were restored after a loss.
	OwnersRestored int
	// Unmanaged are the adopted resources that were created outside the gateway.
	Unmanaged []PlatformResource
	// Drifted are the removed and changed resources. It is empty in the pass that rebuilds the ledger.
	Drifted []Drift
	// HoldsCommitted is the number of holds whose call was executed. HoldsReleased is the number of holds for whose call no result was found.
	HoldsCommitted, HoldsReleased int
	// EndedHolds lists the holds counted by HoldsCommitted and HoldsReleased.
	EndedHolds []EndedHold
	// Open is the number of holds that remain open.
	Open int
	// Unowned is the number of resources that no caller of the organisation has created.
	Unowned int
	// Missing is the number of resources omitted from the list and not known to be gone. ListIncomplete is set if most resources are
	// omitted.
	Missing        int
	ListIncomplete bool
	// Rebuilt is set if the pass rebuilt an incomplete ledger.
	Rebuilt bool
	// Implausible is the number of resources for which the platform reported an impossible value.
	Implausible int
	// Repaired is the number of repaired sums.
	Repaired int
	// Loss is the loss repaired by the pass, or nil.
	Loss *Loss
	// Corrections are the corrections made from the platform's bills.
	Corrections Corrections
	// NextDeadline is the time until the next deadline of a pod, or 0.
	NextDeadline time.Duration
}

// EndedHold is a hold whose outcome the reconciler has found. Executed is set if the call of the hold was executed. Created is the ID of
// the resource that the call created or changed, or "".
type EndedHold struct {
	Hold

	Executed bool
	Created  string
}

// Drift is a resource that no longer matches its record although no call through the gateway has changed it.
type Drift struct {
	Record
	// Current are the resource's amounts; zero if it is Gone.
	Current Amounts
	Gone    bool
}

const (
	// listSlack is the usual lag of a list after a response of the platform.
	listSlack = 10 * time.Second
	// clockSlack is the error of times given in whole seconds.
	clockSlack = 2 * time.Second
)

// Rebuild completes an incomplete ledger. It does nothing if another gateway has completed it in the meantime.
func (r *Reconciler) Rebuild(ctx context.Context, org string) error {
	_, err := r.pass(ctx, org, true)
	return err
}

// Pass reconciles one organisation.
func (r *Reconciler) Pass(ctx context.Context, org string) (Report, error) {
	return r.pass(ctx, org, false)
}

func (r *Reconciler) pass(ctx context.Context, org string, closed bool) (Report, error) {
	unlock, err := r.Store.Lock(ctx, org)
	if err != nil {
		return Report{}, fmt.Errorf("reconcile %s: %w", org, err)
	}
	defer unlock()
	if closed { // many calls may wait for the lock, and a large ledger takes long to read
		if heads, err := r.Store.Heads(ctx, []string{org}); err != nil || heads[0].Complete {
			return Report{}, err
		}
	}
	from, began := r.images.begin(org), time.Now()
	before, err := r.Store.Show(ctx, org)
	if err != nil {
		return Report{}, err
	}
	p := &pass{
		Reconciler: r, org: org, plan: r.Gateway.Plan(org), memory: new(recollection),
		found: make(map[string]*PlatformResource), records: make(map[string]*Record, len(before.Resources)), gets: newGets(),
		silent: make(map[string]time.Duration),
	}
	if err = p.reconcile(ctx, &before, from, began); err == nil {
		r.kept.passed(org)
	}
	r.Events.PassEnded(ctx, org, &p.report, err)
	if p.loss != nil { // recorded after the report, so that another gateway repeats the report if this one ends in between
		err = errors.Join(err, r.images.notice(ctx, org, p.loss))
	}
	return p.report, err
}

// reconcile reconciles the ledger as it was at the start of the pass.
func (p *pass) reconcile(ctx context.Context, before *State, from int64, began time.Time) error {
	if err := p.open(ctx, before, from); err != nil {
		return err
	}
	above, below := split(p.state.Differences())
	if err := p.repairSums(ctx, above, below); err != nil {
		return err
	}
	found, err := p.Platform.List(ctx, p.org, p.state.Has)
	if err != nil {
		return fmt.Errorf("reconcile %s: %w", p.org, err)
	}
	p.report.Resources = len(found)
	err = p.run(ctx, found)
	if p.memory.loss != nil {
		err = errors.Join(err, p.images.returned(ctx, p.org, p.report.OwnersRestored))
	}
	if err != nil {
		return fmt.Errorf("reconcile %s: %w", p.org, err)
	}
	if !before.Complete && p.memory.loss != nil {
		if err := p.bills.scheduleAll(ctx, p.org, p.state); err != nil {
			return err
		}
	}
	p.History.SetResources(p.org, p.found)
	if err := p.History.RollUpHours(ctx, p.org); err != nil {
		return err
	}
	if err := p.repairSums(ctx, below, nil); err != nil {
		return err
	}
	if !before.Complete {
		if done, err := p.Store.FinishRebuild(ctx, p.org, p.token); err != nil {
			return err
		} else if !done {
			return p.unfinished(ctx, p.org)
		}
	}
	if p.loss, err = p.images.finished(ctx, p.org, p.memory, &p.report, before.Now.Add(time.Since(began))); err != nil {
		return err
	}
	p.report.Corrections, err = p.bills.Follow(ctx, p.org, before.Now)
	if err != nil {
		p.Logger.WarnContext(ctx, "cannot compare counted costs with the platform's bills", "org", p.org, "error", err.Error())
	}
	if c := p.report.Corrections; c.Hours > 0 {
		p.Logger.InfoContext(ctx, "corrected counted costs to match the platform's bills", "org", p.org, "hours", c.Hours,
			"more_micro_usd", c.Added, "less_micro_usd", c.Subtracted)
	}
	return nil
}

// open applies the moves of the plan, rolls up costs, and begins the rebuild of an incomplete ledger.
func (p *pass) open(ctx context.Context, before *State, from int64) error {
	if any, err := p.moveAll(ctx, before); err != nil {
		return err
	} else if any {
		if *before, err = p.Store.Show(ctx, p.org); err != nil {
			return err
		}
	}
	p.report.Rebuilt = !before.Complete
	p.images.replace(p.org, before, from)
	switch {
	case !before.Complete:
		if err := p.bills.lost(ctx, p.org, before); err != nil {
			return err
		}
	case p.plan != nil:
		p.Events.Observed(ctx, p.org, p.plan, before)
	}
	if err := p.History.RollUpHours(ctx, p.org); err != nil {
		return err
	}
	if !before.Complete {
		return p.begin(ctx, before)
	}
	p.state = before
	var err error
	p.memory.loss, err = p.images.lost(ctx, p.org, before) // the gateway that rebuilt the ledger may have ended before it reported the loss
	return err
}

// begin begins a rebuild, waits for the gateways to restore their memory, and then reads the ledger.
func (p *pass) begin(ctx context.Context, before *State) error {
	if _, err := p.images.lost(ctx, p.org, before); err != nil {
		return err
	}
	p.token = before.Now.Format(time.RFC3339Nano)
	if err := p.Store.BeginRebuild(ctx, p.org, p.token); err != nil {
		return err
	}
	var err error
	if p.memory, err = p.images.recall(ctx, p.org, before, p.outbox); err != nil {
		return err
	}
	state, err := p.Store.Show(ctx, p.org)
	p.state = &state
	return err
}

// unfinished returns why a rebuild did not complete the ledger: data was lost again, or ErrEpochChanged if another rebuild has begun.
func (r *Reconciler) unfinished(ctx context.Context, org string) error {
	heads, err := r.Store.Heads(ctx, []string{org})
	if err != nil {
		return err
	}
	if heads[0].Lost != "" {
		return errors.New("the store lost its data during the rebuild")
	}
	r.Logger.InfoContext(ctx, "rebuild of the ledger was superseded by another rebuild", "org", org)
	return ErrEpochChanged
}

// pass is one pass over one organisation. The state was read before the list. A resource that is in both or in neither has not changed in
// between.
type pass struct {
	*Reconciler

	org     string
	plan    *Plan  // nil without budgets
	token   string // of a rebuild
	state   *State
	found   map[string]*PlatformResource
	records map[string]*Record
	gets    gets
	memory  *recollection
	loss    *Loss             // repaired by the pass
	noticed map[string]string // values in the NoticeStore
	scopes  map[Scope]*scoped // see counted
	report  Report
	// silent is the time since the last sign of life of each dead gateway, by incarnation; 0 for gateways that are not known to be dead.
	silent map[string]time.Duration
}

func (p *pass) run(ctx context.Context, found []PlatformResource) error {
	for i := range p.state.Resources {
		p.records[p.state.Resources[i].ID] = &p.state.Resources[i]
	}
	var unknown, remembered []*PlatformResource
	for i := range found {
		f := &found[i]
		p.correct(ctx, f)
		p.found[f.ID] = f
		switch {
		case p.records[f.ID] != nil:
		case p.memory.owns(f):
			remembered = append(remembered, f)
		default:
			unknown = append(unknown, f)
		}
	}
	unknown, err := p.holds(ctx, unknown)
	if err == nil && len(unknown) > 0 {
		unknown, err = p.outside(ctx, unknown)
	}
	if err != nil {
		return err
	}
	p.memory.rest(ctx, p, unknown)
	if err := p.adopt(ctx, append(unknown, remembered...)); err != nil {
		return err
	}
	returned, err := returnToOwners(ctx, p.Store, p.org, p.memory.owners)
	if p.report.OwnersRestored += returned; err != nil {
		return err
	}
	if err := p.follow(ctx); err != nil {
		return err
	}
	if p.report.ListIncomplete = p.short(); p.report.ListIncomplete {
		p.Logger.WarnContext(ctx, "platform's list omits most known resources, checking each missing resource before removing it",
			"org", p.org, "missing", p.report.Missing, "listed", len(p.found))
	}
	for id, f := range p.found {
		r, owner := p.records[id], p.memory.owners[id].Owner
		if r != nil && r.Owner != (Owner{}) {
			owner = r.Owner
		} else if r == nil && owner == (Owner{}) {
			owner = f.Owner
		}
		if IsCounted(f.Kind) && owner == (Owner{}) {
			p.report.Unowned++
		}
	}
	return p.enforce(ctx)
}

// correct replaces impossible amounts of a resource with the recorded ones, or with one GPU for an unknown pod.
func (p *pass) correct(ctx context.Context, f *PlatformResource) {
	if f.Implausible == "" {
		return
	}
	p.report.Implausible++
	p.Logger.WarnContext(ctx, "platform reported an impossible value, counting the last known amounts", "org", p.org, "kind", string(f.Kind),
		"resource", f.ID, "member", f.Implausible)
	if r := p.records[f.ID]; r != nil {
		f.Amounts, f.Priced = r.Amounts, true
	} else if f.Kind == operation.KindPod {
		f.Amounts[GPUs] = max(1, f.Amounts[GPUs])
	}
}

// outside returns the unknown resources that were created outside the gateway, excluding results of calls that began after the state
// was read. Such a call is still in progress, or has recorded its resource, unless the resource is gone by now. Therefore outside reads
// the ledger again, and then the list.
func (p *pass) outside(ctx context.Context, unknown []*PlatformResource) ([]*PlatformResource, error) {
	after, err := p.Store.Show(ctx, p.org)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(after.Resources)+len(p.state.Holds))
	for i := range after.Resources {
		known[after.Resources[i].ID] = true
	}
	unknown = slices.DeleteFunc(unknown, func(f *PlatformResource) bool { return known[f.ID] })
	clear(known)
	for i := range p.state.Holds {
		known[p.state.Holds[i].ID] = true
	}
	for i := range after.Holds {
		h := &after.Holds[i]
		if known[h.ID] || h.Resource != "" {
			continue
		}
		at := slices.IndexFunc(unknown, func(f *PlatformResource) bool { return f.CreatedBy(h.ID, h.Kind, h.Metadata, after.Now.Sub(h.At)) })
		if at >= 0 {
			unknown = slices.Delete(unknown, at, at+1)
		}
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	again, err := p.Platform.List(ctx, p.org, p.state.Has)
	if err != nil {
		return nil, fmt.Errorf("list again: %w", err)
	}
	clear(known)
	for i := range again {
		known[again[i].ID] = true
	}
	return slices.DeleteFunc(unknown, func(f *PlatformResource) bool { return !known[f.ID] }), nil
}

// adopt records resources that were created outside the gateway, if they are counted, and resources of a lost ledger, for their owners.
func (p *pass) adopt(ctx context.Context, unknown []*PlatformResource) error {
	unknown = slices.DeleteFunc(unknown, func(f *PlatformResource) bool {
		_, known := p.memory.owners[f.ID]
		return !known && !IsCounted(f.Kind)
	})
	list := make([]*Adjustment, len(unknown))
	for i, f := range unknown {
		list[i] = &Adjustment{Kind: string(f.Kind), Resource: f.ID, Amounts: f.Amounts, Metadata: f.about()}
		if f.Owner != (Owner{}) {
			list[i].Owner = &f.Owner
		}
		if owned, known := p.memory.owners[f.ID]; known {
			list[i].Owner, list[i].Metadata, list[i].From = &owned.Owner, owned.About.or(f.about()), p.accrues(f, &owned)
		}
	}
	made, err := p.Store.Adjust(ctx, p.org, list...)
	for i, done := range made {
		if done != AdjustSkipped {
			p.adopted(ctx, unknown[i], done)
		}
	}
	return err
}

// accrues returns when the cost of a remembered resource starts to accrue, or zero for now. The restored balances include its cost
// until now. If they include it as the cost of the call's hold, which was restored too, the end of the hold subtracts it.
func (p *pass) accrues(f *PlatformResource, owned *Ownership) time.Time {
	for i := range p.state.Holds {
		h := &p.state.Holds[i]
		if h.Resource == "" && h.Metadata.Decision == owned.About.Decision && f.CreatedBy(h.ID, h.Kind, h.Metadata, p.state.Now.Sub(h.At)) {
			return cmp.Or(StartTime(f.Started, h.At), h.At)
		}
	}
	return time.Time{}
}

// returnToOwners assigns resources recorded without an owner to the owners that gateways remember, and returns their number. The pass of
// another gateway may have found them in the platform's list before the loss was noticed.
func returnToOwners(ctx context.Context, s Store, org string, owners map[string]Ownership) (returned int, err error) {
	if len(owners) == 0 {
		return 0, nil
	}
	for range assignTries {
		state, err := s.Show(ctx, org)
		if err != nil {
			return returned, err
		}
		var list []*Adjustment
		for i := range state.Resources {
			r := &state.Resources[i]
			if owned := owners[r.ID]; r.Owner == (Owner{}) && owned.Owner != (Owner{}) {
				list = append(list, &Adjustment{
					Kind: r.Kind, Resource: r.ID, Version: r.Version, Amounts: r.Amounts, Owner: &owned.Owner,
					Metadata: owned.About.or(r.Metadata),
				})
			}
		}
		made, err := s.Adjust(ctx, org, list...)
		for _, done := range made {
			if done != AdjustSkipped {
				returned++
			}
		}
		if err != nil || !slices.Contains(made, AdjustSkipped) {
			return returned, err
		}
	}
	return returned, nil // calls about the others are in progress
}

func (p *pass) adopted(ctx context.Context, f *PlatformResource, done AdjustResult) {
	p.report.Adopted++
	if p.memory.owns(f) {
		p.report.OwnersRestored++
	}
	if !f.Priced {
		p.Logger.WarnContext(ctx, "price of the resource is unknown, counting it as free: add its price to the catalog's rates", "org", p.org,
			"kind", f.Kind, "resource", f.ID)
	}
	switch {
	case done == AdjustReturned:
		p.Logger.WarnContext(ctx, "missing resource reappeared, assigned to its previous owner", "org", p.org, "kind", f.Kind, "resource", f.ID)
	case !p.report.Rebuilt:
		p.Logger.WarnContext(ctx, "found a resource created outside the gateway, counting it for the organisation", "org", p.org,
			"kind", f.Kind, "resource", f.ID)
		p.report.Unmanaged = append(p.report.Unmanaged, *f)
	}
}
