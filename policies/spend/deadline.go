package spend

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// deadlines stops and terminates the pods whose deadlines have passed, and reports the time until the next deadline.
// A stop is made once: whoever starts the pod again keeps it. Each pass tries again what failed.
func (e *Enforcer) deadlines(ctx context.Context, p *pass) error {
	now := p.state.Now.Unix()
	var errs []error
	for id, f := range p.found {
		r := p.records[id]
		if r == nil || f.Kind != operation.KindPod {
			continue
		}
		for _, at := range []int64{r.About.StopAt, r.About.EndAt} {
			if left := time.Unix(at, 0).Sub(p.state.Now); left > 0 && (p.report.NextDeadline == 0 || left < p.report.NextDeadline) {
				p.report.NextDeadline = left
			}
		}
		switch {
		case r.About.EndAt != 0 && r.About.EndAt <= now:
			errs = append(errs, e.terminate(ctx, p, r))
		case r.About.StopAt != 0 && r.About.StopAt <= now:
			errs = append(errs, e.stopAt(ctx, p, r, f))
		}
	}
	return errors.Join(errs...)
}

func (e *Enforcer) terminate(ctx context.Context, p *pass, r *Record) error {
	if err := e.Terminate(ctx, p.org, r.ID); err != nil {
		return err
	}
	e.reached(ctx, p.org, r, true)
	_, err := Adjust(ctx, p.Store, p.org, &Adjustment{Kind: r.Kind, Resource: r.ID, Version: r.Version, Gone: true})
	return err // the next pass will see it
}

func (e *Enforcer) stopAt(ctx context.Context, p *pass, r *Record, f *Found) error {
	after := f.Amounts
	if !f.Use.Stopped {
		var err error
		if after, err = e.Stop(ctx, p.org, r.ID); err != nil {
			return err
		}
		e.reached(ctx, p.org, r, false)
	}
	done := r.About
	done.StopAt = 0
	_, err := Adjust(ctx, p.Store, p.org, &Adjustment{Kind: r.Kind, Resource: r.ID, Version: r.Version, Amounts: after, Owner: &r.Owner, About: done})
	return err
}

func (e *Enforcer) reached(ctx context.Context, org string, r *Record, terminated bool) {
	if e.Deadline != nil {
		e.Deadline(ctx, org, *r, terminated)
	}
}
