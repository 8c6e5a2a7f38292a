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
	"github.com/tollgate-dev/tollgate/policies/effective"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// The doors, as events name them.
const (
	DoorHTTP    = "http"
	DoorExtProc = "envoy"
)

// Inbound is a request as a door received it. No filter changes it.
type Inbound struct {
	Door   string // DoorHTTP or DoorExtProc
	Method string
	// Progress and Query are the two halves of the request target, raw. Of a request to
	// the host name of a load-balanced endpoint, Path is the one that leads there.
	Path, Query string
	// Host is the target of the request, a name or an address, perhaps with a port.
	Host string
	// Major and Minor are the HTTP version.
	Major, Minor int
	Header       http.Header
	// Length is the declared body length, -1 when none was declared.
	Length int64
	// Body is the whole body; nil in the head part where it has not arrived yet.
	Body []byte
	// Source is where the body is read from once the head has passed; nil when
	// Body is all of it.
	Source io.Reader
	// Oversize is set by the reader that stopped at the cap, Broken by one whose
	// peer did not send the whole body.
	Oversize, Truncated bool
	// Peer is the address of the caller, without port: that of the connection, or
	// the one that a balancer named.
	Peer string
	// Certificates are the caller's own, whose key it has proven to have, and those that it
	// was sent with; nil without one, and where a door cannot know.
	Certificates []*x509.Certificate
	// LimitError is the refusal of a request whose connection is over a bound; nil for others.
	// Admit returns it, but not for a call that lowers costs.
	LimitError error
	// Received is when the request arrived.
	Received time.Time
	// Authenticated is when the caller has presented its token, where that was before: at the login of a session. It is zero otherwise.
	Authenticated time.Time
}

// Outbound is the request to the platform, built from parsed values.
type Outbound struct {
	Method string
	// Progress is escaped, Query encoded.
	Path, Query string
	Header      http.Header
	Body        []byte
	// Source is a body that is not held, of Length bytes, -1 if that is not known;
	// nil when Body is all of it. It is closed if it is an io.Closer.
	Source io.Reader
	Length int64
	// Stream says that the answer is an event stream: each part of it is passed on
	// as it comes.
	Stream bool
	// Tunnel says that the request asks for a WebSocket.
	Tunnel bool
	// Resent reports that the platform refused Body, and that the body before Extend was sent.
	Resent bool
	// Buffered says that the answer's body must be seen before it leaves: it is
	// read whole, and an answer that breaks off is none.
	Buffered bool
}

// Target returns path and query as one request target.
func (o *Outbound) Target() string {
	if o.Query == "" {
		return o.Path
	}
	return o.Path + "?" + o.Query
}

// QueriedAtState is how far an exchange has come towards the platform.
type SendState uint8

const (
	// NotSent means that the platform has seen nothing of the call.
	NotSent SendState = iota
	// SentUnanswered means that the call was sent and no usable answer was received: it
	// may have been carried out.
	SentUnanswered
	// Answered means that the platform's answer was received, as far as it has to
	// be seen.
	Answered
)

// Exchange is one request and its answer on their way through the chain. It
// belongs to one goroutine at a time. Each field, and each field of its parts, is
// assigned by one package.
type Exchange struct {
	In  Inbound
	Out Outbound
	// Ports are where the filters' effects go.
	Ports *Ports
	// pipeline is the configuration that the exchange runs under.
	pipeline *Pipeline

	// RequestID is the caller's X-Request-Id or a fresh one; DecisionID names
	// the exchange in explanations and is always fresh.
	RequestID, DecisionID string
	Dialect               route.Dialect
	// Route is nil while the request is unmatched.
	Route  *route.Route
	Params map[string]string
	// Query holds the request's parameters as parsed; of a v2 call, those
	// that the operation knows.
	Query url.Values
	// Operation is the v2 operation; nil for a legacy request.
	Operation *schema.Operation
	Caller    *identity.Caller
	// Tenant is the caller's organisation; for a caller without a key, the one
	// that answers it, nil for none.
	Tenant *Tenant
	Limit  *ratelimit.Decision

	Response *Response
	Event    *telemetry.Event
	// Faults are the located messages of a refusal, if it has any.
	Faults []string
	// SendStateiedAt says whether the call has left.
	Sent SendState
	// Adopted is the id of the resource that a create made although its answer was
	// lost, "" unless it was found afterwards.
	Adopted string
	// Calls are the v2 calls that a legacy exchange became, in the order they
	// ended, at most maxCalls of them.
	Calls []*Exchange

	Progress    Progress
	Admission   Admission
	Translation Translation
	Body        Body
	Access      Access
	Evaluation  Evaluation
	Approval    Approval
	Cost        Cost
	// IdempotencypotencyState is the state of the call if it must not be made twice, nil if it may.
	Idempotency *IdempotencyState
	// auditSeq is the number of the call's intent in the audit log, 0 without one.
	auditSeq int64
}

// Rooms for stages, with which those of one v2 call need no other.
const (
	stagesOfRequest = 36
	stagesOfCall    = 20
)

// newExchange returns an empty exchange with its event, in one piece of memory, and room
// for stages.
func newExchange(stages int) *Exchange {
	x := new(struct {
		ex    Exchange
		event telemetry.Event
	})
	x.ex.Event, x.ex.Progress.stages = &x.event, make([]string, 0, stages)
	return &x.ex
}

// child begins the exchange of a v2 call that is made for the sake of ex.
func (ex *Exchange) child(op *schema.Operation, caller *identity.Caller, params map[string]string) *Exchange {
	c := newExchange(stagesOfCall)
	c.In, c.Ports, c.RequestID, c.DecisionID, c.Dialect = ex.In, ex.Ports, ex.RequestID, ex.DecisionID, route.V2
	c.Operation, c.Caller, c.Tenant, c.pipeline, c.Params, c.Progress.Nested, c.Admission.Slot = op, caller, ex.Tenant, ex.pipeline, params, true, ex.Admission.Slot
	c.Event.Dialect, c.Event.Operation = ex.Event.Dialect, op.ID
	c.Admission.provisional, c.Admission.mutates = ex.Admission.provisional, ex.Admission.mutates
	c.Out.Buffered = true
	return c
}

// callers returns who may call, nil if that is not configured.
func (ex *Exchange) callers() *Callers {
	if ex.pipeline == nil {
		return nil
	}
	return ex.pipeline.Callers
}

// enterStage makes a stage the one the exchange is in.
func (ex *Exchange) enterStage(stage string) { ex.Progress.stages = append(ex.Progress.stages, stage) }

// Stage returns the name of the stage entered last, "" before the first.
func (ex *Exchange) Stage() string {
	if len(ex.Progress.stages) == 0 {
		return ""
	}
	return ex.Progress.stages[len(ex.Progress.stages)-1]
}

// Stages returns the names of the stages entered so far: those of the request as
// a whole, and those of the v2 call it is.
func (ex *Exchange) Stages() (request, call []string) {
	if ex.Progress.callStart == 0 {
		return ex.Progress.stages, nil
	}
	return ex.Progress.stages[:ex.Progress.callStart-1], ex.Progress.stages[ex.Progress.callStart-1:]
}

// Target returns path and query of the v2 call that ex is.
func (ex *Exchange) Target() string {
	path, query := ex.PathAndQuery()
	if query == "" {
		return path
	}
	return path + "?" + query
}

// PathAndQuery returns the path of the v2 call that ex is, escaped, and its query, encoded.
func (ex *Exchange) PathAndQuery() (path, query string) {
	return expand(ex.Operation.Path, ex.Params), encodeQuery(ex.Query)
}

// HasIDayBody returns the body of a v2 call for people: with the id of its template, in place of which Doc may have the template's
// settings, and without the value of a secret. It is nil for a command, which may hold secrets.
func (ex *Exchange) DisplayBody() any {
	if row, _ := operation.Of(ex.Operation.ID); row.Verb == operation.VerbExec {
		return nil
	}
	if ex.Body.beforeTemplate != nil {
		return ex.Body.beforeTemplate
	}
	if body, isObject := ex.Body.Doc.(map[string]any); isObject {
		return effective.WithoutValue(ex.Operation.ID, body)
	}
	return ex.Body.Doc
}

// UpstreamObjectot returns an exchange with the fields that explanations read and no others. It
// may be kept and shown to operators: it has no body, header or query, because those
// hold secrets, and retains no configuration.
func (ex *Exchange) Snapshot() *Exchange {
	r := &struct {
		ex    Exchange
		event telemetry.Event
	}{event: *ex.Event}
	path, params := clip(ex.In.Path), ex.Params
	if c := ex.callers(); c != nil && c.Directory != nil && c.Directory.ContainsKey(unescaped(ex.In.Path)) {
		path, params = "", nil // they have a key
	}
	r.ex = Exchange{
		In: Inbound{Path: path}, Dialect: ex.Dialect, Operation: ex.Operation, Params: params, Caller: ex.Caller,
		Limit: ex.Limit, Event: &r.event, Sent: ex.Sent, Adopted: ex.Adopted,
		Progress: Progress{stages: slices.Clip(ex.Progress.stages), callStart: ex.Progress.callStart}, Body: Body{Labels: ex.Body.Labels, removedVars: ex.Body.removedVars, removedHeaders: ex.Body.removedHeaders},
		Access: Access{hiddenNotes: ex.Access.hiddenNotes}, Evaluation: Evaluation{Input: ex.inputForRecord(), Verdict: ex.Evaluation.Verdict},
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

// inputForRecord is the part of the policies' input to keep: the cost and the template, nil
// for neither.
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

// maxText bounds the kept part of a caller's string.
const maxText = 256

// clip returns the beginning of s; it does not retain the rest.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.Clone(s[:maxText])
}

// BufferResponse has the platform's answer seen whole before it leaves.
func (ex *Exchange) BufferResponse() { ex.Out.Buffered = true }

// MarkSent notes that the call is on its way to the platform.
func (ex *Exchange) MarkSent() {
	ex.Sent = SentUnanswered
	ex.enterStage(StageDispatch)
}

// ReadBodyreamResponse makes the head of a platform's answer the exchange's answer.
func (ex *Exchange) SetUpstreamResponse(status int, header http.Header) {
	ex.Sent, ex.Event.UpstreamStatus = Answered, status
	ex.Response = &Response{Status: status, Header: header, Relayed: true}
}

// SimulateResponse makes an answer that of the platform, which was not asked.
func (ex *Exchange) SimulateResponse(a *Response) { ex.Sent, ex.Response = Answered, a }

// MarkInterrupted notes that the platform's answer has broken off.
func (ex *Exchange) MarkInterrupted() { ex.Response, ex.Sent = nil, SentUnanswered }

// Delivery says whether an answer has been delivered to its caller.
type Delivery uint8

const (
	// Undelivered means that it has not: a repeat of the request gets what the request has created.
	Undelivered Delivery = iota
	// Delivered means that it has, or that nothing else is known.
	Delivered
)

// AwaitsDelivery reports whether the intent of a call goes on until Deliver ends it: the answer of a nested call is not yet
// the caller's, and Envoy may give up while the answer is on its way.
func (ex *Exchange) AwaitsDelivery() bool { return ex.Progress.Nested || ex.In.Door == DoorExtProc }

// Undelivered returns the calls whose intents Deliver ends.
func (ex *Exchange) Undelivered() []*Exchange {
	if ex.Idempotency != nil && ex.AwaitsDelivery() {
		return []*Exchange{ex}
	}
	return ex.Translation.creates
}

// Deliver ends the intents of these calls. The answer of a failed request delivers nothing.
func (ex *Exchange) Deliver(ctx context.Context, d Delivery) {
	if ex.Response.Status >= http.StatusInternalServerError || ex.Response.Failed {
		d = Undelivered
	}
	for _, c := range ex.Undelivered() {
		ex.Ports.Intents.Deliver(ctx, c, d)
	}
}

// SetBodySource has the body read from where it comes, once the head has passed.
func (ex *Exchange) SetBodySource(body io.Reader) { ex.In.Source = body }

// SetBody completes the request with its whole body.
func (ex *Exchange) SetBody(body []byte) { ex.In.Body, ex.Event.BytesIn = body, int64(len(body)) }

// methodLabel keeps caller-chosen words out of metrics.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return m
	default:
		return "other"
	}
}
