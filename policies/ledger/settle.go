package ledger

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// due reports whether the pass must determine the outcome of a hold's call, and until when it searches for a result. A resource created by
// a call of a dead gateway is listed within a minute after the gateway died.
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

// dead caches the result of [Gateway.Dead] for each gateway.
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

// holds ends the holds with a known outcome, and returns the unknown resources that none of these calls has created.
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
		case h.Kind == string(operation.KindJob): // runs create no listed resource: charge the maximum cost
			if s = p.job(ctx, h, due && over); s == nil {
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
				s = p.commit(h, unknown[at])
				unknown = append(unknown[:at:at], unknown[at+1:]...)
			case at >= 0: // a call in progress reports its own result
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

// maxJobs is the approximate number of jobs queried in one pass.
const maxJobs = 100

// job queries the outcome of a hold's job. It returns nil if the outcome is unknown, unless over is set or the platform no longer knows the
// job: then the whole reservation is charged. If there are too many jobs, each pass queries a different part of them.
func (p *pass) job(ctx context.Context, h *Hold, over bool) *Settlement {
	if h.Open && rand.IntN(len(p.state.Holds)) < maxJobs {
		s, err := p.Platform.JobOutcome(ctx, p.org, h)
		if s != nil {
			return s
		}
		if err != nil {
			p.Logger.DebugContext(ctx, "outcome of the job is unknown", "org", p.org, "hold", h.ID, "error", err.Error())
		}
		over = over || errors.Is(err, ErrNoJob) && p.state.Now.Sub(h.At) >= lag
	}
	if !over {
		return nil
	}
	return &Settlement{Hold: h.ID, End: Commit, WholeReservation: true}
}

// claim reports whether a found resource can be assigned to a hold. A call in progress claims its own resource.
func (p *pass) claim(ctx context.Context, f *PlatformResource, h *Hold) bool {
	if _, due := p.due(ctx, h); !due {
		return true
	}
	mine, err := p.Gateway.Claim(ctx, p.org, f, h)
	return err == nil && mine
}

// unlisted ends the hold of a call whose created resource is not listed, or returns nil if the outcome is unknown. The rate of a sandbox
// that has ended in the meantime is unknown, so the reserved amount is charged. The next pass records the end of the sandbox.
func (p *pass) unlisted(ctx context.Context, h *Hold) *Settlement {
	release := &Settlement{Hold: h.ID, End: Release}
	if h.Kind != string(operation.KindSandbox) {
		return release
	}
	f, err := p.Platform.EndedSandbox(ctx, p.org, h.ID)
	switch {
	case err != nil:
		p.Logger.WarnContext(ctx, "cannot determine whether a call with a lost response created a sandbox: the sandbox may have ended", "org", p.org, "hold", h.ID,
			"error", err.Error())
		return nil
	case f == nil || p.records[f.ID] != nil || !p.claim(ctx, f, h):
		return release
	}
	s := p.commit(h, f)
	s.Amounts = h.Amounts
	return s
}

// commit commits the hold of a call with the created resource that was found.
func (p *pass) commit(h *Hold, f *PlatformResource) *Settlement {
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

// changed ends the hold of a change. It commits the hold at once if the platform shows the change or if nothing was reserved; otherwise
// it waits until the search time is over. The hold of a removed resource is released, and follow removes the record.
func (p *pass) changed(ctx context.Context, h *Hold, over bool) *Settlement {
	f, was := p.found[h.Resource], p.records[h.Resource]
	if f == nil {
		changed := h.At
		if was != nil {
			changed = was.Changed
		}
		var known bool
		if f, known = p.find(ctx, h.Kind, h.Resource, changed); !known {
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
	s := p.commit(h, f)
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
			r.Version = -1 // the version has just changed
		} else {
			p.gets.ended[h.Resource] = true
		}
	}
	p.Logger.InfoContext(ctx, "settled a hold with an unknown outcome", "org", p.org, "hold", h.ID, "operation", h.Metadata.Operation,
		"decision", h.Metadata.Decision, "carried_out", carried, "resource", cmp.Or(s.Resource, h.Resource))
	return nil
}
