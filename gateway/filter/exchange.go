package filter

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/nextstate"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Names of the doors in events.
const (
	DoorHTTP    = "http"
	DoorExtProc = "envoy"
)

// Inbound is a request as the door received it. Filters must not change it.
type Inbound struct {
	Door   string // DoorHTTP or DoorExtProc
	Method string
	// Path and Query are the unparsed parts of the request target. A request to the host name of a load-balanced endpoint has the
	// equivalent path below BalancedPath.
	Path, Query string
	// Host is the host of the request, possibly with a port.
	Host string
	// Major and Minor are the HTTP version.
	Major, Minor int
	Header       http.Header
	// Length is the declared length of the body, or -1 if none was declared.
	Length int64
	// Body is the complete body. It is nil while the body has not been received.
	Body []byte
	// Source is the reader of the body, used after the Headers part. It is nil if Body is complete.
	Source io.Reader
	// Oversize reports that reading stopped at the size limit, Truncated that the client did not send the whole body.
	Oversize, Truncated bool
	// Peer is the caller's IP address without port: the address of the connection, or the one forwarded by a trusted load balancer.
	Peer string
	// Certificates is the client's verified certificate, followed by the other certificates that were sent with it. It is nil without a
	// certificate, or if the door has no access to it.
	Certificates []*x509.Certificate
	// LimitError is set by the door to the refusal for a connection that exceeds a limit, and nil for other connections. LimitConcurrency
	// returns it to the caller unless the call reduces costs.
	LimitError error
	// Received is the time when the request arrived.
	Received time.Time
	// Authenticated is the time when a session presented its token at login. It is zero for requests that carry their own credential.
	Authenticated time.Time
}

// Outbound is the request to the platform, built from parsed values.
type Outbound struct {
	Method string
	// Path and Query are escaped.
	Path, Query string
	Header      http.Header
	Body        []byte
	// Source is a body of Length bytes that is read while it is sent, nil if Body is the complete body. Length is -1 if unknown. Source is
	// closed if it is an io.Closer.
	Source io.Reader
	Length int64
	// Stream reports that the response is an event stream, whose parts are forwarded immediately.
	Stream bool
	// Tunnel reports that the request asks for a WebSocket.
	Tunnel bool
	// Resent reports that the platform refused the body set by ExtendBody, and that the previous body was sent.
	Resent bool
	// Buffered delays the response until its whole body has been received. An interrupted response is then an error.
	Buffered bool
}

// Target returns the path and query as a request target.
func (o *Outbound) Target() string {
	if o.Query == "" {
		return o.Path
	}
	return o.Path + "?" + o.Query
}

// SendState describes how far a call has got on its way to the platform.
type SendState uint8

const (
	// NotSent means that the platform has received nothing of the call.
	NotSent SendState = iota
	// SentUnanswered means that the call was sent but no usable response was received. The platform may have carried it out.
	SentUnanswered
	// Answered means that the response was received, completely if Out.Buffered is set.
	Answered
)

// Exchange is one request and its response on their way through the chain. It must be used by one goroutine at a time. Every field is set
// by one package only; test/layering checks this.
type Exchange struct {
	In  Inbound
	Out Outbound
	// Ports are the side effects available to filters.
	Ports *Ports
	// pipeline is the configuration under which the exchange runs.
	pipeline *Pipeline

	// RequestID is the caller's X-Request-Id, or a new ID if it is missing or malformed. DecisionID identifies the exchange in explanations
	// and is always new.
	RequestID, DecisionID string
	Dialect               route.Dialect
	// Route is nil until the request is matched.
	Route  *route.Route
	Params map[string]string
	// Query contains the parsed query parameters. After validation of a v2 call, it contains only parameters that the operation accepts.
	Query url.Values
	// Operation is the v2 operation, nil for a legacy request.
	Operation *schema.Operation
	Caller    *identity.Caller
	// Tenant is the caller's organisation. For an anonymous caller, it is the organisation that serves anonymous requests, or nil.
	Tenant *Tenant
	Limit  *ratelimit.Decision

	Response *Response
	Event    *telemetry.Event
	// Faults are the located messages of a refusal, if any.
	Faults []string
	// Sent is the progress of the call to the platform.
	Sent SendState
	// Adopted is the ID of a resource that was found after the response to its create was lost, "" otherwise.
	Adopted string
	// Calls are the v2 calls of a legacy exchange in order of completion, at most maxCalls.
	Calls []*Exchange

	Progress    Progress
	Admission   Admission
	Translation Translation
	Body        Body
	Access      Access
	Evaluation  Evaluation
	Approval    Approval
	Cost        Cost
	// Idempotency is the deduplication state of the call, nil if the call may be carried out twice.
	Idempotency *IdempotencyState
	// auditSeq is the sequence number of the call's intent in the audit log, or 0.
	auditSeq int64
}

// Initial capacities for the names of stages, sufficient for one v2 call.
const (
	stagesOfRequest = 36
	stagesOfCall    = 20
)

// newExchange returns an empty exchange with its event in one allocation, with capacity for the given number of stages.
func newExchange(stages int) *Exchange {
	x := new(struct {
		ex    Exchange
		event telemetry.Event
	})
	x.ex.Event, x.ex.Progress.stages = &x.event, make([]string, 0, stages)
	return &x.ex
}

// child returns a new exchange for a v2 call made on behalf of ex.
func (ex *Exchange) child(op *schema.Operation, caller *identity.Caller, params map[string]string) *Exchange {
	c := newExchange(stagesOfCall)
	c.In, c.Ports, c.RequestID, c.DecisionID, c.Dialect = ex.In, ex.Ports, ex.RequestID, ex.DecisionID, route.V2
	c.Operation, c.Caller, c.Tenant, c.pipeline, c.Params, c.Progress.Nested, c.Admission.Slot = op, caller, ex.Tenant, ex.pipeline,
		params, true, ex.Admission.Slot
	c.Event.Dialect, c.Event.Operation = ex.Event.Dialect, op.ID
	c.Admission.provisional, c.Admission.mutates = ex.Admission.provisional, ex.Admission.mutates
	c.Out.Buffered = true
	return c
}

// callers returns the known callers, nil without a pipeline.
func (ex *Exchange) callers() *Callers {
	if ex.pipeline == nil {
		return nil
	}
	return ex.pipeline.Callers
}

// enterStage records that the exchange has reached a stage.
func (ex *Exchange) enterStage(stage string) {
	ex.Progress.clock.mark(len(ex.Progress.stages))
	ex.Progress.stages = append(ex.Progress.stages, stage)
}

// Stage returns the name of the most recent stage, or "" before the first.
func (ex *Exchange) Stage() string {
	if len(ex.Progress.stages) == 0 {
		return ""
	}
	return ex.Progress.stages[len(ex.Progress.stages)-1]
}

// Stages returns the names of the stages reached so far, separated into request stages and stages of the v2 call.
func (ex *Exchange) Stages() (request, call []string) {
	if ex.Progress.callStart == 0 {
		return ex.Progress.stages, nil
	}
	return ex.Progress.stages[:ex.Progress.callStart-1], ex.Progress.stages[ex.Progress.callStart-1:]
}

// Target returns the path and query of the v2 call as a request target.
func (ex *Exchange) Target() string {
	path, query := ex.PathAndQuery()
	if query == "" {
		return path
	}
	return path + "?" + query
}

// PathAndQuery returns the escaped path and the encoded query of the v2 call.
func (ex *Exchange) PathAndQuery() (path, query string) {
	return expand(ex.Operation.Path, ex.Params), encodeQuery(ex.Query)
}

// DisplayBody returns the body of a v2 call for display to people. It contains the template's ID instead of the settings that were copied
// from the template, and no secret values. It is nil for commands, which may contain secrets.
func (ex *Exchange) DisplayBody() any {
	if row, _ := operation.Lookup(ex.Operation.ID); row.Verb == operation.VerbExec {
		return nil
	}
	if ex.Body.beforeTemplate != nil {
		return ex.Body.beforeTemplate
	}
	if body, isObject := ex.Body.Doc.(map[string]any); isObject {
		return nextstate.WithoutValue(ex.Operation.ID, body)
	}
	return ex.Body.Doc
}

// Snapshot returns a copy of the exchange for explanations, which may be retained and shown to operators. It has no body, headers or query,
// which may contain secrets, and no reference to the configuration.
func (ex *Exchange) Snapshot() *Exchange {
	r := &struct {
		ex    Exchange
		event telemetry.Event
	}{event: *ex.Event}
	path, params := clip(ex.In.Path), ex.Params
	if c := ex.callers(); c != nil && c.Directory != nil && c.Directory.ContainsKey(unescaped(ex.In.Path)) {
		path, params = "", nil // they contain a key
	}
	r.ex = Exchange{
		In: Inbound{Path: path}, Dialect: ex.Dialect, Operation: ex.Operation, Params: params, Caller: ex.Caller,
		Limit: ex.Limit, Event: &r.event, Sent: ex.Sent, Adopted: ex.Adopted,
		Progress: Progress{stages: slices.Clip(ex.Progress.stages), callStart: ex.Progress.callStart, clock: ex.Progress.clock},
		Body:     Body{Labels: ex.Body.Labels, removedVars: ex.Body.removedVars, removedHeaders: ex.Body.removedHeaders},
		Access:   Access{hiddenNotes: ex.Access.hiddenNotes}, Evaluation: Evaluation{Input: ex.inputForRecord(), Verdict: ex.Evaluation.Verdict},
		Cost: Cost{Reservation: ex.Cost.Reservation.snapshot()},
	}
	e := &r.event
	e.Agent = clip(e.Agent)
	if cause := e.Cause; cause != nil {
		e.Cause = errors.New(clip(cause.Error()))
	}
	if len(ex.Calls) > 0 {
		r.ex.Calls = make([]*Exchange, len(ex.Calls))
	}
	for i, call := range ex.Calls {
		r.ex.Calls[i] = call.Snapshot()
	}
	return &r.ex
}

// inputForRecord returns the part of the policy input kept for explanations: the cost and the template, or nil if there is neither.
func (ex *Exchange) inputForRecord() *policies.Input {
	in := ex.Evaluation.Input
	if in == nil || in.Resource.Template == nil && !ex.Event.Priced && in.Cost == (policies.Cost{Known: true}) {
		return nil
	}
	kept := &policies.Input{Cost: in.Cost}
	if t := in.Resource.Template; t != nil {
		kept.Resource.Template = &policies.Template{ID: t.ID, Public: t.Public, Own: t.Own}
	}
	return kept
}

// maxText is the number of bytes kept of a string sent by the caller.
const maxText = 256

// clip returns the first maxText bytes of s, as a copy if s is longer.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.Clone(s[:maxText])
}

// BufferResponse delays the response until its whole body has arrived.
func (ex *Exchange) BufferResponse() { ex.Out.Buffered = true }

// MarkSent records that the call is being sent to the platform: the stage becomes StageDispatch, and ex.Sent SentUnanswered. Until
// SetUpstreamResponse is called, the outcome of the call is therefore unknown. The sender calls it, and behind Envoy the door.
func (ex *Exchange) MarkSent() {
	ex.Sent = SentUnanswered
	ex.enterStage(StageDispatch)
}

// SetUpstreamResponse sets the response to the status and headers received from the platform. The body is set separately.
func (ex *Exchange) SetUpstreamResponse(status int, header http.Header) {
	ex.Sent, ex.Event.UpstreamStatus = Answered, status
	ex.Response = &Response{Status: status, Header: header, Relayed: true}
}

// SimulateResponse records a as the platform's response. Dry runs use it in place of a call.
func (ex *Exchange) SimulateResponse(a *Response) { ex.Sent, ex.Response = Answered, a }

// MarkInterrupted removes the platform's response because it ended early. The outcome of the call is then unknown, as if no response had
// been received.
func (ex *Exchange) MarkInterrupted() { ex.Response, ex.Sent = nil, SentUnanswered }

// Delivery is the delivery status of a response.
type Delivery uint8

const (
	// Undelivered means that the response did not reach the caller. A repeat of the request receives the resource that it created.
	Undelivered Delivery = iota
	// Delivered means that the response reached the caller, or that its loss was not noticed.
	Delivered
)

// AwaitsDelivery reports whether the intent of the call stays open until Deliver is called. This applies to nested calls, whose response is
// only part of the caller's response, and to calls through Envoy, which may give up on the response.
func (ex *Exchange) AwaitsDelivery() bool { return ex.Progress.Nested || ex.In.Door == DoorExtProc }

// Undelivered returns the calls that await delivery: the exchange itself or, for a legacy request, its create calls. Deliver ends their
// intents.
func (ex *Exchange) Undelivered() []*Exchange {
	if ex.Idempotency != nil && ex.AwaitsDelivery() {
		return []*Exchange{ex}
	}
	return ex.Translation.creates
}

// Deliver ends the intents of the calls that await delivery. A failed response counts as Undelivered for all of them.
func (ex *Exchange) Deliver(ctx context.Context, d Delivery) {
	if ex.Response.Status >= http.StatusInternalServerError || ex.Response.Failed {
		d = Undelivered
	}
	for _, c := range ex.Undelivered() {
		ex.Ports.Intents.Deliver(ctx, c, d)
	}
}

// SetBodySource sets the reader of the inbound request's body. [ReadBody] reads it after the Headers part.
func (ex *Exchange) SetBodySource(body io.Reader) { ex.In.Source = body }

// SetBody sets the complete body of the inbound request, if the door has received it before the Body part; see also SetBodySource.
func (ex *Exchange) SetBody(body []byte) { ex.In.Body, ex.Event.BytesIn = body, int64(len(body)) }

// methodLabel maps unusual methods to "other" to bound the number of metric labels.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return m
	default:
		return "other"
	}
}
