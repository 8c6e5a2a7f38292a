package ledger

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

const (
	// lag is how long after a change a list may lack a resource, and a GET answer 404,
	// although the resource is there.
	lag = time.Minute
	// maxGets bounds the GETs of one pass, and getsTime how long they take together.
	maxGets  = 100
	getsTime = 30 * time.Second
)

// gets asks the platform for single resources, within the bounds of one pass.
type gets struct {
	left int
	end  time.Time
	// gone has the resources whose GET was answered 404, and ended those of them that a
	// call was to end.
	gone, ended map[string]bool
}

func newGets() gets {
	return gets{left: maxGets, end: time.Now().Add(getsTime), gone: make(map[string]bool), ended: make(map[string]bool)}
}

// look asks for a resource that changed last at a time. It returns nil if there is none;
// known is false if that was not found out. A sandbox is asked for at once: its record says that it has ended.
func (p *pass) look(ctx context.Context, kind, id string, changed time.Time) (f *PlatformResource, known bool) {
	g, early := &p.gets, p.state.Now.Sub(changed) < lag
	switch {
	case g.gone[id]:
		return nil, true
	case early && kind != string(operation.KindSandbox) || g.left == 0:
		return nil, false
	}
	g.left--
	ctx, cancel := context.WithDeadline(ctx, g.end)
	defer cancel()
	f, err := p.Platform.Get(ctx, p.org, operation.Kind(kind), id)
	if err != nil {
		p.Logger.DebugContext(ctx, "it is not known whether a resource is gone", "org", p.org, "kind", kind, "resource", id, "error", err.Error())
		return nil, false
	}
	g.gone[id] = f == nil && !early
	return f, f != nil || !early
}

// now is the platform's state of a record, nil if the resource is gone. It is not
// known while the list and a GET contradict each other: of a resource missing from the list, and of
// an endpoint with fewer workers than counted, a GET has the last word.
func (p *pass) now(ctx context.Context, r *Record) (f *PlatformResource, known bool) {
	listed := p.found[r.ID]
	if listed != nil && (!listed.WorkersUnknown || listed.Amounts[Workers] >= r.Amounts[Workers]) {
		return listed, true
	}
	f, known = p.look(ctx, r.Kind, r.ID, r.Changed)
	if listed != nil {
		return f, f != nil
	}
	if (f != nil && f.Ended.IsZero() || !known) && p.state.Now.Sub(r.Changed) >= listSlack && IsCounted(operation.Kind(r.Kind)) {
		p.report.Missing++
	}
	return f, known
}

// short reports whether the list lacks most of the resources.
func (p *pass) short() bool {
	counted := 0
	for _, r := range p.records {
		if IsCounted(operation.Kind(r.Kind)) {
			counted++
		}
	}
	return 2*p.report.Missing > counted
}
