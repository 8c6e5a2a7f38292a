package filter

import (
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/translate"
)

// Inbound is a request as a door received it. No filter changes it.
type Inbound struct {
	// Door is "http" or "envoy".
	Door   string
	Method string
	// Path and Query are the two halves of the request target, raw.
	Path, Query string
	// Major and Minor are the HTTP version.
	Major, Minor int
	Header       http.Header
	// Length is the declared body length, -1 when none was declared.
	Length int64
	// Body is the whole body; nil in the head part of the Envoy door, where it
	// has not arrived yet.
	Body []byte
	// Oversize is set by a door that stopped reading at the cap, Broken by one
	// whose peer did not send the whole body.
	Oversize, Broken bool
	// Peer is the address of the connection, without port.
	Peer string
	// Received is when the request arrived.
	Received time.Time
}

// Outbound is what the platform gets, built from parsed values.
type Outbound struct {
	Method string
	// Path is escaped, Query encoded.
	Path, Query string
	Header      http.Header
	Body        []byte
	// Stream says that the answer is an event stream.
	Stream bool
}

// Target returns path and query as one request target.
func (o *Outbound) Target() string {
	if o.Query == "" {
		return o.Path
	}
	return o.Path + "?" + o.Query
}

// Answer is what goes back: a refusal, a local or translated answer, or the
// platform's.
type Answer struct {
	Status int
	Header http.Header
	// Body is the whole body; Stream, when not nil, is sent instead.
	Body   []byte
	Stream io.ReadCloser
	// Relayed marks an answer of the platform.
	Relayed bool
}

// Exchange is one request and its answer on their way through the chain. It
// belongs to one goroutine at a time.
type Exchange struct {
	In  Inbound
	Out Outbound

	// RequestID is the caller's X-Request-Id or a fresh one; DecisionID names
	// the exchange in explanations and is always fresh.
	RequestID, DecisionID string
	Dialect               route.Dialect
	// Route is nil while the request is unmatched.
	Route  *route.Route
	Params map[string]string
	// Query holds the request's parameters as parsed; of a v2 call, what of
	// them the operation knows.
	Query url.Values
	// Operation is the v2 operation; nil for a legacy request.
	Operation *schema.Operation
	Caller    *identity.Caller
	Limit     *ratelimit.Decision
	// Doc is the decoded body, meaningful when HasDoc.
	Doc    any
	HasDoc bool
	// Origin is the template a translator wrote into Doc, nil for none.
	Origin *translate.Origin
	// Input and Verdict are what the policies saw and said.
	Input   *policies.Input
	Verdict policies.Decision

	Answer *Answer
	Event  *telemetry.Event

	// trail is where the v2 calls of the exchange leave their notes; nil leaves
	// none.
	trail *Trail
	// misrouted is why the request matched nothing; raised only after the
	// caller was identified and counted.
	misrouted error
	// shared says that the call was admitted to the account's fair share.
	shared bool
	stages []Filter
	spare  [16]Filter
}

// NewExchange returns the exchange of a request, with its Event begun.
func NewExchange(in Inbound, event *telemetry.Event) *Exchange {
	ex := &Exchange{In: in, Dialect: route.DialectOf(in.Path), Event: event}
	ex.stages = ex.spare[:0]
	event.Start = in.Received
	event.Door = in.Door
	event.Dialect = string(ex.Dialect)
	event.Method = methodLabel(in.Method)
	event.Operation = "unmatched"
	event.Peer = in.Peer
	event.Agent = in.Header.Get("User-Agent")
	event.BytesIn = int64(len(in.Body))
	return ex
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

// Pipeline is one compiled configuration as the doors use it: immutable, taken
// once per exchange.
type Pipeline struct {
	Chain    *Chain
	Dispatch *Dispatch
	// Revision names the configuration.
	Revision string
}
