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

// Request returns 503 if no slot becomes free in time, or if the connection exceeds a limit. Requests that stop or reduce costs are exempt
// from the connection limit. A request whose priority depends on its body does not wait here; see LimitConcurrencyByBody.
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

// Response releases the slot. A streaming response continues without one.
func (LimitConcurrency) Response(_ context.Context, ex *Exchange) error {
	ex.Admission.Slot.Release()
	return nil
}

// LimitConcurrencyByBody applies LimitConcurrency to requests whose priority depends on the body, such as GraphQL requests and actions on
// pods, and that did not get a slot earlier. These requests have already been counted against quotas.
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

// connectionLimit returns the error of a connection that exceeds a limit, or nil if the authenticated caller reduces costs with the
// request.
func connectionLimit(ex *Exchange, p overload.Priority) error {
	if ex.Caller != nil && p == overload.ReducesCost {
		return nil
	}
	return ex.In.LimitError
}

// orgOf returns the organisation that is charged for a slot. Anonymous callers share the empty ID.
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

// priority returns the priority of a request. known is false if the priority depends on a body that has not been read; until then, the
// request has the priority of a change.
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

// PriorityOf returns the priority of calls with the given verb: calls that reduce costs, other changes, or reads.
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

// PauseWork marks the exchange as waiting for something outside the gateway. Its slot of the concurrency limit (see [LimitConcurrency]) is
// then free for other requests. Doors call PauseWork before their own waits and ResumeWork after them.
func (ex *Exchange) PauseWork() { ex.Admission.Slot.Pause() }

// ResumeWork takes the slot again after PauseWork.
func (ex *Exchange) ResumeWork() { ex.Admission.Slot.Resume() }
