package filter

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Trail collects what became of the v2 calls of one exchange: one of a v2
// request, any number of a legacy one. It is safe for concurrent use.
type Trail struct {
	mu    sync.Mutex // guards calls
	calls []call
	one   [1]call // where calls begins: most exchanges are one call
}

func newTrail() *Trail {
	t := new(Trail)
	t.calls = t.one[:0]
	return t
}

// call is one v2 call as it ended. It holds no body: a record is kept for a
// while and shown to operators, and bodies hold secrets.
type call struct {
	operation, method, path string
	verdict                 policies.Decision
	cost                    policies.Cost
	priced                  bool
	template                string
	status, upstream        int
	refusal, stage, detail  string
	// stages are those that were entered; shared with other calls.
	stages []string
}

func (t *Trail) add(c call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, c)
}

// take returns the calls noted so far; what comes after them is lost.
func (t *Trail) take() []call {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := t.calls
	t.calls = nil
	return calls
}

// maxCalls bounds what is kept of one exchange: a GraphQL document can become
// a great many calls.
const maxCalls = 64

// Note notes on the exchange's Trail how a v2 call ended. It stands first in
// the call part, so that its response phase sees the call's end.
type Note struct {
	// Keep knows the chain's stages.
	Keep *Keep
}

// Name implements Filter.
func (Note) Name() string { return "note" }

// Request implements Filter; there is nothing to do on the way in.
func (Note) Request(context.Context, *Exchange) error { return nil }

// Response adds the call to the trail.
func (f Note) Response(_ context.Context, ex *Exchange) error {
	if ex.trail == nil {
		return nil
	}
	e := ex.Event
	c := call{
		operation: ex.Operation.ID, method: ex.Operation.Method,
		verdict: ex.Verdict, status: ex.Answer.Status, upstream: e.UpstreamStatus,
		refusal: e.Refusal, stage: e.Stage, detail: e.Detail, stages: f.Keep.call[:len(ex.stages)-1-slices.IndexFunc(ex.stages, isNote)],
	}
	if in := ex.Input; in == nil {
		c.path = expand(ex.Operation.Path, ex.Params)
	} else {
		c.path = in.Request.Path
		c.cost, c.priced = in.Cost, e.Priced
		if in.Resource.Template != nil {
			c.template = in.Resource.Template.ID
		}
	}
	ex.trail.add(c)
	return nil
}

func isNote(f Filter) bool {
	_, ok := f.(Note)
	return ok
}

// kept is a finished exchange.
type kept struct {
	event  telemetry.Event
	path   string
	roles  []identity.Role
	limit  *ratelimit.Decision
	stages []string
	calls  []call
}

// Keep remembers finished exchanges of known callers, so that they can be
// explained. It stands first, so that its response phase sees the answer as it
// leaves.
type Keep struct {
	history *History
	// request and call name the stages of the chain, those of the request and
	// those of one call behind its Note.
	request, call []string
}

// NewKeep returns a Keep for a chain; Know must be called once that is whole.
func NewKeep(h *History) *Keep { return &Keep{history: h} }

// Know tells a Keep the chain it stands in. Only names are taken from it: what
// is kept must not hold on to configurations that are over.
func (f *Keep) Know(c *Chain) {
	for _, stage := range slices.Concat(c.Head, c.Content) {
		f.request = append(f.request, stage.Name())
	}
	for _, stage := range c.Call[slices.IndexFunc(c.Call, isNote)+1:] {
		f.call = append(f.call, stage.Name())
	}
}

// Name implements Filter.
func (*Keep) Name() string { return "keep" }

// Request begins the exchange's trail.
func (*Keep) Request(_ context.Context, ex *Exchange) error {
	ex.trail = newTrail()
	return nil
}

// Response keeps the exchange. A legacy answer is told here what the policies
// said of the v2 calls behind it.
func (f *Keep) Response(_ context.Context, ex *Exchange) error {
	calls := ex.trail.take()
	if ex.Dialect != route.V2 {
		for i := range calls {
			tell(ex.Answer, &calls[i].verdict)
		}
	}
	if ex.Caller == nil {
		return nil
	}
	k := &kept{
		event: *ex.Event, path: clip(ex.In.Path), roles: ex.Caller.Roles, limit: ex.Limit,
		stages: f.request[:min(len(ex.stages), len(f.request))], calls: calls[:min(len(calls), maxCalls)],
	}
	// The chain completes these after the last filter.
	k.event.Status = ex.Answer.Status
	k.event.Agent = clip(k.event.Agent)
	f.history.add(k)
	return nil
}

// maxText bounds what is kept of a text of the caller's.
const maxText = 256

// clip returns the beginning of s; what is cut off is not held on to.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.Clone(s[:maxText])
}

// History keeps the latest exchanges in memory, a bounded number of them. What
// only read and was answered has a part of its own, so that polling does not
// push out what somebody will ask about. It is safe for concurrent use.
type History struct {
	mu             sync.Mutex // guards what follows
	telling, plain ring
	byID           map[string]*kept
}

// ring holds the latest of something.
type ring struct {
	items []*kept
	next  int
}

// push puts an item in the place of the oldest, which it returns.
func (r *ring) push(k *kept) (gone *kept) {
	gone, r.items[r.next] = r.items[r.next], k
	r.next = (r.next + 1) % len(r.items)
	return gone
}

// each calls f with the newest first until it returns false.
func (r *ring) each(f func(*kept) bool) {
	for i := range r.items {
		k := r.items[(r.next+2*len(r.items)-1-i)%len(r.items)]
		if k == nil || !f(k) {
			return
		}
	}
}

// NewHistory returns a History of the latest size exchanges, at least two.
func NewHistory(size int) *History {
	half := max(1, size/2)
	return &History{
		telling: ring{items: make([]*kept, half)}, plain: ring{items: make([]*kept, half)},
		byID: make(map[string]*kept, 2*half),
	}
}

func (h *History) add(k *kept) {
	part := &h.telling
	if k.plain() {
		part = &h.plain
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if gone := part.push(k); gone != nil {
		delete(h.byID, gone.event.DecisionID)
	}
	h.byID[k.event.DecisionID] = k
}

// plain tells that an exchange only read, passed, and no policy spoke.
func (k *kept) plain() bool {
	e := &k.event
	return e.Method == http.MethodGet && e.Status < 400 && e.Refusal == "" &&
		len(e.Denied)+len(e.Warned)+len(e.Shadowed)+len(e.Excepted)+len(e.Changed) == 0
}
