package extproc

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// phase is the kind of the next message that a session expects. A session never returns to an earlier phase.
type phase uint8

const (
	awaitHeaders phase = iota
	awaitBody
	awaitResponse
	awaitResponseBody
	finished
)

// session handles one HTTP request on one ext_proc stream.
type session struct {
	server   *Server
	pipeline *filter.Pipeline
	phase    phase
	ex       *filter.Exchange
	ctx      context.Context //nolint:containedctx // carries the span across phase messages
	// recorded is true after the exchange was recorded.
	recorded bool
	// delivery reports whether Envoy received the last reply. It is nil if no intent waits for this information.
	delivery filter.Delivery
}

// handle processes one message and returns the reply.
func (se *session) handle(ctx context.Context, req *extprocv3.ProcessingRequest) (*extprocv3.ProcessingResponse, error) {
	if se.ex != nil {
		se.ex.ResumeWork()
	}
	defer func() {
		if se.ex != nil {
			se.ex.PauseWork()
		}
	}()
	switch m := req.Request.(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		if se.phase != awaitHeaders {
			return nil, outOfOrder("request headers")
		}
		return se.requestHeaders(ctx, req, m.RequestHeaders)
	case *extprocv3.ProcessingRequest_RequestBody:
		if se.phase != awaitBody {
			return nil, outOfOrder("a request body")
		}
		return se.requestBody(m.RequestBody)
	case *extprocv3.ProcessingRequest_RequestTrailers:
		return se.requestTrailers(m.RequestTrailers)
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		return se.responseHeaders(req, m.ResponseHeaders)
	case *extprocv3.ProcessingRequest_ResponseBody:
		if se.phase != awaitResponseBody {
			return nil, outOfOrder("a response body")
		}
		return se.responseBody(m.ResponseBody)
	default:
		return nil, status.Errorf(codes.InvalidArgument, "unexpected message %T: check the processing mode of the filter", m)
	}
}

func outOfOrder(what string) error {
	return status.Errorf(codes.InvalidArgument, "%s received out of order: check the processing mode of the filter", what)
}

// requestHeaders starts the exchange and runs the headers part of the chain, so that only authenticated callers can keep a session waiting
// for a body.
func (se *session) requestHeaders(
	ctx context.Context, req *extprocv3.ProcessingRequest, h *extprocv3.HttpHeaders,
) (*extprocv3.ProcessingResponse, error) {
	in, err := inbound(req, h)
	if err != nil {
		return nil, err
	}
	in.Received = se.server.Recorder.Now()
	se.ex = se.pipeline.NewExchange(in)
	se.ctx, _ = se.server.Recorder.Begin(traced(ctx), in.Header, in.Peer)
	if err := checkFilter(req); err != nil {
		return nil, err
	}
	if !se.pipeline.Chain.RunHeaders(se.ctx, se.ex) {
		return se.immediate(), nil
	}
	if !h.EndOfStream {
		se.phase = awaitBody
		return headersOnly(se.ex.In.Header), nil
	}
	return se.completeRequest(in.Header, requestReply), nil
}

func requestReply(c *extprocv3.CommonResponse) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{
		RequestHeaders: &extprocv3.HeadersResponse{Response: c},
	}}
}

// headersOnly lets Envoy continue to the body of a request. It removes all headers, so that a request forwarded by mistake would carry
// neither a credential nor a destination.
func headersOnly(have http.Header) *extprocv3.ProcessingResponse {
	m := mutation(have, nil)
	set(m, ":path", "/")
	return requestReply(&extprocv3.CommonResponse{HeaderMutation: m})
}

// requestBody completes the request. The body is complete, because checkFilter requires a filter that buffers bodies.
func (se *session) requestBody(b *extprocv3.HttpBody) (*extprocv3.ProcessingResponse, error) {
	se.ex.SetBody(b.Body)
	return se.completeRequest(nil, func(c *extprocv3.CommonResponse) *extprocv3.ProcessingResponse {
		body := se.ex.Out.Body
		set(c.HeaderMutation, "content-length", strconv.Itoa(len(body)))
		c.BodyMutation = &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{Body: body}}
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{
			RequestBody: &extprocv3.BodyResponse{Response: c},
		}}
	}), nil
}

// requestTrailers removes the trailers that follow a body. Without a body, Envoy sends them instead of it, and no longer accepts changes of
// the headers, so that the request must be refused.
func (se *session) requestTrailers(t *extprocv3.HttpTrailers) (*extprocv3.ProcessingResponse, error) {
	switch se.phase {
	case awaitBody:
		se.ex.SetBody(nil)
		se.pipeline.Chain.Fail(se.ex, filter.StageSize, problem.BadRequest.New("the request has trailers, but no body"))
		return se.immediate(), nil
	case awaitResponse:
		have, _ := readHeaders(t.GetTrailers())
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestTrailers{
			RequestTrailers: &extprocv3.TrailersResponse{HeaderMutation: mutation(have, nil)},
		}}, nil
	default:
		return nil, outOfOrder("request trailers")
	}
}

// completeRequest runs the rest of the request phase. It returns the reply for the current phase, with the mutation that replaces Envoy's
// headers with the headers of Out. If a stage needs the complete response, the processor calls the platform itself, because this costs less than
// exchanging two more messages with Envoy.
func (se *session) completeRequest(
	have http.Header, wrap func(*extprocv3.CommonResponse) *extprocv3.ProcessingResponse,
) *extprocv3.ProcessingResponse {
	ex := se.ex
	if !se.pipeline.Chain.RunBody(se.ctx, ex) {
		return se.immediate()
	}
	if ex.Out.Buffered {
		se.pipeline.Chain.Dispatch(se.ctx, ex)()
		return se.immediate()
	}
	auth, err := se.pipeline.Upstream.Authorization(ex.Caller.Org)
	if err != nil {
		se.pipeline.Chain.Fail(ex, filter.StageDispatch, err)
		return se.immediate()
	}
	ex.MarkSent()
	se.phase = awaitResponse
	want := maps.Clone(ex.Out.Header)
	want["Authorization"] = []string{auth}
	se.server.Recorder.Inject(se.ctx, want)
	common := &extprocv3.CommonResponse{HeaderMutation: mutation(have, want)}
	set(common.HeaderMutation, ":path", ex.Out.Target())
	return wrap(common)
}

// responseHeaders handles the headers of a response, which comes from the platform or was generated by Envoy. For an error of the platform,
// it requests the body, because the chain rewrites the error. For all other responses, it filters the headers and does not request the
// body.
func (se *session) responseHeaders(req *extprocv3.ProcessingRequest, h *extprocv3.HttpHeaders) (*extprocv3.ProcessingResponse, error) {
	header, pseudo := readHeaders(h.Headers)
	code, err := strconv.Atoi(pseudo[":status"])
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "response headers do not contain a status")
	}
	details := attributes(req)[responseDetails].GetStringValue()
	ours := details != "" && details != viaUpstream
	switch {
	case ours && se.phase == awaitHeaders:
		// The request was refused before it reached this filter, for example an upgrade.
		se.phase = finished
		return responseReply(nil), nil
	case ours && se.phase == awaitBody:
		return se.withoutBody(code, details), nil
	case se.phase != awaitResponse:
		return nil, outOfOrder("response headers")
	case ours:
		return se.withoutAnswer(code, details), nil
	}
	ex := se.ex
	ex.Event.UpstreamLatency = se.server.Recorder.Now().Sub(ex.In.Received)
	se.pipeline.Upstream.Credential(ex.Caller.Org).ScrubHeader(header)
	ex.SetUpstreamResponse(code, header)
	if code >= http.StatusBadRequest && !h.EndOfStream {
		se.phase = awaitResponseBody
		reply := responseReply(mutation(header, nil)) // without headers, like a request whose body has not arrived
		reply.ModeOverride = withAnswer()
		return reply, nil
	}
	se.pipeline.Chain.RunResponse(se.ctx, ex)
	se.phase = finished
	if !ex.Response.Relayed || ex.Adopted != "" || ex.Response.Status >= http.StatusBadRequest {
		return immediate(ex.Response), nil
	}
	return responseReply(mutation(header, ex.Response.Header)), nil
}

func responseReply(m *extprocv3.HeaderMutation) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{
		ResponseHeaders: &extprocv3.HeadersResponse{Response: &extprocv3.CommonResponse{HeaderMutation: m}},
	}}
}

// withoutBody ends a request whose body was too large for Envoy's buffer or too slow. The stage "limit size" produces the refusal.
func (se *session) withoutBody(code int, details string) *extprocv3.ProcessingResponse {
	in := &se.ex.In
	in.Oversize = code == http.StatusRequestEntityTooLarge
	in.Truncated = !in.Oversize
	if se.pipeline.Chain.RunBody(se.ctx, se.ex) {
		se.pipeline.Chain.Fail(se.ex, filter.StageSize, fmt.Errorf("body refused with status %d (%s), but accepted by the gateway", code, details))
	}
	return se.immediate()
}

// slowBody ends a request whose body did not arrive within BodyTimeout.
func (se *session) slowBody() *extprocv3.ProcessingResponse {
	se.ex.ResumeWork()
	defer se.ex.PauseWork()
	return se.withoutBody(http.StatusRequestTimeout, errSlowBody.Error())
}

// withoutAnswer ends a request to which the platform did not respond.
func (se *session) withoutAnswer(code int, details string) *extprocv3.ProcessingResponse {
	cause := context.Canceled
	if code == http.StatusGatewayTimeout || code == http.StatusRequestTimeout {
		cause = context.DeadlineExceeded
	}
	se.pipeline.Chain.Fail(se.ex, filter.StageDispatch, fmt.Errorf("status %d (%s) from Envoy instead of the platform: %w", code, details, cause))
	return se.immediate()
}

// responseBody completes an error response. If the body exceeds Envoy's buffer, only its beginning is available.
func (se *session) responseBody(b *extprocv3.HttpBody) (*extprocv3.ProcessingResponse, error) {
	se.ex.Response.Body = se.pipeline.Upstream.Credential(se.ex.Caller.Org).Scrub(b.Body)
	return se.immediate(), nil
}

// immediate ends the exchange with the response of the chain.
func (se *session) immediate() *extprocv3.ProcessingResponse {
	se.pipeline.Chain.RunResponse(se.ctx, se.ex)
	se.phase = finished
	return immediate(se.ex.Response)
}

// fault records a protocol error, so that the error appears in the gateway's log as well as in Envoy's log.
func (se *session) fault(err error) error {
	if se.ex != nil {
		se.ex.Event.Outcome, se.ex.Event.Cause = telemetry.OutcomeFault, err
	}
	return err
}

// mustDeliver reports whether an intent of the exchange stays pending until the delivery of the reply to Envoy is known.
func (se *session) mustDeliver() bool { return se.ex != nil && len(se.ex.Undelivered()) > 0 }

// record records the exchange once, and releases its memory.
func (se *session) record() {
	if se.ex == nil || se.recorded {
		return
	}
	se.recorded = true
	se.server.Recorder.Record(se.ctx, se.ex.Event)
	se.ex.ReleaseMemory()
}

// finish ends the exchange once. If the session ends early, Envoy cancelled the request, usually because the caller disconnected.
func (se *session) finish() {
	if se.ex == nil {
		return
	}
	if se.phase != finished {
		// The response part must run for every stage whose request part has run.
		e := se.ex.Event
		fault, cause := e.Outcome == telemetry.OutcomeFault, e.Cause
		se.pipeline.Chain.Fail(se.ex, filter.StageDispatch, context.Canceled)
		se.pipeline.Chain.RunResponse(se.ctx, se.ex)
		e.Outcome = telemetry.OutcomeCanceled
		if fault {
			e.Outcome, e.Cause = telemetry.OutcomeFault, cause
		}
	}
	se.record()
	se.ex.Deliver(context.WithoutCancel(se.ctx), se.delivery)
	se.ex = nil
}
