package filter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/translate"
)

// Translator serves the calls of a legacy dialect.
type Translator interface {
	// Refuse writes a refusal that was raised before or beside the translation in the
	// shape callers of the dialect expect.
	Refuse(r *translate.Response) *translate.Outgoing
	// Brownout is the refusal of a call of the operation op inside a brownout, in those
	// words.
	Brownout(op string, params map[string]string, text string) *translate.Outgoing
	// Serve answers the operation op by making v2 calls.
	Serve(ctx context.Context, op string, in *translate.Incoming, call translate.Caller) *translate.Outgoing
}

// Translate answers legacy requests. Each v2 call a translator makes runs the
// chain's call part and is dispatched like any other.
type Translate struct {
	API *schema.API
	// Lists bounds the lists of the platform that are translated at once, and the answers made of them until they are sent; more
	// wait.
	Lists *Memory
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
		Body:    ex.Body.Doc,
		HasBody: ex.Body.HasDoc,
	}
	if ex.Caller != nil {
		in.Account, in.Caller = ex.Caller.Org, ex.Caller.Key
	}
	in.CatalogAllowed = ex.Tenant != nil
	calls := &calls{api: f.API, parent: ex, lists: memoryUse{memory: f.Lists, factor: translatedSize}}
	ex.Translation.lists = &calls.lists
	out := t.Serve(ctx, ex.Route.ID, in, calls)
	calls.lists.shrinkTo(int64(len(out.Body)))
	calls.mu.Lock()
	defer calls.mu.Unlock()
	calls.over = true
	ex.Response = responseOf(out)
	for _, c := range ex.Calls {
		writePolicyHeaders(ex.Response, &c.Evaluation.Verdict)
		writeRemovedKeys(ex.Response, c)
		if c.Response.Header[HeaderReplayed] != nil {
			ex.Response.Header.Set(HeaderReplayed, "true")
		}
		c.Cost.Reservation.WriteHeaders(ex.Response.Header)
	}
	ex.Translation.creates = calls.made
	ex.Event.Calls, ex.Translation.operations, ex.Translation.droppedFields = out.V2, out.Operations, out.LostFields
	if out.Status >= http.StatusBadRequest || out.Failed {
		ex.Event.Outcome = telemetry.OutcomeRefused // unless one of the calls says otherwise
	}
	return nil
}

// Notes implements Noter.
func (*Translate) Notes(ex *Exchange, _ string) []string {
	if len(ex.Event.Calls) == 0 {
		return nil
	}
	return []string{"became " + strings.Join(ex.Event.Calls, ", ")}
}

// calls is the translate.Caller of one legacy request.
type calls struct {
	api    *schema.API
	parent *Exchange
	lists  memoryUse

	mu sync.Mutex // guards the parent's Calls, Event and Limit, and the fields below
	// begun says that a call was made: the first is counted as the request.
	begun bool
	// over says that the request is answered: a call that outlives it is no
	// part of its record.
	over bool
	// createsimeKey are the calls whose intents end with the request.
	made []*Exchange
}

// allowedAnonymously reports whether anonymous callers of a legacy dialect may cause the v2
// operation: one that lists offers and prices.
func allowedAnonymously(id string) bool {
	row, _ := operation.Of(id)
	return row.Kind == operation.KindCatalog
}

// Call implements translate.Caller.
func (c *calls) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	op := c.api.Operation(r.Operation)
	if op == nil {
		return nil, fmt.Errorf("translate: unknown v2 operation %q", r.Operation)
	}
	caller := c.parent.Caller
	if caller == nil {
		if c.parent.Tenant == nil || !allowedAnonymously(op.ID) {
			return &translate.Response{Status: http.StatusUnauthorized, Body: map[string]any{"detail": translate.MissingKeyText}}, nil
		}
		caller = &identity.Caller{Org: c.parent.Tenant.ID, Key: anonymousKey, Roles: []identity.Role{identity.RoleViewer}}
	}
	ex := c.parent.child(op, caller, r.Params)
	ex.Query, ex.Body.Doc, ex.Body.HasDoc, ex.Translation.template = r.Query, r.Body, r.Body != nil, r.Origin
	c.mu.Lock()
	ex.Admission.counted, c.begun = !c.begun || c.parent.Caller == nil, true // without a key, limits are those of its address
	c.mu.Unlock()
	row, _ := operation.Of(op.ID)
	if row.Verb != operation.VerbCreate {
		if r.Read {
			ex.Translation.lists = &c.lists
		}
		return c.run(ctx, ex, r.Read)
	}
	ex.Translation.Fingerprint, ex.Translation.StopAt, ex.Translation.TerminateAt = r.FingerprintText, r.StopAt, r.TerminateAt
	if (!r.StopAt.IsZero() || !r.TerminateAt.IsZero()) && ex.Tenant.Budgets == nil {
		const detail = "the gateway cannot stop or terminate the pod at a time, because the organisation has no budget and therefore no ledger"
		return &translate.Response{Status: http.StatusBadRequest, Body: map[string]any{"detail": detail}, Refused: true}, nil
	}
	return c.create(ctx, ex, r.OnLateSuccess)
}

// run carries a call out, whose answer may only be read.
func (c *calls) run(ctx context.Context, ex *Exchange, read bool) (*translate.Response, error) {
	chain, done := ex.pipeline.Chain, func() {}
	if chain.run(ctx, ex, partCall) {
		done = chain.Dispatch(ctx, ex)
	}
	chain.RunResponse(ctx, ex)
	done()
	answer, err := response(ex, read)
	if c.end(ex) && ex.Idempotency != nil {
		ex.Ports.Intents.Deliver(ctx, ex, Undelivered)
	}
	row, _ := operation.Of(ex.Operation.ID)
	switch {
	case ex.Event.Refusal == string(problem.OutcomeUnknown):
		return nil, &translate.UnfinishedError{Noun: row.Kind.Noun()}
	case ex.Operation.Mutates && ex.Sent == SentUnanswered && ex.Adopted == "":
		return nil, errors.Join(translate.ErrAmbiguous, ex.Event.Cause, err, ctx.Err())
	case ctx.Err() != nil && ex.Sent != Answered && ex.Adopted == "":
		return nil, errors.Join(ex.Event.Cause, ctx.Err())
	case err != nil:
		return nil, err
	}
	answer.Refused = ex.Sent == NotSent && ex.Event.Refusal != "" && ex.Event.Stage != StageDispatch
	answer.FromEarlierRequest = (ex.Adopted != "" || ex.Response.Header[HeaderReplayed] != nil) && ex.Sent == NotSent
	return answer, nil
}

// create carries a create out. When the request's time ends first, the call goes on
// without it: it cannot be taken back, and a repeat of the request gets its resource.
func (c *calls) create(ctx context.Context, ex *Exchange, onLateSuccess func(context.Context, *translate.Response)) (*translate.Response, error) {
	type reply struct {
		made *translate.Response
		err  error
	}
	ended, outlived := make(chan reply, 1), make(chan bool, 1)
	row, _ := operation.Of(ex.Operation.ID)
	ex.Ports.Background.Go(func() {
		made, err := c.run(ctx, ex, false)
		ended <- reply{made, err}
		if <-outlived && err == nil && made.OK() && onLateSuccess != nil {
			onLateSuccess(context.WithoutCancel(ctx), made)
		}
	})
	select {
	case e := <-ended:
		outlived <- false
		return e.made, e.err
	case <-ctx.Done():
	}
	outlived <- true
	return nil, &translate.UnfinishedError{Noun: row.Kind.Noun()}
}

var _ translate.Record = (*strictjson.Node)(nil)

// maxCalls bounds the calls an exchange holds: a GraphQL document can become a
// great many.
const maxCalls = 64

// end makes a call that has ended part of the request's record, and reports whether it
// has outlived that.
func (c *calls) end(ex *Exchange) (outlived bool) {
	ex.Response.Body = nil // the translator has it
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return true
	}
	c.parent.Event.Absorb(ex.Event)
	if d := ex.Limit; d != nil && d.Allowed && later(c.parent.Limit, d) {
		c.parent.Limit = d
	}
	if len(c.parent.Calls) < maxCalls {
		c.parent.Calls = append(c.parent.Calls, ex)
	}
	if ex.Idempotency != nil {
		c.made = append(c.made, ex)
	}
	return false
}

// later reports whether d was decided after before, as far as their remaining quotas tell:
// calls end in any order.
func later(before, d *ratelimit.Decision) bool {
	return before == nil || len(before.Windows) == 0 || len(d.Windows) > 0 && d.Windows[0].Remaining <= before.Windows[0].Remaining
}

// response reads the answer of a call for the translator. One to a read that is not
// JSON has no body: asking again would bring the same. Only a read has Records.
func response(ex *Exchange, read bool) (*translate.Response, error) {
	a := ex.Response
	out := &translate.Response{Status: a.Status, Header: a.Header, Kind: ex.Event.Refusal}
	if len(a.Body) == 0 {
		return out, nil
	}
	decode := a.document
	if read {
		decode = func() (any, error) { return strictjson.DecodeNodes(a.Body) }
	}
	doc, err := decode()
	if err != nil && ex.Operation.Mutates {
		return nil, fmt.Errorf("%w: the platform's answer is not JSON: %w", upstream.ErrUnreachable, err)
	}
	out.Body = doc
	return out, nil
}
