package filter

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Count takes a request from the quotas of its key, team and organisation in one
// atomic step. Every authenticated request counts, whatever its end. Classes counts
// by it the v2 calls that a legacy request becomes, but for the first, which is
// counted as the request.
type Count struct {
	Recorder *telemetry.Recorder
}

// Name implements Filter.
func (*Count) Name() string { return "count" }

// Request refuses with 429 when a window is full, and with 503 when the call
// may not pass uncounted and cannot be counted.
func (f *Count) Request(ctx context.Context, ex *Exchange) error {
	if ex.counted || ex.Caller == nil || ex.Caller.Exempt {
		return nil
	}
	ex.counted = true
	scopes := ex.Tenant.Scopes(ex.Caller)
	if len(scopes) == 0 {
		return nil
	}
	class := ratelimit.ClassWrite
	if ex.nested && !ex.Operation.Mutates || !ex.nested && ex.In.Method == http.MethodGet {
		class = ratelimit.ClassRead
	}
	d, err := take(ctx, ex, f.Recorder, ratelimit.Take{
		Org: ex.Caller.Org, Scopes: scopes, Cost: 1, Class: class, Failure: ex.Tenant.Failure[class],
	})
	if err != nil {
		return err
	}
	ex.Limit = &d
	ex.Event.LimitSource, ex.Event.Degraded = string(d.Source), d.Degraded
	if d.Allowed {
		return nil
	}
	return limited(&d)
}

// take asks the counter, inside a span of its own.
func take(ctx context.Context, ex *Exchange, r *telemetry.Recorder, t ratelimit.Take) (ratelimit.Decision, error) {
	ctx, span := r.Stage(ctx, "count")
	defer span.End()
	return ex.Ports.Counter.Take(ctx, t)
}

// limited is the refusal of a call whose windows are full. Its headers come
// with the decision.
func limited(d *ratelimit.Decision) error {
	p := problem.RateLimited.New("rate limit exceeded")
	for i, v := range d.Violated {
		if i == 0 {
			p.Detail = "rate limit exceeded for the " + v.Window + " window of the " + string(v.Scope.Kind)
		}
		p.Windows = append(p.Windows, v.Window)
	}
	return p
}

// Notes implements Noter.
func (f *Count) Notes(ex *Exchange, stage string) []string {
	if stage != f.Name() || ex.Limit == nil {
		return nil
	}
	var notes []string
	for _, w := range ex.Limit.Windows {
		note := fmt.Sprintf("%s: %d of %d left", w.Name, w.Remaining, w.Limit)
		switch {
		case w.Remaining < 0: // not known
			note = fmt.Sprintf("%s: quota %d", w.Name, w.Limit)
		case w.Reset > 0:
			note += ", resets in " + w.Reset.String()
		}
		notes = append(notes, note)
	}
	if ex.Limit.Degraded {
		notes = append(notes, "the shared store was away: decided by "+string(ex.Limit.Source))
	}
	return notes
}

// Response puts the limits on the answer; on a refusal Retry-After too.
func (f *Count) Response(_ context.Context, ex *Exchange) error {
	if ex.Limit != nil {
		ex.Limit.WriteHeaders(ex.Answer.Header)
	}
	return nil
}
