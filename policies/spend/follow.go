package spend

import (
	"context"
)

// follow makes the records agree with the platform.
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
		if done != NotMade {
			p.followed(ctx, list[i])
		}
	}
	return err
}

// difference is the adjustment that makes a record agree with the platform, nil for nothing.
func (p *pass) difference(ctx context.Context, r *Record) *Adjustment {
	if r.Version < 0 || r.Pending > 0 {
		return nil // a call changes it
	}
	f, known := p.now(ctx, r)
	if !known {
		return nil
	}
	a := &Adjustment{Kind: r.Kind, Resource: r.ID, Version: r.Version, Gone: f == nil, About: r.About}
	if f != nil {
		if a.Amounts = f.Amounts; !f.Priced {
			a.Amounts[Burn] = r.Amounts[Burn]
		}
		if a.Amounts == r.Amounts {
			return nil
		}
	}
	return a
}

// followed notes an adjustment that was made.
func (p *pass) followed(ctx context.Context, a *Adjustment) {
	r := p.records[a.Resource]
	if a.Gone {
		p.report.Removed++
	} else {
		p.report.Changed++
	}
	if p.gets.ended[r.ID] {
		return // by a call
	}
	if !p.report.Rebuilt {
		p.report.Drifted = append(p.report.Drifted, Drift{Record: *r, Now: a.Amounts, Gone: a.Gone})
	}
	p.Logger.WarnContext(ctx, "the ledger follows a change that was made without the gateway", "org", p.org, "kind", r.Kind, "resource", r.ID,
		"gone", a.Gone, "before", r.Amounts, "now", a.Amounts)
}
