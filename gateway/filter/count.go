package filter

import (
	"context"
	"net/http"
	"strconv"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Count takes the request from the quotas of its key, team and organisation, and of
// its operation's classes, in one atomic step: a call that is refused takes nothing
// from any. Every authenticated request counts, with any outcome.
//
// It stands in the head, and again in the call part for the v2 calls that a legacy
// request becomes. Each is counted like a request, but for the first: that is the
// request itself, of which only the classes are left to be counted.
type Count struct {
	Recorder *telemetry.Recorder
}

// Name implements Filter.
func (*Count) Name() string { return "count" }

// Request refuses with 429 when a window is full, and with 503 when the call
// may not pass uncounted and cannot be counted.
func (f *Count) Request(ctx context.Context, ex *Exchange) error {
	if ex.Caller == nil || ex.Caller.Exempt || !ex.Path.Nested && ex.Admission.counted {
		return nil
	}
	// A call that passed for a read while the store was away is counted again if it is a change.
	own := !ex.Admission.counted || ex.Admission.uncounted && ex.Operation.Mutates
	var scopes []ratelimit.Scope
	if own {
		scopes = ex.Tenant.Scopes(ex.Caller)
	}
	mutates := ex.In.Method != http.MethodGet && ex.In.Method != http.MethodHead && ex.Dialect != route.GraphQL
	if ex.Operation != nil {
		scopes = append(scopes, ex.Tenant.classes(ex.Operation, ex.Caller)...)
		mutates = ex.Operation.Mutates
	}
	ex.Admission.counted = true
	if len(scopes) == 0 {
		return nil
	}
	class := ratelimit.ClassRead
	if mutates {
		class = ratelimit.ClassWrite
	}
	d, err := f.ask(ctx, ex, ratelimit.Take{
		Org: ex.Caller.Org, Scopes: scopes, Cost: 1, Class: class, Failure: ex.Tenant.Failure[class],
	})
	if err != nil {
		return err
	}
	if own || !d.Allowed {
		ex.Limit, ex.Admission.uncounted = &d, d.Degraded
	}
	ex.Event.LimitSource, ex.Event.Degraded = string(d.Source), d.Degraded
	if d.Allowed {
		return nil
	}
	return limited(&d)
}

// ask asks the counter, inside a span of its own.
func (f *Count) ask(ctx context.Context, ex *Exchange, t ratelimit.Take) (ratelimit.Decision, error) {
	ctx, span := f.Recorder.Stage(ctx, "count")
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
func (*Count) Notes(ex *Exchange, _ string) []string {
	if ex.Limit == nil {
		return nil
	}
	notes := make([]string, 0, len(ex.Limit.Windows)+1)
	var note []byte
	for _, w := range ex.Limit.Windows {
		note = append(append(note[:0], w.Name...), ": "...)
		if w.Remaining < 0 { // not known
			note = strconv.AppendInt(append(note, "quota "...), w.Limit, 10)
		} else {
			note = append(strconv.AppendInt(note, w.Remaining, 10), " of "...)
			note = append(strconv.AppendInt(note, w.Limit, 10), " left"...)
			if w.Reset > 0 {
				note = append(append(note, ", resets in "...), w.Reset.String()...)
			}
		}
		notes = append(notes, string(note))
	}
	if ex.Limit.Degraded {
		notes = append(notes, "the shared store was away: decided by "+string(ex.Limit.Source))
	}
	return notes
}

// Response puts the limits on the answer; on a refusal Retry-After too. Those of a v2
// call that a legacy request became are told only when it was refused.
func (f *Count) Response(_ context.Context, ex *Exchange) error {
	if ex.Limit != nil && (!ex.Path.Nested || !ex.Limit.Allowed) {
		ex.Limit.WriteHeaders(ex.Answer.Header)
	}
	return nil
}
