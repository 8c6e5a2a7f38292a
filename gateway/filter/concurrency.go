package filter

import (
	"context"
	"errors"

	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// stageConcurrency is the name of both concurrency stages.
const stageConcurrency = "limit concurrency"

// LimitConcurrency limits the number of requests in progress. It runs after Authenticate, because slots are shared fairly between
// organisations, and before RateLimit, so that a request refused here does not use up quota.
type LimitConcurrency struct{}

// Name implements Filter.
func (LimitConcurrency) Name() string { return stageConcurrency }

// Request returns 503 if no slot becomes free in time, and In.LimitError if the connection exceeds a limit. Authenticated requests that
// reduce costs are exempt from connection limits. If the priority of a request depends on its body, the request waits in the stage
// LimitConcurrencyByBody instead.
func (LimitConcurrency) Request(ctx context.Context, ex *Exchange) error {
	p, known := priority(ex)
	if known || ex.Caller == nil {
		if err := connectionLimit(ex, p); err != nil {
			return err
		}
	}
	if ex.Ports.Gate == nil || tryAcquire(ex, p) || !known {
		return nil
	}
	return acquire(ctx, ex, p)
}

// Response releases the slot. Streaming responses are sent without a slot.
func (LimitConcurrency) Response(_ context.Context, ex *Exchange) error {
	ex.Admission.Slot.Release()
	return nil
}

// LimitConcurrencyByBody applies the limit of LimitConcurrency to requests that do not have a slot yet because their priority depends on
// the body, such as GraphQL requests and actions on pods. Quotas have already counted these requests.
type LimitConcurrencyByBody struct{}

// Name implements Filter.
func (LimitConcurrencyByBody) Name() string { return stageConcurrency }

// Request returns the same errors as LimitConcurrency.
func (LimitConcurrencyByBody) Request(ctx context.Context, ex *Exchange) error {
	p, _ := priority(ex)
	if err := connectionLimit(ex, p); err != nil {
		return err
	}
	if ex.Admission.provisional {
		ex.Admission.mutates = p != overload.Read
	}
	if ex.Ports.Gate == nil || ex.Admission.Slot != nil || tryAcquire(ex, p) {
		return nil
	}
	return acquire(ctx, ex, p)
}

// connectionLimit returns ex.In.LimitError. It returns nil for an authenticated request that reduces costs.
func connectionLimit(ex *Exchange, p overload.Priority) error {
	if ex.Caller != nil && p == overload.ReducesCost {
		return nil
	}
	return ex.In.LimitError
}

// orgOf returns the ID of the organisation that uses a slot. Anonymous callers share the empty ID.
func orgOf(ex *Exchange) string {
	if ex.Caller == nil {
		return ""
	}
	return ex.Caller.Org
}

// tryAcquire takes a slot if one is free.
func tryAcquire(ex *Exchange, p overload.Priority) (ok bool) {
	ex.Admission.Slot, ok = ex.Ports.Gate.TryAcquire(orgOf(ex), p)
	return ok
}

// acquire waits for a slot.
func acquire(ctx context.Context, ex *Exchange, p overload.Priority) (err error) {
	ex.Admission.Slot, err = ex.Ports.Gate.Acquire(ctx, orgOf(ex), p)
	if errors.Is(err, overload.ErrShed) {
		return problem.Overloaded.New("the gateway is overloaded; try again later").With("Retry-After", "1")
	}
	return err
}

// priority returns the priority of a request. If the priority depends on a body that has not been decoded, priority returns overload.Change
// and false.
func priority(ex *Exchange) (p overload.Priority, known bool) {
	if ex.Route == nil {
		return overload.Read, true
	}
	if ex.Operation != nil {
		row, _ := operation.Lookup(ex.Operation.ID)
		return PriorityOf(row.EffectiveVerb(ex.Body.Doc)), ex.Body.HasDoc || row.Verb != operation.VerbAction
	}
	if t := ex.Ports.Translators[ex.Dialect]; t != nil {
		return t.Priority(ex)
	}
	return overload.Read, true // answered without a v2 call
}

// PriorityOf returns the priority of calls with the verb v: ReducesCost for stop, delete and cancel, Change for other verbs that change
// something, and Read for the remaining verbs.
func PriorityOf(v operation.Verb) overload.Priority {
	switch {
	case v == operation.VerbStop, v == operation.VerbDelete, v == operation.VerbCancel:
		return overload.ReducesCost
	case v.Changes():
		return overload.Change
	default:
		return overload.Read
	}
}

// PauseWork frees the concurrency slot of the exchange for other requests while the exchange waits for something outside the gateway. When
// the wait ends, ResumeWork must be called. See [LimitConcurrency].
func (ex *Exchange) PauseWork() { ex.Admission.Slot.Pause() }

// ResumeWork takes the slot again after PauseWork. It never blocks.
func (ex *Exchange) ResumeWork() { ex.Admission.Slot.Resume() }
