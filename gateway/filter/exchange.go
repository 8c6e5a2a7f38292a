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

// The values of Inbound.Door, which events contain too.
const (
	DoorHTTP    = "http"
	DoorExtProc = "envoy"
)

// Inbound is a request as the gateway received it. Filters must not change it.
type Inbound struct {
	Door   string // DoorHTTP or DoorExtProc
	Method string
	// Path and Query are the path and the query of the request target, unparsed. For a request to the host name of a load-balanced endpoint,
	// Path is the equivalent path under BalancedPath.
	Path, Query string
	// Host is the host of the request, possibly with a port.
	Host string
	// Major and Minor are the HTTP version.
	Major, Minor int
	Header       http.Header
	// Length is the declared length of the body, or -1 if none was declared.
	Length int64
	// Body is the complete body. It is nil until the body has been received.
	Body []byte
	// Source is the reader of the body, used after the Headers part. It is nil if Body is complete.
	Source io.Reader
	// Oversize reports that reading stopped at the size limit, Truncated that the client did not send the whole body.
	Oversize, Truncated bool
	// Peer is the caller's IP address without port: the address of the connection, or the one forwarded by a trusted load balancer.
	Peer string
	// Certificates contains the verified client certificate, followed by the other certificates that the client sent. It is nil if the client
	// sent no certificate or the gateway has no access to it.
	Certificates []*x509.Certificate
	// LimitError is the refusal for requests on a connection that exceeds a limit, nil for other connections. LimitConcurrency returns it for
	// calls that do not reduce costs.
	LimitError error
	// Received is the time when the request arrived.
	Received time.Time
	// Authenticated is the time of the login at which a session's token was presented. It is zero for requests with their own credential.
	Authenticated time.Time
}

// Outbound is the request to the platform, built from parsed values.
type Outbound struct {
	Method string
	// Path and Query are escaped.
	Path, Query string
	Header      http.Header
	Body        []byte
	// Source is a reader of the body, which is read while the request is sent. It is nil if Body is the complete body. Length is the length of
	// the body in Source, or -1 if it is unknown. If Source implements io.Closer, it is closed after use.
	Source io.Reader
	Length int64
	// Stream reports that the response is an event stream. Its parts are forwarded immediately.
	Stream bool
	// Tunnel reports that the request asks for a WebSocket.
	Tunnel bool
	// Resent reports that the platform refused the body set by ExtendBody, and that the previous body was sent.
	Resent bool
	// Buffered delays the response until its whole body has been received, so that an interrupted response can be replaced with an error.
	Buffered bool
}

// Target returns the path and query as a request target.
func (o *Outbound) Target() string {
	if o.Query == "" {
		return o.Path
	}
	return o.Path + "?" + o.Query
}

// SendState is the progress of a call to the platform.
type SendState uint8

const (
	// NotSent means that the platform has not received any part of the call.
	NotSent SendState = iota
	// SentUnanswered means that the call was sent but no usable response was received. The platform may have carried it out.
	SentUnanswered
	// Answered means that the response was received, completely if Out.Buffered is set.
	Answered
)

// Exchange holds one request, its response, and the state that the filters keep for the request. It is not safe for concurrent use. Each
// field is set by only one package; test/layering checks this.
type Exchange struct {
	In  Inbound
	Out Outbound
	// Ports contains the interfaces through which filters cause side effects.
	Ports *Ports
	// pipeline is the configuration under which the exchange runs.
	pipeline *Pipeline

	// RequestID is the caller's X-Request-Id, or DecisionID if that header is missing or malformed, or contains a caller's key. DecisionID is a
	// new ID that identifies the exchange in explanations.
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
	// Adopted is the ID of the created resource if the resource was found after the response to the call had been lost, and "" otherwise.
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

// containsKey reports whether text contains a key of a caller, or the credential in the request's Authorization header, which may be a
// token. It is false without a pipeline.
func (ex *Exchange) containsKey(text string) bool {
	p := ex.pipeline
	if p == nil || p.Callers == nil || p.Callers.Directory == nil {
		return false
	}
	sent, _ := bearer(ex.In.Header.Get("Authorization"), route.GraphQL)
	return sent != "" && strings.Contains(text, sent) || p.Callers.Directory.ContainsKey(text)
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

// Stages returns the names of the stages that the exchange has reached, in two lists: the stages of the request, and the stages of the v2
// call.
func (ex *Exchange) Stages() (request, call []string) {
	if ex.Progress.callStart == 0 {
		return ex.Progress.stages, nil
	}
	return ex.Progress.stages[:ex.Progress.callStart-1], ex.Progress.stages[ex.Progress.callStart-1:]
}

// Target returns the path and query of the v2 call as a request target, with the IDs that the caller sent in place of unused ones.
func (ex *Exchange) Target() string {
	target, query := ex.PathAndQuery()
	if query != "" {
		target += "?" + query
	}
	for other, id := range ex.Access.hidden {
		target = strings.ReplaceAll(target, other, url.QueryEscape(id))
	}
	return target
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

// Snapshot returns a copy of the exchange that may be retained and shown to operators. The copy contains no body, headers or query, which
// may contain secrets, and does not refer to the configuration.
func (ex *Exchange) Snapshot() *Exchange {
	r := &struct {
		ex    Exchange
		event telemetry.Event
	}{event: *ex.Event}
	path, params := clip(ex.In.Path), ex.Params
	if !ex.Progress.keylessPath && ex.containsKey(unescaped(ex.In.Path)) {
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

// MarkSent records that the call is being sent to the platform. It enters StageDispatch and sets ex.Sent to SentUnanswered. The outcome of
// the call counts as unknown until SetUpstreamResponse is called. A [Sender] calls MarkSent before it sends a call; the ext_proc server
// calls it before Envoy sends a call.
func (ex *Exchange) MarkSent() {
	ex.Sent = SentUnanswered
	ex.enterStage(StageDispatch)
}

// SetUpstreamResponse sets the response to the status and headers received from the platform. The body is set separately.
func (ex *Exchange) SetUpstreamResponse(status int, header http.Header) {
	ex.Sent, ex.Event.UpstreamStatus = Answered, status
	ex.Response = &Response{Status: status, Header: header, Relayed: true}
}

// SimulateResponse sets the platform's response to the given one. Dry runs use it in place of a call.
func (ex *Exchange) SimulateResponse(a *Response) { ex.Sent, ex.Response = Answered, a }

// MarkInterrupted removes the platform's response from the exchange because the response ended early. The outcome of the call is then
// unknown.
func (ex *Exchange) MarkInterrupted() { ex.Response, ex.Sent = nil, SentUnanswered }

// Delivery reports whether the caller received a response.
type Delivery uint8

const (
	// Undelivered means that the response did not reach the caller. If the request is repeated, the repeat receives the resource that the
	// first request created.
	Undelivered Delivery = iota
	// Delivered means that the response reached the caller, as far as the gateway knows.
	Delivered
	// DeliveryPending means that the response has not been sent yet.
	DeliveryPending
)

// Undelivered returns the calls with an intent: the v2 calls of a legacy request or, for any other request, the exchange itself. Deliver
// ends the intents of creates. They outlive the settlement, during which the caller can disconnect and the gateway can end.
func (ex *Exchange) Undelivered() []*Exchange {
	if ex.Idempotency != nil {
		return []*Exchange{ex}
	}
	return ex.Translation.creates
}

// Deliver ends the intents of all calls returned by [Exchange.Undelivered]. d reports whether the caller received the response. If the
// response has a 5xx status or its Failed field is set, Deliver records [Undelivered] instead of d.
func (ex *Exchange) Deliver(ctx context.Context, d Delivery) {
	if ex.Response.Status >= http.StatusInternalServerError || ex.Response.Failed {
		d = Undelivered
	}
	for _, c := range ex.Undelivered() {
		_ = ex.Ports.Intents.End(ctx, c, nil, d) // writes asynchronously
	}
}

// SetBodySource sets the reader from which the [ReadBody] stage reads the body of the inbound request. ReadBody runs after the stages of
// Headers.
func (ex *Exchange) SetBodySource(body io.Reader) { ex.In.Source = body }

// SetBody sets the complete body of the inbound request. Servers that receive the whole body before the stages of Body run call SetBody;
// other servers call SetBodySource.
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
