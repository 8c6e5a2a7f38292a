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

// Translator serves a legacy dialect. The chain needs it for requests that do not reach the stages of the translator's feature.
type Translator interface {
	// Priority returns the priority of a request with a route. known is false if the priority depends on a body that has not been read; until
	// then, the request has the priority of a change.
	Priority(ex *Exchange) (p overload.Priority, known bool)
	// Refuse converts a refusal that did not come from the translator to the form of the dialect. The chain adds the headers of the problem.
	Refuse(p *problem.Problem) *Response
	// ForDryRun returns a translator that stores nothing.
	ForDryRun() Translator
}

// Calls makes the v2 calls of one legacy request. Each of them passes the Call stages and is sent to the platform. Its methods are safe for
// concurrent use after Begin.
type Calls struct {
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

// Call is one v2 call of a legacy request.
type Call struct {
	Operation *schema.Operation
	Params    map[string]string
	Query     url.Values
	// Body is the decoded body, or nil.
	Body any
	// Template is the template whose values are in the body, or nil.
	Template *TemplateOrigin
	// Read reports that the translator only reads the response, so that its lists count against the memory limit.
	Read bool
	// Fingerprint, StopAt and TerminateAt apply to creates; see [Translation].
	Fingerprint         string
	StopAt, TerminateAt time.Time
}

// Begin prepares the calls of a request. lists limits the memory of the lists that are translated at the same time, until the responses are
// sent; further calls wait.
func (c *Calls) Begin(parent *Exchange, lists *Memory) {
	c.parent, c.lists.memory, c.lists.factor = parent, lists, translatedSize
	parent.Translation.lists = &c.lists
}

// New returns the exchange of a call by caller, who is the request's caller or acts in place of an anonymous one.
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

// Run executes a call of a legacy request. It returns the decoded response body, or nil for an empty body. If Read is set, JSON objects in
// the body are *strictjson.Node. The intent of a call that ends after the request is Undelivered.
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
		ex.Ports.Intents.Deliver(ctx, ex, Undelivered)
	}
	return body, err
}

// decodeResponse decodes the body of a call's response. A response to a read that is not JSON counts as empty, because asking again would
// not help.
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

// maxCalls limits the calls recorded for an exchange, because a GraphQL document can cause very many.
const maxCalls = 64

// end adds an ended call to the request's record. It reports whether the request has already ended.
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

// later reports whether d was decided after before, judging by the remaining quotas, because calls end in any order.
func later(before, d *ratelimit.Decision) bool {
	return before == nil || len(before.Windows) == 0 || len(d.Windows) > 0 && d.Windows[0].Remaining <= before.Windows[0].Remaining
}

// Finish sets the response of the request and adds the headers of its calls. operations and droppedFields are stored in [Translation].
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
