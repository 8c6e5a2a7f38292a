package filter

import (
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/translate"
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
	// Path and Query are the two halves of the request target, raw. Of a request to
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
	Oversize, Broken bool
	// Peer is the address of the caller, without port: that of the connection, or
	// the one that a balancer named.
	Peer string
	// Certificates are the caller's own, whose key it has proven to have, and those that it
	// was sent with; nil without one, and where a door cannot know.
	Certificates []*x509.Certificate
	// Excess is the refusal of a request whose connection is over a bound; nil for others.
	// Admit returns it, but not for a call that lowers costs.
	Excess error
	// Received is when the request arrived.
	Received time.Time
	// Presented is when the caller has presented its token, where that was before: at the login of a session. It is zero otherwise.
	Presented time.Time
}

// Outbound is the request to the platform, built from parsed values.
type Outbound struct {
	Method string
	// Path is escaped, Query encoded.
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
	// Whole says that the answer's body must be seen before it leaves: it is
	// read whole, and an answer that breaks off is none.
	Whole bool
}

// Target returns path and query as one request target.
func (o *Outbound) Target() string {
	if o.Query == "" {
		return o.Path
	}
	return o.Path + "?" + o.Query
}

// Sent is how far an exchange has come towards the platform.
type Sent uint8

const (
	// NotSent means that the platform has seen nothing of the call.
	NotSent Sent = iota
	// SentOut means that the call was sent and no usable answer was received: it
	// may have been carried out.
	SentOut
	// Answered means that the platform's answer was received, as far as it has to
	// be seen.
	Answered
)

// Exchange is one request and its answer on their way through the chain. It
// belongs to one goroutine at a time.
type Exchange struct {
	In  Inbound
	Out Outbound
	// Ports are where the filters' effects go.
	Ports *Ports
	// callers are those of the Pipeline.
	callers *Callers

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
	// Doc is the decoded body, meaningful when HasDoc.
	Doc    any
	HasDoc bool
	// Origin is the template a translator wrote into Doc, nil for none.
	Origin *translate.Origin
	// Input and Verdict are the policies' input and decision; unpriced is why there was no
	// price list to see.
	Input    *policies.Input
	Verdict  policies.Decision
	unpriced error

	Answer *Answer
	Event  *telemetry.Event
	// Faults are the located messages of a refusal, if it has any.
	Faults []string

	// Sent says whether the call has left.
	Sent Sent
	// Adopted is the id of the resource that a create made although its answer was
	// lost, "" unless it was found afterwards.
	Adopted string
	// Calls are the v2 calls that a legacy exchange became, in the order they
	// ended, at most maxCalls of them.
	Calls []*Exchange

	// hidden maps the absent ids that were put in the place of others to those; foreign
	// says why, for operators.
	hidden  map[string]string
	foreign []string
	// wish is the common part of repeats of a legacy create, "" for its body.
	wish string
	// labels are those of the resource that the call makes.
	labels spend.Labels
	// once is the state of the call if it must not be made twice, nil if it may.
	once *once
	// grant is the approval of the call, nil for nothing; asks names the question
	// that its refusal is, "" before that was asked.
	grant *grant
	asks  string
	// owner is the owner of the object, nil while that was not asked.
	owner *spend.Owner
	// audited is the number of the call's intent in the audit log, 0 without one.
	audited int64
	// held is the ledger's reservation for the call, nil for nothing.
	held *reservation
	// ran is the answer's account of a run, nil before it was read to its end.
	ran *ran
	// usageAsked says that the gateway, and not the caller, has asked for its account.
	usageAsked bool
	// unknown are the members of the body that were set aside, nil for none.
	unknown map[string]any
	// named is the body before its template's values were written into it,
	// nil when none were.
	named any
	// checks counts how often a body was held against the schema.
	checks int
	// asked names the operations of a legacy request, nil before its translator has read
	// it.
	asked []string
	// badToken says that the caller's token was not accepted.
	badToken bool
	// lost are the fields of a legacy request that v2 has no place for.
	lost []string
	// misrouted is why the request matched nothing; raised only after the
	// caller was identified and counted.
	misrouted error
	// withheld are the variables that OwnKeys took out of the body.
	withheld []string
	// nested says that the exchange is part of another one, counted that it was taken
	// from the caller's quotas with that one, and uncounted that the store was away
	// then. Calls under way at once begin with uncounted: Limit changes as each ends.
	nested, counted, uncounted bool
	// slot is its place in the concurrent work, nil without one.
	slot *overload.Slot
	// memory is that of a body that was read behind the head, nil without one.
	memory *held
	// shared says that the call was admitted to the account's fair share.
	shared bool
	// entered counts the filters entered in each part of the chain.
	entered [parts]int
	// stages names the stages entered, in order. call is one more than how many
	// of them came before the call part, 0 until that began.
	stages []string
	call   int
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
	x.ex.Event, x.ex.stages = &x.event, make([]string, 0, stages)
	return &x.ex
}

// child begins the exchange of a v2 call that is made for the sake of ex.
func (ex *Exchange) child(op *schema.Operation, caller *identity.Caller, params map[string]string) *Exchange {
	c := newExchange(stagesOfCall)
	c.In, c.Ports, c.RequestID, c.DecisionID, c.Dialect = ex.In, ex.Ports, ex.RequestID, ex.DecisionID, route.V2
	c.Operation, c.Caller, c.Tenant, c.callers, c.Params, c.nested, c.slot = op, caller, ex.Tenant, ex.callers, params, true, ex.slot
	c.Event.Dialect, c.Event.Operation = ex.Event.Dialect, op.ID
	c.uncounted = ex.uncounted
	c.Out.Whole = true
	return c
}

// enter makes a stage the one the exchange is in.
func (ex *Exchange) enter(stage string) { ex.stages = append(ex.stages, stage) }

// Stage returns the name of the stage entered last, "" before the first.
func (ex *Exchange) Stage() string {
	if len(ex.stages) == 0 {
		return ""
	}
	return ex.stages[len(ex.stages)-1]
}

// Stages returns the names of the stages entered so far: those of the request as
// a whole, and those of the v2 call it is.
func (ex *Exchange) Stages() (request, call []string) {
	if ex.call == 0 {
		return ex.stages, nil
	}
	return ex.stages[:ex.call-1], ex.stages[ex.call-1:]
}

// Target returns path and query of the v2 call that ex is.
func (ex *Exchange) Target() string {
	path := expand(ex.Operation.Path, ex.Params)
	if len(ex.Query) == 0 {
		return path
	}
	return path + "?" + encodeQuery(ex.Query)
}

// Named returns the body of a v2 call as it names its template; in Doc, values that the
// template supplied may stand in its place.
func (ex *Exchange) Named() any {
	if ex.named != nil {
		return ex.named
	}
	return ex.Doc
}

// Record returns an exchange with the fields that explanations read and no others. It
// may be kept and shown to operators: it has no body, header or query, because those
// hold secrets, and retains no configuration.
func (ex *Exchange) Record() *Exchange {
	r := &struct {
		ex    Exchange
		event telemetry.Event
	}{event: *ex.Event}
	r.ex = Exchange{
		In: Inbound{Path: clip(ex.In.Path)}, Dialect: ex.Dialect, Operation: ex.Operation, Params: ex.Params, Caller: ex.Caller,
		Limit: ex.Limit, Input: ex.inputForRecord(), Verdict: ex.Verdict, Event: &r.event, Sent: ex.Sent, Adopted: ex.Adopted,
		labels: ex.labels, foreign: ex.foreign, held: ex.held.forRecord(), withheld: ex.withheld,
		stages: slices.Clip(ex.stages), call: ex.call,
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
		r.ex.Calls[i] = call.Record()
	}
	return &r.ex
}

// inputForRecord is the part of the policies' input to keep: the cost and the template, nil
// for neither.
func (ex *Exchange) inputForRecord() *policies.Input {
	in := ex.Input
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

// Leave notes that the call is on its way to the platform.
func (ex *Exchange) Leave() {
	ex.Sent = SentOut
	ex.enter(StageDispatch)
}

// Receive makes the head of a platform's answer the exchange's answer.
func (ex *Exchange) Receive(status int, header http.Header) {
	ex.Sent, ex.Event.UpstreamStatus = Answered, status
	ex.Answer = &Answer{Status: status, Header: header, Relayed: true}
}

// methodLabel keeps caller-chosen words out of metrics.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return m
	default:
		return "other"
	}
}
