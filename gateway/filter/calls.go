package filter

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Translator serves a legacy dialect. The chain uses it in stages that handle requests of all dialects.
type Translator interface {
	// Priority returns the priority of a request whose route is known. If the priority depends on the body and the body has not been decoded,
	// it returns overload.Change and false.
	Priority(ex *Exchange) (p overload.Priority, known bool)
	// Refuse encodes p as an error response in the dialect. It is called for refusals that did not come from the translator. The chain adds
	// the headers in p.
	Refuse(p *problem.Problem) *Response
	// ForDryRun returns a translator that stores nothing. If offline is true, it does not read stored values either.
	ForDryRun(offline bool) Translator
}

// Calls runs the v2 calls of one legacy request. Each call passes the Call stages of the chain and is then sent to the platform. After
// Begin has returned, the methods of Calls are safe for concurrent use.
type Calls struct {
	parent *Exchange
	lists  memoryUse

	mu sync.Mutex // guards the parent's Calls, Event and Limit, and the fields below
	// begun reports that a call was made. The first call is counted as the request itself.
	begun bool
	// over reports that the response is complete. Calls that end later are not added to the record of the request.
	over bool
	// made contains the calls with an intent, which ends when the request ends.
	made []*Exchange
}

// Call is one v2 call of a legacy request.
type Call struct {
	Operation *schema.Operation
	Params    map[string]string
	Query     url.Values
	// Body is the decoded body, or nil.
	Body any
	// Template is the template whose values are in the body, or nil.
	Template *TemplateOrigin
	// Read reports that the translator does not modify the decoded response; see [Calls.Run]. Lists in the response then count against the
	// memory limit.
	Read bool
	// Fingerprint, StopAt and TerminateAt apply to calls that create a resource; see [Translation].
	Fingerprint         string
	StopAt, TerminateAt time.Time
}

// Begin prepares the calls of a request. The parameter memory limits the total size of the lists that are being translated for all
// requests. Calls that exceed the limit wait until other responses have been sent.
func (c *Calls) Begin(parent *Exchange, memory *overload.Pool) {
	c.parent, c.lists.pool, c.lists.org, c.lists.factor = parent, memory, orgOf(parent), translatedSize
	parent.Translation.lists = &c.lists
}

// New returns a new exchange for call. The parameter caller is the authenticated caller or, for an anonymous request, the caller that the
// gateway uses in its place.
func (c *Calls) New(caller *identity.Caller, call Call) *Exchange {
	ex := c.parent.child(call.Operation, caller, call.Params)
	ex.Query, ex.Body.Doc, ex.Body.HasDoc = call.Query, call.Body, call.Body != nil
	ex.Translation.template, ex.Translation.Fingerprint = call.Template, call.Fingerprint
	ex.Translation.StopAt, ex.Translation.TerminateAt = call.StopAt, call.TerminateAt
	if call.Read {
		ex.Translation.lists = &c.lists
	}
	c.mu.Lock()
	ex.Admission.counted, c.begun = !c.begun || c.parent.Caller == nil, true // anonymous requests are limited by address only
	c.mu.Unlock()
	return ex
}

// Run runs the exchange of a call and returns the decoded response body, or nil if the body is empty. If [Call].Read is set, JSON objects
// in the body are *strictjson.Node. If the request ends before the call, the intent of the call ends with the status [Undelivered].
func (c *Calls) Run(ctx context.Context, ex *Exchange) (body any, err error) {
	read := ex.Translation.lists == &c.lists // set by New
	chain, done := ex.pipeline.Chain, func() {}
	if chain.run(ctx, ex, partCall) {
		done = chain.Dispatch(ctx, ex)
	}
	chain.RunResponse(ctx, ex)
	done()
	body, err = decodeResponse(ex, read)
	if c.end(ex) && ex.Idempotency != nil {
		_ = ex.Ports.Intents.End(ctx, ex, nil, Undelivered) // writes asynchronously
	}
	return body, err
}

// decodeResponse decodes the body of a call's response. If a call that changes nothing gets a response that is not JSON, the response is
// treated as empty, because a retry would not help.
func decodeResponse(ex *Exchange, read bool) (any, error) {
	a := ex.Response
	if len(a.Body) == 0 {
		return nil, nil //nolint:nilnil // an empty body is not an error
	}
	decode := a.document
	if read {
		decode = func() (any, error) { return strictjson.DecodeNodes(a.Body) }
	}
	doc, err := decode()
	if err != nil && ex.Operation.Mutates {
		return nil, fmt.Errorf("%w: the platform's response is not JSON: %w", upstream.ErrUnreachable, err)
	}
	return doc, nil
}

// maxCalls is the maximum number of calls recorded for an exchange. A GraphQL document can cause more calls.
const maxCalls = 64

// end adds a completed call to the record of its request. If the request has already ended, end adds nothing and returns true.
func (c *Calls) end(ex *Exchange) (outlived bool) {
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

// later reports whether d was decided after prev. It compares the remaining quotas, because calls may end in any order.
func later(prev, d *ratelimit.Decision) bool {
	return prev == nil || len(prev.Windows) == 0 || len(d.Windows) > 0 && d.Windows[0].Remaining <= prev.Windows[0].Remaining
}

// Finish sets a as the response to the legacy request, and adds headers about the v2 calls that the request caused. It stores operations
// and droppedFields in the request's [Translation].
func (c *Calls) Finish(a *Response, operations, droppedFields []string) {
	c.lists.shrinkTo(int64(len(a.Body)))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	ex := c.parent
	ex.Response = a
	for _, call := range ex.Calls {
		writePolicyHeaders(a, &call.Evaluation.Verdict)
		writeRemovedKeys(a, call)
		if call.Response.Header[HeaderReplayed] != nil {
			a.Header.Set(HeaderReplayed, "true")
		}
		call.Cost.Reservation.WriteHeaders(a.Header)
	}
	ex.Translation.creates = c.made
	ex.Translation.Operations, ex.Translation.DroppedFields = operations, droppedFields
	if a.Status >= http.StatusBadRequest || a.Failed {
		ex.Event.Outcome = telemetry.OutcomeRefused // unless one of the calls determines it
	}
}
