package spend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Reconciler makes ledgers follow the platform: it settles holds whose end is not
// known, enters resources made without the gateway as the organisation's, and takes
// off those that are gone. Two of them at work on the same ledger do no harm: nothing is
// adjusted that has changed since it was read.
type Reconciler struct {
	Store Store
	// List returns everything that an organisation has at the platform.
	List func(ctx context.Context, org string) ([]Found, error)
	// Get asks the platform for one resource; nil means that it answered 404.
	Get func(ctx context.Context, org string, kind operation.Kind, id string) (*Found, error)
	// Claim makes a resource that of a hold's call, and reports whether it is: of those
	// that look alike, each belongs to one call.
	Claim func(ctx context.Context, org string, f *Found, h *Hold) (bool, error)
	// Job asks for the outcome of a hold's job: a commit, or nil while it goes on or
	// nothing is known of it. A nil Job asks nothing.
	Job func(ctx context.Context, org string, h *Hold) (*Settlement, error)
	// Dead returns how long the gateway of a hold has been silent if it is known to be dead; nil knows nothing of gateways.
	Dead func(ctx context.Context, h Holder) (silent time.Duration, dead bool)
	// Nothing is called with the IDs of holds whose creates have made nothing; nil ignores them.
	Nothing func(ctx context.Context, org string, holds ...string) error
	// Lock waits until the caller alone reconciles an organisation.
	Lock   func(ctx context.Context, org string) (unlock func(), err error)
	Logger *slog.Logger
	// Seen is called with the ledger as a pass found it at its beginning; nil ignores it.
	Seen func(ctx context.Context, org string, s *State)
	// Done is called with the result of each pass; nil ignores it.
	Done func(ctx context.Context, org string, r Report)
	// Repaired is told of sums that were repaired; nil ignores it.
	Repaired func(ctx context.Context, org string, d []Difference)
	// Moves returns the moves of an organisation's configuration; each pass makes them. A nil Moves has none.
	Moves func(org string) []Move
	// Images are the gateways' memories of a lost ledger; nil remembers nothing.
	Images *Images
	// History rolls up the costs of resources in each pass.
	History *History
	// Bills corrects counted costs by billed ones; nil does not.
	Bills *Bills
	// Enforcer corrects exceeded budgets; nil does not.
	Enforcer *Enforcer
	// Patience is how long a call may take: a hold that is older belongs to a
	// gateway that has ended. Unresolved is how much longer the pass looks for the result of a
	// call with an unknown outcome.
	Patience, Unresolved time.Duration
}

// Report is the result of a pass.
type Report struct {
	// Resources is how many the platform has.
	Resources int
	// Adopted were made without the gateway, Removed have gone, Changed took
	// something else than the ledger said.
	Adopted, Removed, Changed int
	// Returned are those of Adopted that have their owner back after a loss.
	Returned int
	// Strangers are those adopted by a ledger that had been complete without them.
	Strangers []Found
	// Drifted are those of Removed and Changed, without those of a ledger that was
	// rebuilt.
	Drifted []Drift
	// Found and Released are holds: those whose call was carried out, and those that
	// nothing was found for.
	Found, Released int
	// Ended are those.
	Ended []EndedHold
	// Open is how many holds stay open.
	Open int
	// Unowned is how many none of the organisation's callers made.
	Unowned int
	// Missing is how many the list lacks that are not known to be gone. Short says that
	// these are most of the resources.
	Missing int
	Short   bool
	// Rebuilt says that the ledger was not complete before.
	Rebuilt bool
	// Implausible is the number of resources for which the platform reported an impossible value.
	Implausible int
	// Corrected holds the corrections by the platform's bills.
	Corrected Corrected
	// NextDeadline is the time until the next deadline of a pod, 0 without one.
	NextDeadline time.Duration
}

// EndedHold is a hold whose end was found out: whether its call was carried out, and
// the resource that it made or was about, "" for nothing.
type EndedHold struct {
	Hold

	Carried bool
	Made    string
}

// Drift is a resource that differs from its record without a call by the gateway.
type Drift struct {
	Record
	// Now are its amounts; none, if it has Gone.
	Now  Amounts
	Gone bool
}

const (
	// listSlack is the usual lag of a list behind an answer of the platform.
	listSlack = 10 * time.Second
	// clockSlack is the error of times in whole seconds.
	clockSlack = 2 * time.Second
)

// Rebuild makes a ledger complete that is not; if another gateway has just done so,
// it does nothing.
func (r *Reconciler) Rebuild(ctx context.Context, org string) error {
	_, err := r.pass(ctx, org, true)
	return err
}

// Pass reconciles one organisation.
func (r *Reconciler) Pass(ctx context.Context, org string) (Report, error) {
	return r.pass(ctx, org, false)
}

func (r *Reconciler) pass(ctx context.Context, org string, closed bool) (Report, error) {
	unlock, err := r.Lock(ctx, org)
	if err != nil {
		return Report{}, fmt.Errorf("reconcile %s: %w", org, err)
	}
	defer unlock()
	from := r.Images.begin(org)
	began := time.Now()
	before, err := r.Store.Show(ctx, org)
	if err != nil || closed && before.Complete {
		return Report{}, err
	}
	if any, err := r.carryAll(ctx, org, &before); err != nil {
		return Report{}, err
	} else if any {
		if before, err = r.Store.Show(ctx, org); err != nil {
			return Report{}, err
		}
	}
	r.Images.take(org, &before, from)
	if r.Seen != nil && before.Complete {
		r.Seen(ctx, org, &before)
	}
	if !before.Complete {
		if err := r.Bills.lost(ctx, org, &before); err != nil {
			return Report{}, err
		}
	}
	if err := r.History.RollHours(ctx, org); err != nil {
		return Report{}, err
	}
	token, state, memory := before.Now.Format(time.RFC3339Nano), before, new(recollection)
	if !before.Complete {
		memory, state, err = r.begin(ctx, org, token, &before)
	} else {
		memory.loss, err = r.Images.lost(ctx, org, &before) // the gateway that rebuilt it may have ended before it reported the loss
	}
	if err != nil {
		return Report{}, err
	}
	above, below := split(state.Differences())
	if err := r.prove(ctx, org, above, below); err != nil {
		return Report{}, err
	}
	found, err := r.List(ctx, org)
	if err != nil {
		return Report{}, fmt.Errorf("reconcile %s: %w", org, err)
	}
	p := &pass{
		Reconciler: r, org: org, state: &state, memory: memory, report: Report{Resources: len(found), Rebuilt: !before.Complete},
		found: make(map[string]*Found, len(found)), records: make(map[string]*Record, len(state.Resources)), gets: newGets(),
		silent: make(map[string]time.Duration),
	}
	err = p.run(ctx, found)
	if memory.loss != nil {
		err = errors.Join(err, r.Images.returned(ctx, org, p.report.Returned))
	}
	if err != nil {
		return p.report, fmt.Errorf("reconcile %s: %w", org, err)
	}
	if !before.Complete && memory.loss != nil {
		if err := r.Bills.again(ctx, org, &state); err != nil {
			return p.report, err
		}
	}
	r.History.Learn(org, p.found)
	if err := r.History.RollHours(ctx, org); err != nil {
		return p.report, err
	}
	if err := r.prove(ctx, org, below, nil); err != nil {
		return p.report, err
	}
	if !before.Complete {
		done, err := r.Store.Finish(ctx, org, token)
		if err != nil {
			return p.report, err
		}
		if !done {
			return p.report, r.unfinished(ctx, org)
		}
	}
	if err := r.Images.finished(ctx, org, memory, &p.report, before.Now.Add(time.Since(began))); err != nil {
		return p.report, err
	}
	p.report.Corrected, err = r.Bills.Follow(ctx, org, before.Now)
	if err != nil {
		r.Logger.WarnContext(ctx, "what was counted could not be compared with the platform's bills", "org", org, "error", err.Error())
	}
	if c := p.report.Corrected; c.Hours > 0 {
		r.Logger.InfoContext(ctx, "what was counted follows the platform's bills", "org", org, "hours", c.Hours, "more_micro_usd", c.More, "less_micro_usd", c.Less)
	}
	if r.Done != nil {
		r.Done(ctx, org, p.report)
	}
	return p.report, nil
}

// begin begins the rebuild of a ledger, waits for the gateways to restore what they remember, and returns the ledger as it is then.
func (r *Reconciler) begin(ctx context.Context, org, token string, before *State) (*recollection, State, error) {
	if _, err := r.Images.lost(ctx, org, before); err != nil {
		return nil, State{}, err
	}
	if err := r.Store.Begin(ctx, org, token); err != nil {
		return nil, State{}, err
	}
	memory, err := r.Images.recall(ctx, org, before)
	if err != nil {
		return nil, State{}, err
	}
	state, err := r.Store.Show(ctx, org)
	return memory, state, err
}

// unfinished returns why a rebuild did not complete the ledger: the store was lost again, or ErrOtherEpoch if another rebuild has begun.
func (r *Reconciler) unfinished(ctx context.Context, org string) error {
	heads, err := r.Store.Heads(ctx, []string{org})
	if err != nil {
		return err
	}
	if heads[0].Lost != "" {
		return errors.New("the store was lost during the rebuild")
	}
	r.Logger.InfoContext(ctx, "another rebuild of the ledger has begun and replaces this rebuild", "org", org)
	return ErrOtherEpoch
}

// pass is one pass over one organisation. The state was read before the list: a resource that
// is in both, or in neither, stood still.
type pass struct {
	*Reconciler

	org     string
	state   *State
	found   map[string]*Found
	records map[string]*Record
	gets    gets
	memory  *recollection
	report  Report
	// silent is how long dead gateways have been silent, by incarnation; 0 for others.
	silent map[string]time.Duration
}

func (p *pass) run(ctx context.Context, found []Found) error {
	for i := range p.state.Resources {
		p.records[p.state.Resources[i].ID] = &p.state.Resources[i]
	}
	var unknown []*Found
	for i := range found {
		f := &found[i]
		p.correct(ctx, f)
		p.found[f.ID] = f
		if p.records[f.ID] == nil {
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
	if err := p.adopt(ctx, unknown); err != nil {
		return err
	}
	returned, err := giveBack(ctx, p.Store, p.org, p.memory.owners)
	if p.report.Returned += returned; err != nil {
		return err
	}
	if err := p.follow(ctx); err != nil {
		return err
	}
	if p.report.Short = p.short(); p.report.Short {
		p.Logger.WarnContext(ctx, "the platform's list lacks most of what there is; nothing of it is taken for gone without a GET", "org", p.org, "missing", p.report.Missing, "listed", len(p.found))
	}
	for id, f := range p.found {
		r, owner := p.records[id], p.memory.owners[id].Owner
		if r != nil && r.Owner != (Owner{}) {
			owner = r.Owner
		}
		if Counts(f.Kind) && owner == (Owner{}) {
			p.report.Unowned++
		}
	}
	if p.Enforcer == nil {
		return nil
	}
	return p.Enforcer.enforce(ctx, p)
}

// correct replaces amounts that a resource cannot have by the recorded amounts, or for an unknown pod by one GPU.
func (p *pass) correct(ctx context.Context, f *Found) {
	if f.Implausible == "" {
		return
	}
	p.report.Implausible++
	p.Logger.WarnContext(ctx, "platform reports an impossible value; the last known amounts count", "org", p.org, "kind", string(f.Kind), "resource", f.ID, "member", f.Implausible)
	if r := p.records[f.ID]; r != nil {
		f.Amounts, f.Priced = r.Amounts, true
	} else if f.Kind == operation.KindPod {
		f.Amounts[GPUs] = max(1, f.Amounts[GPUs])
	}
}

// outside returns the unknown resources that were made without the gateway, and not
// by a call that began after the state was read. Such a call is under way still, or has
// named its resource, unless that is gone by now: so the ledger is read again, and then
// the list.
func (p *pass) outside(ctx context.Context, unknown []*Found) ([]*Found, error) {
	after, err := p.Store.Show(ctx, p.org)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(after.Resources)+len(p.state.Holds))
	for i := range after.Resources {
		known[after.Resources[i].ID] = true
	}
	unknown = slices.DeleteFunc(unknown, func(f *Found) bool { return known[f.ID] })
	clear(known)
	for i := range p.state.Holds {
		known[p.state.Holds[i].ID] = true
	}
	for i := range after.Holds {
		h := &after.Holds[i]
		if known[h.ID] || h.Resource != "" {
			continue
		}
		at := slices.IndexFunc(unknown, func(f *Found) bool { return f.MadeBy(h.Kind, h.About, after.Now.Sub(h.At)) })
		if at >= 0 {
			unknown = slices.Delete(unknown, at, at+1)
		}
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	again, err := p.List(ctx, p.org)
	if err != nil {
		return nil, fmt.Errorf("list again: %w", err)
	}
	clear(known)
	for i := range again {
		known[again[i].ID] = true
	}
	return slices.DeleteFunc(unknown, func(f *Found) bool { return !known[f.ID] }), nil
}

// adopt enters resources made without the gateway, if they count, and those that a lost ledger
// had, for their owners.
func (p *pass) adopt(ctx context.Context, unknown []*Found) error {
	unknown = slices.DeleteFunc(unknown, func(f *Found) bool {
		_, known := p.memory.owners[f.ID]
		return !known && !Counts(f.Kind)
	})
	list := make([]*Adjustment, len(unknown))
	for i, f := range unknown {
		list[i] = &Adjustment{Kind: string(f.Kind), Resource: f.ID, Amounts: f.Amounts, About: f.about()}
		if owned, known := p.memory.owners[f.ID]; known {
			list[i].Owner, list[i].About = &owned.Owner, owned.About.or(f.about())
		}
	}
	made, err := p.Store.Adjust(ctx, p.org, list...)
	for i, done := range made {
		if done != NotMade {
			p.adopted(ctx, unknown[i], done)
		}
	}
	return err
}

// giveBack gives resources that are entered for nobody to the owners that gateways remember, and returns the number of these resources.
// A pass of another gateway may have found them in the platform's list before the loss was noticed.
func giveBack(ctx context.Context, s Store, org string, owners map[string]Owned) (returned int, err error) {
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
				list = append(list, &Adjustment{Kind: r.Kind, Resource: r.ID, Version: r.Version, Amounts: r.Amounts, Owner: &owned.Owner, About: owned.About.or(r.About)})
			}
		}
		made, err := s.Adjust(ctx, org, list...)
		for _, done := range made {
			if done != NotMade {
				returned++
			}
		}
		if err != nil || !slices.Contains(made, NotMade) {
			return returned, err
		}
	}
	return returned, nil // calls about the others are under way
}

func (p *pass) adopted(ctx context.Context, f *Found, done Adjusted) {
	p.report.Adopted++
	if p.memory.owners[f.ID].Owner != (Owner{}) {
		p.report.Returned++
	}
	if !f.Priced {
		p.Logger.WarnContext(ctx, "a resource has no known price and counts as free: add its price to the catalog's rates", "org", p.org, "kind", f.Kind, "resource", f.ID)
	}
	switch {
	case done == GivenBack:
		p.Logger.WarnContext(ctx, "a resource that had gone is back and belongs to its owner again", "org", p.org, "kind", f.Kind, "resource", f.ID)
	case !p.report.Rebuilt:
		p.Logger.WarnContext(ctx, "a resource was made without the gateway and counts for the organisation", "org", p.org, "kind", f.Kind, "resource", f.ID)
		p.report.Strangers = append(p.report.Strangers, *f)
	}
}
