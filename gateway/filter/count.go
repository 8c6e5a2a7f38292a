package filter

import (
	"context"
	"net/http"
	"strconv"

	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// RateLimit takes the request from the quotas of its key, team and organisation, and of
// its operation's classes, in one atomic step: a call that is refused takes nothing
// from any. Every authenticated request counts, with any outcome.
//
// It stands in the head, and again in the call part for the v2 calls that a legacy
// request becomes. Each is counted like a request, but for the first: that is the
// request itself, of which only the classes are left to be counted. [RecheckRateLimit] runs after the
// policy check.
//
// While the store is away the failure policies decide, but no call that lowers cost is refused:
// a stop, a delete, a cancellation, or an update to less than there was.
type RateLimit struct {
	Recorder *telemetry.Recorder
}

// Name implements Filter.
func (RateLimit) Name() string { return "count" }

// Request refuses with 429 when a window is full, and with 503 when the call
// may not pass uncounted and cannot be counted.
func (f RateLimit) Request(ctx context.Context, ex *Exchange) error {
	return countCall(ctx, ex, f.Recorder, effectBeforePolicies(ex))
}

// RecheckRateLimit decides again about a call that Count admitted provisionally, now that the policy check
// has computed the state that the call leads to.
type RecheckRateLimit struct{ Recorder *telemetry.Recorder }

// Name implements Filter.
func (RecheckRateLimit) Name() string { return "recount" }

// Request refuses as Count does.
func (f RecheckRateLimit) Request(ctx context.Context, ex *Exchange) error {
	if !ex.Admission.provisional {
		return nil
	}
	effect := effectBeforePolicies(ex)
	if effect == undecided {
		effect = effectAfterPolicies(ex)
	}
	return countCall(ctx, ex, f.Recorder, effect)
}

// Response implements Filter. Count writes the limits.
func (RecheckRateLimit) Response(context.Context, *Exchange) error { return nil }

// countCall counts a call. While the store is away, a call that lowers cost passes whatever the
// failure policies say, and a call whose effect is undecided passes provisionally.
func countCall(ctx context.Context, ex *Exchange, r *telemetry.Recorder, effect costEffect) error {
	if ex.Caller == nil || ex.Caller.Exempt {
		return nil
	}
	again := ex.Admission.provisional && ex.Operation != nil
	own := !ex.Admission.counted || again
	if !own && !ex.Progress.Nested || again && effect == undecided {
		return nil
	}
	var scopes []ratelimit.Scope
	if own {
		scopes = ex.Tenant.Scopes(ex.Caller)
	}
	class := ratelimit.ClassRead
	if ex.Operation != nil {
		scopes = append(scopes, ex.Tenant.classes(ex.Operation, ex.Caller)...)
	}
	if mutates(ex) {
		class = ratelimit.ClassWrite
	}
	ex.Admission.counted = true
	if len(scopes) == 0 {
		return nil
	}
	t := ratelimit.Take{Org: ex.Caller.Org, Scopes: scopes, Cost: 1, Class: class, Failure: ex.Tenant.Failure[class]}
	if effect != doesNotLower {
		t.Failure = ratelimit.FailOpen
	}
	stage, span := r.Stage(ctx, "count")
	d, err := ex.Ports.Counter.Take(stage, t)
	span.End()
	if err != nil {
		return err
	}
	if own || !d.Allowed {
		ex.Limit, ex.Admission.provisional = &d, d.Degraded && effect == undecided
	}
	ex.Event.LimitSource, ex.Event.Degraded = string(d.Source), d.Degraded
	if d.Allowed {
		return nil
	}
	return limited(&d)
}

// mutates reports whether a request counts as a write. A GraphQL request counts as a read until
// it has become v2 calls.
func mutates(ex *Exchange) bool {
	if ex.Operation != nil {
		return ex.Operation.Mutates
	}
	return ex.In.Method != http.MethodGet && ex.In.Method != http.MethodHead && ex.Dialect != route.GraphQL
}

// costEffect is the effect of a call on what is spent.
type costEffect int

const (
	doesNotLower costEffect = iota // the call does not lower cost
	lowers                         // the call lowers cost
	undecided                      // the body or the policy check has yet to show the effect
)

// effectBeforePolicies is the effect of a call by its operation and its body, as far as that has arrived.
func effectBeforePolicies(ex *Exchange) costEffect {
	if ex.Operation == nil { // a request of a legacy dialect, which becomes v2 calls
		if mutates(ex) || ex.Dialect == route.GraphQL {
			return undecided
		}
		return doesNotLower
	}
	row, _ := operation.Of(ex.Operation.ID)
	verb := row.Does(ex.Body.Doc)
	switch {
	case PriorityOf(verb) == overload.ReducesCost, ex.Admission.mutates && !verb.Changes():
		return lowers
	case row.Verb == operation.VerbAction && !ex.Body.HasDoc, verb == operation.VerbUpdate && row.Price != operation.PriceFree:
		return undecided
	}
	return doesNotLower
}

// effectAfterPolicies is the effect of an update by the states of its resource before and after the call.
// An update that leads to an unknown price does not lower cost.
func effectAfterPolicies(ex *Exchange) costEffect {
	if ex.Evaluation.Input == nil {
		return doesNotLower
	}
	row, _ := operation.Of(ex.Operation.ID)
	in := ex.Evaluation.Input
	current, _ := in.Resource.Current.(map[string]any)
	after, _ := in.Resource.After.(map[string]any)
	plan := ex.Tenant.Budgets
	if plan == nil {
		plan = new(ledger.Plan)
	}
	was, _ := plan.Footprint(row.Kind, current, 0, in.Catalog)
	is, priced := plan.Footprint(row.Kind, after, 0, in.Catalog)
	if current != nil && priced && is != was && !is.Above(was) {
		return lowers
	}
	return doesNotLower
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
func (RateLimit) Notes(ex *Exchange, _ string) []string {
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
func (RateLimit) Response(_ context.Context, ex *Exchange) error {
	if ex.Limit != nil && (!ex.Progress.Nested || !ex.Limit.Allowed) {
		ex.Limit.WriteHeaders(ex.Response.Header)
	}
	return nil
}
