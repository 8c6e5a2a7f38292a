package ledger

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// due reports whether the pass has to find out the outcome of a hold's call, and until when it looks for a result. What the
// call of a dead gateway has created is listed within a minute of the gateway's death.
func (p *pass) due(ctx context.Context, h *Hold) (until time.Time, due bool) {
	if h.Open {
		return h.Until, true
	}
	if silent, dead := p.dead(ctx, h.Holder); dead && silent >= lag {
		return p.state.Now, true
	}
	late := h.At.Add(p.CallTimeout)
	return late.Add(p.Unresolved), p.state.Now.After(late)
}

// dead is [Gateway.Dead], asked once for each gateway.
func (p *pass) dead(ctx context.Context, h Holder) (silent time.Duration, dead bool) {
	if h.Incarnation == "" {
		return 0, false
	}
	if silent, asked := p.silent[h.Incarnation]; asked {
		return silent, silent > 0
	}
	if silent, dead = p.Gateway.Dead(ctx, h.Incarnation); !dead {
		silent = 0
	}
	p.silent[h.Incarnation] = silent
	return silent, dead
}

// holds ends the holds whose end can be told, and returns the unknown
// resources that none of them has made.
func (p *pass) holds(ctx context.Context, unknown []*PlatformResource) ([]*PlatformResource, error) {
	for i := range p.state.Holds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h := &p.state.Holds[i]
		until, due := p.due(ctx, h)
		over := !p.state.Now.Before(until)
		var s *Settlement
		switch {
		case h.Kind == string(operation.KindJob): // nothing is listed for it: what it cost at most is known
			if s = p.job(ctx, h); s == nil && due && over {
				s = &Settlement{Hold: h.ID, End: Commit, WholeReservation: true}
			}
			if s == nil {
				continue
			}
		case h.Resource == "":
			at := -1
			for j, f := range unknown {
				if f.CreatedBy(h.ID, h.Kind, h.Metadata, p.state.Now.Sub(h.At)) && p.claim(ctx, f, h) {
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
				s = p.unlisted(ctx, h)
			}
		case due:
			s = p.changed(ctx, h, over)
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

// job asks for the outcome of a hold's job, nil if that is not known. Of too many, it
// asks for some, others in each pass.
func (p *pass) job(ctx context.Context, h *Hold) *Settlement {
	if !h.Open || rand.IntN(len(p.state.Holds)) >= maxJobs {
		return nil
	}
	s, err := p.Platform.JobOutcome(ctx, p.org, h)
	if err != nil {
		p.Logger.DebugContext(ctx, "it is not known what became of a job", "org", p.org, "hold", h.ID, "error", err.Error())
	}
	return s
}

// claim reports whether a found resource can be given to a hold. A call that is under
// way claims its resource itself.
func (p *pass) claim(ctx context.Context, f *PlatformResource, h *Hold) bool {
	if _, due := p.due(ctx, h); !due {
		return true
	}
	mine, err := p.Gateway.Claim(ctx, p.org, f, h)
	return err == nil && mine
}

// unlisted ends the hold of a create whose result was not listed, nil if its end cannot be told. The rate of a sandbox that has ended
// since then is not known any more: it has cost what was reserved. The next pass enters its end.
func (p *pass) unlisted(ctx context.Context, h *Hold) *Settlement {
	release := &Settlement{Hold: h.ID, End: Release}
	if h.Kind != string(operation.KindSandbox) {
		return release
	}
	f, err := p.Platform.EndedSandbox(ctx, p.org, h.ID)
	switch {
	case err != nil:
		p.Logger.WarnContext(ctx, "it is not known whether a lost call made a sandbox that has ended", "org", p.org, "hold", h.ID, "error", err.Error())
		return nil
	case f == nil || p.records[f.ID] != nil || !p.claim(ctx, f, h):
		return release
	}
	s := p.made(h, f)
	s.Amounts = h.Amounts
	return s
}

// made commits a create under the resource that was found.
func (p *pass) made(h *Hold, f *PlatformResource) *Settlement {
	s := &Settlement{Hold: h.ID, End: Commit, Kind: h.Kind, Resource: f.ID, Owner: h.Owner, Amounts: f.Amounts, Metadata: h.Metadata}
	if f.Implausible != "" && h.Resource == "" {
		s.Amounts = h.Amounts
	}
	if !f.Priced {
		s.Amounts.PricedAs(h.Amounts)
	}
	if s.From = f.Ended; h.Resource == "" {
		s.From = StartTime(f.Started, h.At)
	}
	return s
}

// changed ends the hold of a change: at once if the platform shows that it was made,
// or if nothing was reserved, otherwise when it has been looked for long enough. That of
// a resource that is gone is released: follow removes the record.
func (p *pass) changed(ctx context.Context, h *Hold, over bool) *Settlement {
	f, was := p.found[h.Resource], p.records[h.Resource]
	if f == nil {
		changed := h.At
		if was != nil {
			changed = was.Changed
		}
		var known bool
		if f, known = p.look(ctx, h.Kind, h.Resource, changed); !known {
			return nil
		}
		if f == nil {
			return &Settlement{Hold: h.ID, End: Release}
		}
	}
	var before Amounts
	if was != nil {
		before = was.Amounts
	}
	if h.Amounts.Above(f.Amounts.Excess(before)) && !over {
		return nil
	}
	s := p.made(h, f)
	if !f.Priced {
		s.Amounts.PricedAs(before)
	}
	return s
}

func (p *pass) end(ctx context.Context, h *Hold, s *Settlement) error {
	if err := p.Store.Settle(ctx, p.org, s); err != nil {
		return err
	}
	if s.End == Release && h.Resource == "" {
		if err := p.Gateway.Forget(ctx, p.org, h.ID); err != nil {
			return err
		}
	}
	carried := s.End == Commit || p.gets.gone[h.Resource]
	if carried {
		p.report.HoldsCommitted++
	} else {
		p.report.HoldsReleased++
	}
	p.report.EndedHolds = append(p.report.EndedHolds, EndedHold{Hold: *h, Executed: carried, Created: s.Resource})
	if r := p.records[h.Resource]; r != nil {
		r.Pending--
		if s.End == Commit {
			r.Version = -1 // it has just changed
		} else {
			p.gets.ended[h.Resource] = true
		}
	}
	p.Logger.InfoContext(ctx, "a hold of unknown end is settled", "org", p.org, "hold", h.ID, "operation", h.Metadata.Operation,
		"decision", h.Metadata.Decision, "carried_out", carried, "resource", cmp.Or(s.Resource, h.Resource))
	return nil
}
