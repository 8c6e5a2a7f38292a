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

// Translator serves the requests of a legacy dialect.
type Translator interface {
	// Refuse converts a refusal that did not come from the translator to the form of the dialect.
	Refuse(r *translate.Response) *translate.Outgoing
	// Brownout returns the refusal of operation op during a brownout, with the given text.
	Brownout(op string, params map[string]string, text string) *translate.Outgoing
	// Serve responds to operation op by making v2 calls.
	Serve(ctx context.Context, op string, in *translate.Incoming, call translate.Caller) *translate.Outgoing
}

// Translate answers legacy requests. Each v2 call of the translator passes the call filters and is sent to the platform.
type Translate struct {
	API *schema.API
	// Lists limits the memory of lists translated at the same time, until the responses are sent. Further requests wait.
	Lists *Memory
}

// Name implements Filter.
func (*Translate) Name() string { return "translate" }

// Request responds to a legacy request and does nothing for other requests.
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
		ex.Event.Outcome = telemetry.OutcomeRefused // unless one of the calls determines it
	}
	return nil
}

// Notes implements Explainer.
func (*Translate) Notes(ex *Exchange, _ string) []string {
	if len(ex.Event.Calls) == 0 {
		return nil
	}
	return []string{"became " + strings.Join(ex.Event.Calls, ", ")}
}

// calls implements translate.Caller for one legacy request.
type calls struct {
	api    *schema.API
	parent *Exchange
	lists  memoryUse

	mu sync.Mutex // guards the parent's Calls, Event and Limit, and the fields below
	// begun reports that a call was made. The first call is counted as the request itself.
	begun bool
	// over reports that the response is complete. Calls that end later are not part of the request's record.
	over bool
	// made are the calls whose intents end with the request.
	made []*Exchange
}

// allowedAnonymously reports whether anonymous legacy requests may cause a v2 operation: only those that list offers and prices.
func allowedAnonymously(id string) bool {
	row, _ := operation.Lookup(id)
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
	ex.Admission.counted, c.begun = !c.begun || c.parent.Caller == nil, true // anonymous requests are limited by address only
	c.mu.Unlock()
	row, _ := operation.Lookup(op.ID)
	if row.Verb != operation.VerbCreate {
		if r.Read {
			ex.Translation.lists = &c.lists
		}
		return c.run(ctx, ex, r.Read)
	}
	ex.Translation.Fingerprint, ex.Translation.StopAt, ex.Translation.TerminateAt = r.FingerprintText, r.StopAt, r.TerminateAt
	if (!r.StopAt.IsZero() || !r.TerminateAt.IsZero()) && ex.Tenant.Budgets == nil {
		const detail = "stopping or terminating pods at a set time requires a budget, which the organisation does not have"
		return &translate.Response{Status: http.StatusBadRequest, Body: map[string]any{"detail": detail}, Refused: true}, nil
	}
	return c.create(ctx, ex, r.OnLateSuccess)
}

// run executes a call. read reports that the translator only reads the response.
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
	row, _ := operation.Lookup(ex.Operation.ID)
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

// create executes a create. If the time of the request ends first, the call continues in the background, because it cannot be undone. A
// repeat of the request then receives its resource.
func (c *calls) create(ctx context.Context, ex *Exchange, onLateSuccess func(context.Context, *translate.Response)) (*translate.Response, error) {
	type reply struct {
		made *translate.Response
		err  error
	}
	ended, outlived := make(chan reply, 1), make(chan bool, 1)
	row, _ := operation.Lookup(ex.Operation.ID)
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

// maxCalls limits the calls recorded for an exchange, because a GraphQL document can cause very many.
const maxCalls = 64

// end adds an ended call to the request's record. It reports whether the request has already ended.
func (c *calls) end(ex *Exchange) (outlived bool) {
	ex.Response.Body = nil // the translator keeps its own copy
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return true
	}
	c.parent.Event.Merge(ex.Event)
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

// later reports whether d was decided after before, judging by the remaining quotas, because calls end in any order.
func later(before, d *ratelimit.Decision) bool {
	return before == nil || len(before.Windows) == 0 || len(d.Windows) > 0 && d.Windows[0].Remaining <= before.Windows[0].Remaining
}

// response converts the response of a call for the translator. A response to a read that is not JSON has no body, because asking again
// would not help. Records are set only for reads.
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
		return nil, fmt.Errorf("%w: the platform's response is not JSON: %w", upstream.ErrUnreachable, err)
	}
	out.Body = doc
	return out, nil
}
