package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// follow adjusts the records to the platform's resources.
func (p *pass) follow(ctx context.Context) error {
	var list []*Adjustment
	for _, r := range p.records {
		if err := ctx.Err(); err != nil {
			return err
		}
		if a := p.difference(ctx, r); a != nil {
			list = append(list, a)
		}
	}
	made, err := p.Store.Adjust(ctx, p.org, list...)
	for i, done := range made {
		if done != AdjustSkipped {
			p.followed(ctx, list[i])
		}
	}
	return err
}

// difference returns the adjustment that makes a record match the platform, or nil if they agree.
func (p *pass) difference(ctx context.Context, r *Record) *Adjustment {
	switch {
	case r.Version < 0 || r.Pending > 0:
		return nil // a call is changing the resource
	case r.ended() && p.state.Now.Sub(r.Changed) < keepEnded:
		return nil
	case r.ended():
		return r.follow(nil)
	}
	f, known := p.now(ctx, r)
	if !known {
		return nil
	}
	return r.follow(f)
}

// keepEnded is how long an ended sandbox stays in the ledger, so that its owner can still read it.
const keepEnded = time.Hour

// ended reports whether the record belongs to a sandbox that has ended.
func (r *Record) ended() bool {
	return r.Kind == string(operation.KindSandbox) && r.Amounts == (Amounts{})
}

// Has reports whether the ledger contains active resources of a kind.
func (s *State) Has(kind operation.Kind) bool {
	return slices.ContainsFunc(s.Resources, func(r Record) bool { return r.Kind == string(kind) && !r.ended() })
}

// follow returns the adjustment that makes the record match f, or nil if they agree. A nil f means that the resource no longer exists.
func (r *Record) follow(f *PlatformResource) *Adjustment {
	a := &Adjustment{Kind: r.Kind, Resource: r.ID, Version: r.Version, Gone: f == nil, Metadata: r.Metadata}
	if f == nil {
		if r.Kind == string(operation.KindSandbox) && r.Metadata.EndAt != 0 {
			a.From = time.Unix(r.Metadata.EndAt, 0)
		}
		return a
	}
	if a.Amounts = f.Amounts; !f.Priced {
		a.Amounts.PricedAs(r.Amounts)
	}
	if a.Amounts == r.Amounts {
		return nil
	}
	if a.Amounts[Bounded] != r.Amounts[Bounded] {
		a.From = f.from()
	}
	return a
}

// from returns when the rate of a sandbox last changed: its end, or its start, because the platform reports the rate only later. It
// returns the zero time, meaning now, for other resources and for sandboxes without an end time.
func (f *PlatformResource) from() time.Time {
	if f.Amounts[Sandboxes] == 0 {
		return f.Ended
	}
	return f.Started
}

// followed records an adjustment in the report.
func (p *pass) followed(ctx context.Context, a *Adjustment) {
	r := p.records[a.Resource]
	if r.Kind == string(operation.KindSandbox) && !a.Amounts.Above(r.Amounts) {
		return // it ends by itself, and costs no more than was reserved
	}
	if a.Gone {
		p.report.Removed++
	} else {
		p.report.Changed++
	}
	if p.gets.ended[r.ID] {
		return // changed by a call
	}
	if !p.report.Rebuilt {
		p.report.Drifted = append(p.report.Drifted, Drift{Record: *r, Current: a.Amounts, Gone: a.Gone})
	}
	p.Logger.WarnContext(ctx, "ledger adjusted to a change made outside the gateway", "org", p.org, "kind", r.Kind, "resource", r.ID,
		"gone", a.Gone, "before", r.Amounts, "now", a.Amounts)
}
