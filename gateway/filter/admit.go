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

// Admit bounds concurrent work. It stands behind Identify, which names the
// organisation whose part a request takes, and before Count: a request refused here has used up
// nothing. It stands again behind the body, for the requests of which only that says
// how urgent they are, if there was no room for any when they came; those have been
// counted.
type Admit struct {
	// Names holds the dialects with a single route.
	Names map[route.Dialect]Namer
	// Urgency says how urgent an operation of a legacy dialect is, by its name.
	Urgency func(d route.Dialect, name string) overload.Priority
	// Body says that the filter stands behind the body.
	Body bool
}

// Name implements Filter.
func (Admit) Name() string { return "admit" }

// Request refuses with 503 a request that has waited in vain, and one over a connection
// too many, unless its caller ends or reduces costs by it.
func (f Admit) Request(ctx context.Context, ex *Exchange) (err error) {
	if err := f.excess(ex); err != nil {
		return err
	}
	if f.Body && ex.Admission.provisional {
		p, _ := f.priority(ex)
		ex.Admission.changes = p != overload.Read
	}
	gate := ex.Ports.Gate
	if gate == nil || ex.Admission.Slot != nil {
		return nil
	}
	org := "" // callers without a key have the part of one organisation
	if ex.Caller != nil {
		org = ex.Caller.Org
	}
	p, known := f.priority(ex)
	var ok bool
	if ex.Admission.Slot, ok = gate.Try(org, p); ok || !known && !f.Body {
		return nil
	}
	ex.Admission.Slot, err = gate.Wait(ctx, org, p)
	if errors.Is(err, overload.ErrShed) {
		return problem.Overloaded.New("the gateway has more to do than it can; try again").With("Retry-After", "1")
	}
	return err
}

// excess refuses a request over a connection too many, unless a caller lowers costs by it,
// or its body has yet to say so.
func (f Admit) excess(ex *Exchange) error {
	if ex.In.Excess == nil {
		return nil
	}
	p, known := f.priority(ex)
	if ex.Caller == nil || p != overload.Lower && (known || f.Body) {
		return ex.In.Excess
	}
	return nil
}

// Response gives the slot back; a stream goes on without one.
func (Admit) Response(_ context.Context, ex *Exchange) error {
	ex.Admission.Slot.Leave()
	return nil
}

// priority says how urgent a request is. A request whose urgency depends on its body counts as a change,
// and is not known.
func (f Admit) priority(ex *Exchange) (p overload.Priority, known bool) {
	if ex.Route == nil {
		return overload.Read, true
	}
	if ex.Operation != nil {
		row, _ := operation.Of(ex.Operation.ID)
		return Urgency(row.Does(ex.Body.Doc)), ex.Body.HasDoc || row.Verb != operation.VerbAction
	}
	names, ok := f.Names[ex.Dialect]
	switch {
	case !ok:
		return f.Urgency(ex.Dialect, ex.Route.ID), true
	case !ex.Body.HasDoc:
		return overload.Change, false
	}
	in := &translate.Incoming{Header: http.Header{"Content-Type": ex.In.Header["Content-Type"]}, Body: ex.Body.Doc, HasBody: true}
	for _, name := range names.Fields(in) {
		p = max(p, f.Urgency(ex.Dialect, name))
	}
	return p, true
}

// Urgency says how urgent an operation is that does something.
func Urgency(v operation.Verb) overload.Priority {
	switch {
	case v == operation.VerbStop, v == operation.VerbDelete, v == operation.VerbCancel:
		return overload.Lower
	case v.Changes():
		return overload.Change
	default:
		return overload.Read
	}
}

// Rest says that the exchange waits for something outside the gateway, and Work that
// this is over. A door calls them around its own waits.
func (ex *Exchange) Rest() { ex.Admission.Slot.Rest() }

// Work ends a Rest.
func (ex *Exchange) Work() { ex.Admission.Slot.Work() }
