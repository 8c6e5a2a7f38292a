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

// RateLimit counts a request against the quotas of its key, team and organisation, and of the classes of its operation, in one atomic step:
// a refused call uses none of them. Every authenticated request counts, whatever its outcome.
//
// RateLimit runs in the Headers part. For the v2 calls of a legacy request, it runs again in the Call part. The first of these calls counts
// only against the quotas of classes, because the request itself has already counted against the quotas of the key, the team and the
// organisation. Each further call counts like a request. [RecheckRateLimit] runs after the policies.
//
// While the store is down, the failure policies apply, but calls that reduce costs are never refused: stops, deletes, cancellations, and
// updates that lower the cost of a resource. If the effect of a call on costs is not known yet, RateLimit admits the call provisionally.
// RecheckRateLimit decides about such a call after the policies, when the resulting state is known.
type RateLimit struct {
	Recorder *telemetry.Recorder
}

// stageRateLimit is the name of the stage and of its span.
const stageRateLimit = "rate limit"

// Name implements Filter.
func (RateLimit) Name() string { return stageRateLimit }

// Request returns 429 if a quota is used up, and 503 if the call cannot be counted and its failure policy does not admit it.
func (f RateLimit) Request(ctx context.Context, ex *Exchange) error {
	return countCall(ctx, ex, f.Recorder, effectBeforePolicies(ex))
}

// RecheckRateLimit makes the final decision on calls that RateLimit admitted provisionally because the store was down and their effect on
// costs was not known yet. It runs after the policies, when the state after the call is known.
type RecheckRateLimit struct{ Recorder *telemetry.Recorder }

// Name implements Filter.
func (RecheckRateLimit) Name() string { return "recheck rate limit" }

// Request returns the same errors as RateLimit.
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

// Response implements ResponseFilter. RateLimit writes the rate limit headers.
func (RecheckRateLimit) Response(context.Context, *Exchange) error { return nil }

// countCall counts a call. While the store is down, a call that reduces costs passes regardless of the failure policies, and a call with an
// undecided effect passes provisionally.
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
	stage, span := r.Stage(ctx, stageRateLimit)
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
	for _, v := range d.Violated {
		ex.Event.Throttled = append(ex.Event.Throttled, v.Scope.String()+" "+v.Window)
	}
	return limited(&d)
}

// mutates reports whether a request counts as a write. A GraphQL request counts as a read until it has been translated to v2 calls.
func mutates(ex *Exchange) bool {
	if ex.Operation != nil {
		return ex.Operation.Mutates
	}
	return ex.In.Method != http.MethodGet && ex.In.Method != http.MethodHead && ex.Dialect != route.GraphQL
}

// costEffect is the effect of a call on spending.
type costEffect int

const (
	doesNotLower costEffect = iota // the call does not reduce costs
	lowers                         // the call reduces costs
	undecided                      // depends on the body, or on the state after the call
)

// effectBeforePolicies returns the effect of a call as far as its operation and its body, if it has been read, determine it.
func effectBeforePolicies(ex *Exchange) costEffect {
	if ex.Operation == nil { // a legacy request, which is translated to v2 calls
		if mutates(ex) || ex.Dialect == route.GraphQL {
			return undecided
		}
		return doesNotLower
	}
	row, _ := operation.Lookup(ex.Operation.ID)
	verb := row.EffectiveVerb(ex.Body.Doc)
	switch {
	case PriorityOf(verb) == overload.ReducesCost, ex.Admission.mutates && !verb.Changes():
		return lowers
	case row.Verb == operation.VerbAction && !ex.Body.HasDoc, verb == operation.VerbUpdate && row.Price != operation.PriceFree:
		return undecided
	}
	return doesNotLower
}

// effectAfterPolicies compares the resource of an update before and after the call. An update that leads to an unknown price does not
// reduce costs.
func effectAfterPolicies(ex *Exchange) costEffect {
	if ex.Evaluation.Input == nil {
		return doesNotLower
	}
	row, _ := operation.Lookup(ex.Operation.ID)
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

// limited returns the problem for an exceeded quota. Its rate limit headers are written by RateLimit.
func limited(d *ratelimit.Decision) error {
	p := problem.RateLimited.New("rate limit exceeded")
	for i, v := range d.Violated {
		if i == 0 {
			p.Detail = "rate limit exceeded for the " + v.Window + " window of the " + string(v.Scope.Kind)
			if v.Scope.Kind == ratelimit.KindClass {
				p.Detail += " " + v.Scope.ID
			}
		}
		p.Windows = appendUnique(p.Windows, v.Name)
	}
	return p
}

// Notes implements Explainer.
func (RateLimit) Notes(ex *Exchange, _ string) []string {
	if ex.Limit == nil {
		return nil
	}
	notes := make([]string, 0, len(ex.Limit.Windows)+1)
	var note []byte
	for _, w := range ex.Limit.Windows {
		note = append(append(note[:0], w.Name...), ": "...)
		if w.Remaining < 0 { // unknown
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
		notes = append(notes, "the store was down: decided by "+string(ex.Limit.Source))
	}
	return notes
}

// Response writes the rate limit headers, with Retry-After on a refusal. For a call translated from a legacy request, only a refusal has
// the headers.
func (RateLimit) Response(_ context.Context, ex *Exchange) error {
	if ex.Limit != nil && (!ex.Progress.Nested || !ex.Limit.Allowed) {
		ex.Limit.WriteHeaders(ex.Response.Header)
	}
	return nil
}
