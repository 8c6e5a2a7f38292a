package spend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Reconciler makes ledgers follow the platform: it settles holds whose end is not
// known, enters what was made without the gateway as the organisation's, and takes
// off what is gone. Two of them at work on the same ledger do no harm: nothing is
// adjusted that has changed since it was read.
type Reconciler struct {
	Store Store
	// List returns everything that an organisation has at the platform.
	List func(ctx context.Context, org string) ([]Found, error)
	// Claim makes a resource that of a hold's call, and reports whether it is: of those
	// that look alike, each belongs to one call.
	Claim func(ctx context.Context, org string, f *Found, hold string) (bool, error)
	// Job asks what became of the job of a hold: a commit, or nil while it goes on or
	// nothing is known of it. A nil Job asks nothing.
	Job func(ctx context.Context, org string, h *Hold) (*Settlement, error)
	// Lock waits until the caller alone reconciles an organisation.
	Lock   func(ctx context.Context, org string) (unlock func(), err error)
	Logger *slog.Logger
	// Seen is told what a pass found in the ledger when it began; nil ignores it.
	Seen func(ctx context.Context, org string, s *State)
	// Done is told what each pass has done; nil ignores it.
	Done func(ctx context.Context, org string, r Report)
	// History rolls up what resources cost in each pass.
	History *History
	// Bills corrects what was counted by what was billed; nil does not.
	Bills *Bills
	// Enforcer makes good what passes a budget; nil does not.
	Enforcer *Enforcer
	// Patience is how long a call may take: a hold that is older belongs to a
	// gateway that has ended. Unresolved is how much longer it is looked for what a
	// call of unknown end may have made.
	Patience, Unresolved time.Duration
}

// Report is what a pass has done.
type Report struct {
	// Resources is how many the platform has.
	Resources int
	// Adopted were made without the gateway, Removed have gone, Changed took
	// something else than the ledger said.
	Adopted, Removed, Changed int
	// Strangers are those adopted by a ledger that had been complete without them.
	Strangers []Found
	// Drifted are those of Removed and Changed, without those of a ledger that was
	// rebuilt.
	Drifted []Drift
	// Found and Released are holds: those whose call was carried out, and those that
	// nothing was found for.
	Found, Released int
	// Open is how many holds stay open.
	Open int
	// Unowned is how many none of the organisation's callers made.
	Unowned int
	// Rebuilt says that the ledger was not complete before.
	Rebuilt bool
	// Corrected is what the platform's bills have changed.
	Corrected Corrected
}

// Drift is a resource that differs from its record without a call by the gateway.
type Drift struct {
	Record
	// Now is what it takes; nothing, if it has Gone.
	Now  Amounts
	Gone bool
}

const (
	// listSlack is what a list may lag behind an answer of the platform.
	listSlack = 10 * time.Second
	// clockSlack is what times in whole seconds may be off.
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
	before, err := r.Store.Show(ctx, org)
	if err != nil || closed && before.Complete {
		return Report{}, err
	}
	if r.Seen != nil && before.Complete {
		r.Seen(ctx, org, &before)
	}
	if err := r.History.Roll(ctx, org, nil); err != nil {
		return Report{}, err
	}
	token := before.Now.Format(time.RFC3339Nano)
	if !before.Complete {
		if err := r.Store.Begin(ctx, org, token); err != nil {
			return Report{}, err
		}
	}
	found, err := r.List(ctx, org)
	if err != nil {
		return Report{}, fmt.Errorf("reconcile %s: %w", org, err)
	}
	p := &pass{
		Reconciler: r, org: org, state: &before, report: Report{Resources: len(found), Rebuilt: !before.Complete},
		found: make(map[string]*Found, len(found)), records: make(map[string]*Record, len(before.Resources)),
	}
	if err := p.run(ctx, found); err != nil {
		return p.report, fmt.Errorf("reconcile %s: %w", org, err)
	}
	if err := r.History.Roll(ctx, org, p.found); err != nil {
		return p.report, err
	}
	if !before.Complete {
		done, err := r.Store.Finish(ctx, org, token)
		if err != nil {
			return p.report, err
		}
		if !done {
			return p.report, errors.New("the store was lost during the rebuild")
		}
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

// pass is one pass over one organisation. The state was read before the list: what
// is in both, or in neither, stood still.
type pass struct {
	*Reconciler

	org     string
	state   *State
	found   map[string]*Found
	records map[string]*Record
	report  Report
}

func (p *pass) run(ctx context.Context, found []Found) error {
	for i := range p.state.Resources {
		p.records[p.state.Resources[i].ID] = &p.state.Resources[i]
	}
	var unknown []*Found
	for i := range found {
		f := &found[i]
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
	for _, f := range unknown {
		if err := p.adopt(ctx, f); err != nil {
			return err
		}
	}
	for _, r := range p.records {
		if err := p.follow(ctx, r); err != nil {
			return err
		}
	}
	for id, f := range p.found {
		if r := p.records[id]; Counts(f.Kind) && (r == nil || r.Owner == Owner{}) {
			p.report.Unowned++
		}
	}
	if p.Enforcer == nil {
		return nil
	}
	return p.Enforcer.enforce(ctx, p)
}

// due reports whether the end of a hold's call has to be found out, and until when
// it is looked for.
func (p *pass) due(h *Hold) (until time.Time, due bool) {
	if h.Open {
		return h.Until, true
	}
	late := h.At.Add(p.Patience)
	return late.Add(p.Unresolved), p.state.Now.After(late)
}

// holds ends the holds whose end can be told, and returns what of the unknown
// resources none of them has made.
func (p *pass) holds(ctx context.Context, unknown []*Found) ([]*Found, error) {
	for i := range p.state.Holds {
		h := &p.state.Holds[i]
		until, due := p.due(h)
		over := !p.state.Now.Before(until)
		var s *Settlement
		switch {
		case h.Kind == string(operation.KindJob): // nothing is listed for it: what it cost at most is known
			if s = p.job(ctx, h); s == nil && due && over {
				s = &Settlement{Hold: h.ID, End: Commit, Full: true}
			}
			if s == nil {
				continue
			}
		case h.Resource == "":
			at := -1
			for j, f := range unknown {
				if f.MadeBy(h.Kind, h.About, p.state.Now.Sub(h.At)) && p.claim(ctx, f, h) {
					at = j
					break
				}
			}
			switch {
			case at >= 0 && due:
				s = p.made(h, unknown[at])
				unknown = append(unknown[:at:at], unknown[at+1:]...)
			case at >= 0: // its call is under way: it will say so itself
				unknown = append(unknown[:at:at], unknown[at+1:]...)
			case due && over:
				s = &Settlement{Hold: h.ID, End: Release}
			}
		case due:
			s = p.changed(h, over)
		}
		if s == nil {
			if due {
				p.report.Open++
			}
			continue
		}
		if err := p.end(ctx, h, s); err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

// maxJobs is about how many jobs a pass asks for.
const maxJobs = 100

// job asks what became of the job of a hold, nil if that is not known. Of too many, it
// asks for some, others in each pass.
func (p *pass) job(ctx context.Context, h *Hold) *Settlement {
	if !h.Open || p.Job == nil || rand.IntN(len(p.state.Holds)) >= maxJobs {
		return nil
	}
	s, err := p.Job(ctx, p.org, h)
	if err != nil {
		p.Logger.DebugContext(ctx, "it is not known what became of a job", "org", p.org, "hold", h.ID, "error", err.Error())
	}
	return s
}

// claim reports whether what was found can be given to a hold. A call that is under
// way claims what it made itself.
func (p *pass) claim(ctx context.Context, f *Found, h *Hold) bool {
	if _, due := p.due(h); !due {
		return true
	}
	mine, err := p.Claim(ctx, p.org, f, h.ID)
	return err == nil && mine
}

// outside returns what of the unknown resources was made without the gateway, and not
// by a call that began after the state was read. Such a call is under way still, or has
// said what it made, unless that is gone by now: so the ledger is read again, and then
// the list.
func (p *pass) outside(ctx context.Context, unknown []*Found) ([]*Found, error) {
	after, err := p.Store.Show(ctx, p.org)
	if err != nil {
		return nil, err
	}
	for i := range after.Resources {
		unknown = slices.DeleteFunc(unknown, func(f *Found) bool { return f.ID == after.Resources[i].ID })
	}
	for i := range after.Holds {
		h := &after.Holds[i]
		if slices.ContainsFunc(p.state.Holds, func(known Hold) bool { return known.ID == h.ID }) {
			continue
		}
		at := slices.IndexFunc(unknown, func(f *Found) bool {
			return h.Resource == "" && f.MadeBy(h.Kind, h.About, after.Now.Sub(h.At))
		})
		if at >= 0 {
			unknown = slices.Delete(unknown, at, at+1)
		}
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	still, err := p.List(ctx, p.org)
	if err != nil {
		return nil, fmt.Errorf("list again: %w", err)
	}
	return slices.DeleteFunc(unknown, func(f *Found) bool {
		return !slices.ContainsFunc(still, func(other Found) bool { return other.ID == f.ID })
	}), nil
}

// made commits a create under the resource that was found.
func (p *pass) made(h *Hold, f *Found) *Settlement {
	s := &Settlement{Hold: h.ID, End: Commit, Kind: h.Kind, Resource: f.ID, Owner: h.Owner, Amounts: f.Amounts, About: h.About}
	if !f.Priced {
		s.Amounts[Burn] = h.Amounts[Burn]
	}
	return s
}

// changed ends the hold of a change: at once if the platform shows that it was made,
// or if nothing was reserved, otherwise when it has been looked for long enough.
func (p *pass) changed(h *Hold, over bool) *Settlement {
	f, was := p.found[h.Resource], p.records[h.Resource]
	if f == nil {
		return &Settlement{Hold: h.ID, End: Commit, Resource: h.Resource, Gone: true}
	}
	var before Amounts
	if was != nil {
		before = was.Amounts
	}
	if h.Amounts.Above(f.Amounts.Over(before)) && !over {
		return nil
	}
	s := p.made(h, f)
	if !f.Priced {
		s.Amounts[Burn] = before[Burn]
	}
	return s
}

func (p *pass) end(ctx context.Context, h *Hold, s *Settlement) error {
	if err := p.Store.Settle(ctx, p.org, s); err != nil {
		return err
	}
	if s.End == Release {
		p.report.Released++
	} else {
		p.report.Found++
	}
	if r := p.records[h.Resource]; r != nil {
		r.Version = -1 // it has just changed
	}
	p.Logger.InfoContext(ctx, "a hold of unknown end is settled", "org", p.org, "hold", h.ID, "operation", h.About.Operation,
		"decision", h.About.Decision, "carried_out", s.End == Commit, "resource", s.Resource)
	return nil
}

// adopt enters what was made without the gateway, if it counts.
func (p *pass) adopt(ctx context.Context, f *Found) error {
	if !Counts(f.Kind) {
		return nil
	}
	done, err := p.Store.Adjust(ctx, p.org, &Adjustment{
		Kind: string(f.Kind), Resource: f.ID, Amounts: f.Amounts, About: f.about(),
	})
	if err != nil || !done {
		return err
	}
	p.report.Adopted++
	if !f.Priced {
		p.Logger.WarnContext(ctx, "a resource has no known price and counts as free: add its price to the catalog's rates", "org", p.org, "kind", f.Kind, "resource", f.ID)
	}
	if !p.report.Rebuilt {
		p.Logger.WarnContext(ctx, "a resource was made without the gateway and counts for the organisation", "org", p.org, "kind", f.Kind, "resource", f.ID)
		p.report.Strangers = append(p.report.Strangers, *f)
	}
	return nil
}

// follow makes a record say what the platform does.
func (p *pass) follow(ctx context.Context, r *Record) error {
	f := p.found[r.ID]
	a := &Adjustment{Kind: r.Kind, Resource: r.ID, Version: r.Version, Gone: f == nil, About: r.About}
	switch {
	case f == nil && p.state.Complete && p.state.Now.Sub(r.Since) < listSlack:
		return nil // it was made a moment ago
	case f != nil:
		if a.Amounts = f.Amounts; !f.Priced {
			a.Amounts[Burn] = r.Amounts[Burn]
		}
		if a.Amounts == r.Amounts {
			return nil
		}
	}
	done, err := p.Store.Adjust(ctx, p.org, a)
	if err != nil || !done {
		return err
	}
	if a.Gone {
		p.report.Removed++
	} else {
		p.report.Changed++
	}
	if !p.report.Rebuilt {
		p.report.Drifted = append(p.report.Drifted, Drift{Record: *r, Now: a.Amounts, Gone: a.Gone})
	}
	p.Logger.WarnContext(ctx, "the ledger follows a change that was made without the gateway", "org", p.org, "kind", r.Kind, "resource", r.ID,
		"gone", a.Gone, "before", r.Amounts, "now", a.Amounts)
	return nil
}
