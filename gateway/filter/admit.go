package filter

import (
	"context"
	"errors"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/translate"
)

// Priorities says how urgent requests are.
type Priorities struct {
	// Names holds the dialects with a single route.
	Names map[route.Dialect]OperationNamer
	// PriorityOf says how urgent an operation of a legacy dialect is, by its name.
	PriorityOf func(d route.Dialect, name string) overload.Priority
}

// stageAdmit is the name of the stages that bound concurrent work.
const stageAdmit = "admit"

// LimitConcurrency bounds concurrent work. It stands behind Identify, which names the
// organisation whose part a request takes, and before Count: a request refused here has used up
// nothing.
type LimitConcurrency struct{ Priorities }

// Name implements Filter.
func (LimitConcurrency) Name() string { return stageAdmit }

// Request refuses with 503 a request that has waited in vain, and one over a connection
// too many, unless its caller ends or reduces costs by it. A request of which only the body says how urgent it is
// waits for nothing.
func (f LimitConcurrency) Request(ctx context.Context, ex *Exchange) error {
	p, known := f.priority(ex)
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

// Response gives the slot back; a stream goes on without one.
func (LimitConcurrency) Response(_ context.Context, ex *Exchange) error {
	ex.Admission.Slot.Release()
	return nil
}

// LimitConcurrencyByBody is Admit behind the body, for the requests of which only the body says
// how urgent they are, if there was no room for any when they came; those have been
// counted.
type LimitConcurrencyByBody struct{ Priorities }

// Name implements Filter.
func (LimitConcurrencyByBody) Name() string { return stageAdmit }

// Request refuses as Admit does.
func (f LimitConcurrencyByBody) Request(ctx context.Context, ex *Exchange) error {
	p, _ := f.priority(ex)
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

// connectionLimit refuses a request over a connection too many, unless a caller lowers costs by it.
func connectionLimit(ex *Exchange, p overload.Priority) error {
	if ex.Caller != nil && p == overload.ReducesCost {
		return nil
	}
	return ex.In.LimitError
}

// orgOf names the organisation whose part of the concurrent work a request takes: callers without a key have the part of one.
func orgOf(ex *Exchange) string {
	if ex.Caller == nil {
		return ""
	}
	return ex.Caller.Org
}

// tryAcquire takes a slot, and reports false if there is none.
func tryAcquire(ex *Exchange, p overload.Priority) (ok bool) {
	ex.Admission.Slot, ok = ex.Ports.Gate.TryAcquire(orgOf(ex), p)
	return ok
}

// acquire waits for a slot.
func acquire(ctx context.Context, ex *Exchange, p overload.Priority) (err error) {
	ex.Admission.Slot, err = ex.Ports.Gate.Acquire(ctx, orgOf(ex), p)
	if errors.Is(err, overload.ErrShed) {
		return problem.Overloaded.New("the gateway has more to do than it can; try again").With("Retry-After", "1")
	}
	return err
}

// priority says how urgent a request is. A request whose urgency depends on its body counts as a change,
// and is not known.
func (f *Priorities) priority(ex *Exchange) (p overload.Priority, known bool) {
	if ex.Route == nil {
		return overload.Read, true
	}
	if ex.Operation != nil {
		row, _ := operation.Of(ex.Operation.ID)
		return PriorityOf(row.Does(ex.Body.Doc)), ex.Body.HasDoc || row.Verb != operation.VerbAction
	}
	names, ok := f.Names[ex.Dialect]
	switch {
	case !ok:
		return f.PriorityOf(ex.Dialect, ex.Route.ID), true
	case !ex.Body.HasDoc:
		return overload.Change, false
	}
	in := &translate.Incoming{Header: http.Header{"Content-Type": ex.In.Header["Content-Type"]}, Body: ex.Body.Doc, HasBody: true}
	for _, name := range names.Fields(in) {
		p = max(p, f.PriorityOf(ex.Dialect, name))
	}
	return p, true
}

// PriorityOf says how urgent an operation is that does something.
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

// PauseWork says that the exchange waits for something outside the gateway, and Work that
// this is over. A door calls them around its own waits.
func (ex *Exchange) PauseWork() { ex.Admission.Slot.Pause() }

// ResumeWork ends a Rest.
func (ex *Exchange) ResumeWork() { ex.Admission.Slot.Resume() }
