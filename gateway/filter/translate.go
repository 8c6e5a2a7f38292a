package filter

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/translate"
)

// Translator serves the calls of a legacy dialect.
type Translator interface {
	// Refuse writes a refusal in the shape callers of the dialect expect.
	Refuse(p translate.Problem) *translate.Outgoing
	// Brownout is the refusal of a call inside a brownout. Its words are for the
	// callers, unlike those of other server errors, which old clients expect as
	// they were.
	Brownout(text string) *translate.Outgoing
	// Serve answers the operation op by making v2 calls.
	Serve(ctx context.Context, op string, in *translate.Incoming, call translate.Caller) *translate.Outgoing
}

// Translate answers legacy requests. Each v2 call a translator makes runs the
// chain's call part and is dispatched like any other.
type Translate struct {
	API   *schema.API
	Chain *Chain
}

// Name implements Filter.
func (*Translate) Name() string { return "translate" }

// Request answers a legacy request; a v2 request passes untouched.
func (f *Translate) Request(ctx context.Context, ex *Exchange) error {
	t, ok := ex.Ports.Translators[ex.Dialect]
	if !ok {
		return nil
	}
	in := &translate.Incoming{
		Params:  ex.Params,
		Query:   ex.Query,
		Header:  http.Header{"User-Agent": ex.In.Header["User-Agent"], "Content-Type": ex.In.Header["Content-Type"]},
		Body:    ex.Doc,
		HasBody: ex.HasDoc,
	}
	if ex.Caller != nil {
		in.Account, in.Caller = ex.Caller.Org, ex.Caller.Key
	}
	calls := &calls{translate: f, parent: ex}
	out := t.Serve(ctx, ex.Route.ID, in, calls)
	calls.mu.Lock()
	defer calls.mu.Unlock()
	calls.over = true
	ex.Answer = answerOf(out)
	for _, c := range ex.Calls {
		tell(ex.Answer, &c.Verdict)
		if r := c.held; r != nil {
			r.tell(ex.Answer)
		}
	}
	ex.Event.Calls, ex.asked = out.V2, out.Asked
	if out.Status >= http.StatusBadRequest {
		ex.Event.Outcome = telemetry.OutcomeRefused // unless one of the calls says otherwise
	}
	return nil
}

// Notes implements Noter.
func (f *Translate) Notes(ex *Exchange, stage string) []string {
	if stage != f.Name() || len(ex.Event.Calls) == 0 {
		return nil
	}
	notes := []string{"became " + strings.Join(ex.Event.Calls, ", ")}
	if ex.Adopted != "" {
		notes = append(notes, ex.Adopted+" was made by an earlier request whose answer was lost")
	}
	return notes
}

// calls is the translate.Caller of one legacy request.
type calls struct {
	translate *Translate
	parent    *Exchange

	mu sync.Mutex // guards the parent's Calls, Event and Limit, and what follows
	// begun says that a call was made: the first is counted as the request.
	begun bool
	// over says that the request is answered: a call that outlives it is no
	// part of its record.
	over bool
}

// open reports whether anonymous callers of a legacy dialect may cause the v2
// operation: what is for rent and for how much.
func open(id string) bool {
	row, _ := operation.Of(id)
	return row.Kind == operation.KindCatalog
}

// Call implements translate.Caller.
func (c *calls) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	f := c.translate
	op := f.API.Operation(r.Operation)
	if op == nil {
		return nil, fmt.Errorf("translate: unknown v2 operation %q", r.Operation)
	}
	caller := c.parent.Caller
	if caller == nil {
		if c.parent.Tenant == nil || !open(op.ID) {
			return &translate.Response{Status: http.StatusUnauthorized, Body: map[string]any{"detail": "missing or unknown key"}}, nil
		}
		caller = &identity.Caller{Org: c.parent.Tenant.ID, Key: anonymousKey, Roles: []identity.Role{identity.RoleViewer}}
	}
	ex := c.parent.child(op, caller, r.Params)
	ex.Query, ex.Doc, ex.HasDoc, ex.Origin = r.Query, r.Body, r.Body != nil, r.Origin
	c.mu.Lock()
	ex.counted, c.begun = !c.begun || c.parent.Caller == nil, true // without a key, limits are those of its address
	c.mu.Unlock()
	done := func() {}
	if f.Chain.run(ctx, ex, partCall) {
		done = f.Chain.Dispatch(ctx, ex)
	}
	date, lost := ex.date(), ex.lost()
	f.Chain.RunResponse(ctx, ex)
	done()
	answer, err := response(ex)
	c.end(ex)
	switch {
	case lost:
		return nil, errors.Join(translate.ErrAmbiguous, ex.Event.Cause, err, ctx.Err())
	case ctx.Err() != nil && ex.Sent != Answered:
		return nil, errors.Join(ex.Event.Cause, ctx.Err())
	case err != nil:
		return nil, err
	}
	answer.Date, answer.Unsent = date, ex.Sent == NotSent
	return answer, nil
}

// date returns when the platform says it answered, the zero time when it does not.
func (ex *Exchange) date() time.Time {
	if ex.Sent != Answered {
		return time.Time{}
	}
	t, _ := http.ParseTime(ex.Answer.Header.Get("Date"))
	return t
}

// lost reports whether a call may have been carried out although the platform has
// not said so: it did not answer or, to a create, in a way that says neither.
func (ex *Exchange) lost() bool {
	row, _ := operation.Of(ex.Operation.ID)
	switch {
	case !ex.Operation.Mutates || ex.Sent == NotSent:
		return false
	case ex.Sent == SentOut:
		return true
	case row.Verb != operation.VerbCreate || ex.Answer.Status >= 400 && ex.Answer.Status < 500:
		return false
	}
	object := ex.Answer.object() != nil
	switch ex.Answer.Status {
	case http.StatusInternalServerError, http.StatusServiceUnavailable:
		media, _, _ := mime.ParseMediaType(ex.Answer.Header.Get("Content-Type"))
		return !object || media != problem.ContentType
	}
	return !object || ex.Answer.Status >= 300
}

// Adopt implements translate.Adopter.
func (c *calls) Adopt(r *translate.Request, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range slices.Backward(c.parent.Calls) {
		if call.Operation.ID == r.Operation && call.Adopted == "" && call.Event.Outcome == telemetry.OutcomeUpstream {
			call.Adopted = id
			return
		}
	}
	if !c.over { // the repeat of a request that lost the answer
		c.parent.Adopted = id
	}
}

// maxCalls bounds the calls an exchange holds: a GraphQL document can become a
// great many.
const maxCalls = 64

// end makes a call that has ended part of the request's record.
func (c *calls) end(ex *Exchange) {
	ex.Answer.Body = nil // the translator has it
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.parent.Event.Absorb(ex.Event)
	if d := ex.Limit; d != nil && d.Allowed && later(c.parent.Limit, d) {
		c.parent.Limit = d
	}
	if len(c.parent.Calls) < maxCalls {
		c.parent.Calls = append(c.parent.Calls, ex)
	}
}

// later reports whether d was decided after before, as far as what they leave tells:
// calls end in any order.
func later(before, d *ratelimit.Decision) bool {
	return before == nil || len(before.Windows) == 0 || len(d.Windows) > 0 && d.Windows[0].Remaining <= before.Windows[0].Remaining
}

// response reads the answer of a call for the translator. One to a read that is not
// JSON has no body: asking again would bring the same.
func response(ex *Exchange) (*translate.Response, error) {
	a := ex.Answer
	out := &translate.Response{Status: a.Status, Header: a.Header}
	if len(a.Body) == 0 {
		return out, nil
	}
	doc, err := a.document()
	if err != nil && ex.Operation.Mutates {
		return nil, fmt.Errorf("%w: the platform's answer is not JSON: %w", upstream.ErrUnreachable, err)
	}
	out.Body = doc
	return out, nil
}
