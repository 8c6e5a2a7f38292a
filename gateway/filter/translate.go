package filter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/translate"
)

// Translator serves the calls of a legacy dialect.
type Translator interface {
	Dialect
	// Serve answers the operation op by making v2 calls.
	Serve(ctx context.Context, op string, in *translate.Incoming, call translate.Caller) *translate.Outgoing
}

// Translate answers legacy requests. Each v2 call a translator makes runs the
// chain's call part and is dispatched like any other.
type Translate struct {
	API         *schema.API
	Translators map[route.Dialect]Translator
	Chain       *Chain
	Dispatch    *Dispatch
	Count       *Count
	// Anonymous is the organisation whose credential answers the catalog
	// questions of GraphQL callers without a key; empty answers none.
	Anonymous string
}

// Name implements Filter.
func (*Translate) Name() string { return "translate" }

// Request answers a legacy request; a v2 request passes untouched.
func (f *Translate) Request(ctx context.Context, ex *Exchange) error {
	t, ok := f.Translators[ex.Dialect]
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
	ex.Answer = answerOf(out)
	ex.Event.Calls = out.V2
	calls.mu.Lock()
	defer calls.mu.Unlock()
	calls.over = true
	if out.Status >= http.StatusBadRequest && calls.outcome != "" {
		ex.Event.Outcome, ex.Event.Refusal = calls.outcome, calls.refusal
		ex.Event.Stage, ex.Event.Detail, ex.Event.Cause = calls.stage, calls.detail, calls.cause
	}
	if ex.Event.Outcome == "" && out.Status >= http.StatusBadRequest {
		ex.Event.Outcome = telemetry.OutcomeRefused
	}
	return nil
}

// calls is the translate.Caller of one legacy request.
type calls struct {
	translate *Translate
	parent    *Exchange

	mu sync.Mutex // guards the parent's event and what follows
	// over says that the request is answered: a call that outlives it is no
	// part of its record.
	over bool
	// How the last call that was refused ended; the reason of the whole
	// request if that fails.
	outcome                telemetry.Outcome
	refusal, stage, detail string
	cause                  error
}

// Take implements translate.Meter.
func (c *calls) Take(ctx context.Context, n int64) (*translate.Response, error) {
	err := c.translate.Count.take(ctx, c.parent, n)
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok {
		return nil, err
	}
	c.parent.Event.Refusal, c.parent.Event.Stage = string(p.Kind), "count"
	return &translate.Response{Status: p.Status, Body: map[string]any{"detail": p.Detail}}, nil
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
		if f.Anonymous == "" || !open(op.ID) {
			return &translate.Response{Status: http.StatusUnauthorized, Body: map[string]any{"detail": "missing or unknown key"}}, nil
		}
		caller = &identity.Caller{Org: f.Anonymous, Key: "anonymous"}
	}
	ex := c.child(op, r, caller)
	if f.Chain.run(ctx, ex, f.Chain.Call) {
		done, err := f.Dispatch.Do(ctx, ex)
		if err != nil {
			if ambiguous(op, err) {
				err = fmt.Errorf("%w: %w", translate.ErrAmbiguous, err)
			}
			f.Chain.Fail(ex, "dispatch", err)
		} else {
			defer done()
		}
	}
	f.Chain.RunResponse(ctx, ex)
	c.note(ex)
	if err := ex.Event.Cause; errors.Is(err, translate.ErrAmbiguous) || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	return response(ex)
}

// child is the exchange of one v2 call of a legacy request.
func (c *calls) child(op *schema.Operation, r *translate.Request, caller *identity.Caller) *Exchange {
	p := c.parent
	ex := &Exchange{
		In: p.In, RequestID: p.RequestID, DecisionID: p.DecisionID,
		Dialect: route.V2, Operation: op, Caller: caller,
		Params: r.Params, Query: r.Query, Doc: r.Body, HasDoc: r.Body != nil, Origin: r.Origin,
		trail: p.trail, Event: &telemetry.Event{Dialect: p.Event.Dialect, Operation: op.ID},
	}
	ex.stages = ex.spare[:0]
	return ex
}

// note copies what the call tells about the request as a whole.
func (c *calls) note(ex *Exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	from, to := ex.Event, c.parent.Event
	to.Denied = union(to.Denied, from.Denied)
	to.Warned = union(to.Warned, from.Warned)
	to.Shadowed = union(to.Shadowed, from.Shadowed)
	to.Excepted = union(to.Excepted, from.Excepted)
	to.Changed = union(to.Changed, from.Changed)
	if from.PolicyRevision != "" {
		to.PolicyRevision = from.PolicyRevision
	}
	if from.Priced {
		to.Priced, to.Hourly = true, from.Hourly
	}
	if from.UpstreamStatus != 0 {
		to.UpstreamStatus = from.UpstreamStatus
		to.UpstreamLatency += from.UpstreamLatency
	}
	if from.Outcome != telemetry.OutcomeOK {
		c.outcome, c.refusal, c.stage, c.detail, c.cause = from.Outcome, from.Refusal, from.Stage, from.Detail, from.Cause
	}
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// ambiguous tells whether the platform may have carried out a call whose
// answer did not arrive.
func ambiguous(op *schema.Operation, err error) bool {
	return op.Mutates && (errors.Is(err, upstream.ErrTimeout) || errors.Is(err, upstream.ErrUnreachable))
}

// response reads the answer of a call for the translator.
func response(ex *Exchange) (*translate.Response, error) {
	a := ex.Answer
	if a.Stream != nil {
		body, err := readAll(a.Stream, maxAnswer)
		if err != nil {
			err = fmt.Errorf("%w: %w", upstream.ErrUnreachable, err)
			if ex.Operation.Mutates {
				err = fmt.Errorf("%w: %w", translate.ErrAmbiguous, err)
			}
			return nil, err
		}
		a.Body, a.Stream = body, nil
	}
	out := &translate.Response{Status: a.Status, Header: a.Header}
	if len(a.Body) == 0 {
		return out, nil
	}
	doc, err := strictjson.DecodeLenient(a.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: the platform's answer is not JSON: %w", upstream.ErrUnreachable, err)
	}
	out.Body = doc
	return out, nil
}
