package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// deadlines stops and terminates the pods whose deadlines have passed, and reports the time until the next deadline. It stops a pod
// only once: a pod that is started again keeps running. Each pass retries failed actions.
func (p *pass) deadlines(ctx context.Context) error {
	now := p.state.Now.Unix()
	var errs []error
	for id, f := range p.found {
		r := p.records[id]
		if r == nil || f.Kind != operation.KindPod {
			continue
		}
		for _, at := range []int64{r.Metadata.StopAt, r.Metadata.EndAt} {
			if left := time.Unix(at, 0).Sub(p.state.Now); left > 0 && (p.report.NextDeadline == 0 || left < p.report.NextDeadline) {
				p.report.NextDeadline = left
			}
		}
		switch {
		case r.Metadata.EndAt != 0 && r.Metadata.EndAt <= now:
			errs = append(errs, p.terminate(ctx, r))
		case r.Metadata.StopAt != 0 && r.Metadata.StopAt <= now:
			errs = append(errs, p.stopAt(ctx, r, f))
		}
	}
	return errors.Join(errs...)
}

func (p *pass) terminate(ctx context.Context, r *Record) error {
	if err := p.Platform.Delete(ctx, p.org, operation.Kind(r.Kind), r.ID); err != nil {
		return err
	}
	p.reduce(r, Amounts{})
	p.Events.Stopped(ctx, &Cause{Org: p.org, Deleted: true}, r)
	_, err := Adjust(ctx, p.Store, p.org, &Adjustment{Kind: r.Kind, Resource: r.ID, Version: r.Version, Gone: true})
	return err // retried by the next pass
}

func (p *pass) stopAt(ctx context.Context, r *Record, f *PlatformResource) error {
	after := f.Amounts
	if !f.Use.Stopped {
		var err error
		if after, err = p.Platform.StopPod(ctx, p.org, r.ID); err != nil {
			return err
		}
		p.reduce(r, after)
		p.Events.Stopped(ctx, &Cause{Org: p.org}, r)
	}
	done := r.Metadata
	done.StopAt = 0
	_, err := Adjust(ctx, p.Store, p.org, &Adjustment{
		Kind: r.Kind, Resource: r.ID, Version: r.Version, Amounts: after,
		Owner: &r.Owner, Metadata: done,
	})
	return err
}
