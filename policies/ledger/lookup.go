package ledger

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

const (
	// lag is the maximum delay after a change: until then a list may omit an existing resource, and a GET may return 404 for it.
	lag = time.Minute
	// maxGets limits the number of GETs in one pass, and getsTime their total duration.
	maxGets  = 100
	getsTime = 30 * time.Second
)

// gets looks up single resources at the platform, within the limits of one pass.
type gets struct {
	left int
	end  time.Time
	// gone holds the resources whose GET returned 404. ended is the subset that a call was expected to end.
	gone, ended map[string]bool
}

func newGets() gets {
	return gets{left: maxGets, end: time.Now().Add(getsTime), gone: make(map[string]bool), ended: make(map[string]bool)}
}

// find looks up a resource that last changed at the given time. It returns nil if the resource does not exist. known is false if the lookup
// could not determine whether the resource exists. Sandboxes are looked up immediately, because their records report that they have ended.
func (p *pass) find(ctx context.Context, kind, id string, changed time.Time) (f *PlatformResource, known bool) {
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
		p.Logger.DebugContext(ctx, "cannot determine whether a resource still exists", "org", p.org, "kind", kind, "resource", id,
			"error", err.Error())
		return nil, false
	}
	g.gone[id] = f == nil && !early
	return f, f != nil || !early
}

// now returns the platform's state of a recorded resource, or nil if the resource is gone. If the resource is missing from the list, or is
// an endpoint with fewer workers than counted, the response to a GET decides. known is false while the list and the GET contradict each
// other.
func (p *pass) now(ctx context.Context, r *Record) (f *PlatformResource, known bool) {
	listed := p.found[r.ID]
	if listed != nil && (!listed.WorkersUnknown || listed.Amounts[Workers] >= r.Amounts[Workers]) {
		return listed, true
	}
	f, known = p.find(ctx, r.Kind, r.ID, r.Changed)
	if listed != nil {
		return f, f != nil
	}
	if (f != nil && f.Ended.IsZero() || !known) && p.state.Now.Sub(r.Changed) >= listSlack && IsCounted(operation.Kind(r.Kind)) {
		p.report.Missing++
	}
	return f, known
}

// short reports whether the list omits most of the recorded resources.
func (p *pass) short() bool {
	counted := 0
	for _, r := range p.records {
		if IsCounted(operation.Kind(r.Kind)) {
			counted++
		}
	}
	return 2*p.report.Missing > counted
}
