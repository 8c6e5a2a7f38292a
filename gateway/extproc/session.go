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
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// phase is the message that a session waits for. It never goes back.
type phase uint8

const (
	awaitHeaders phase = iota
	awaitBody
	awaitResponse
	awaitResponseBody
	finished
)

// session is one HTTP request seen through one ext_proc stream.
type session struct {
	server   *Server
	pipeline *filter.Pipeline
	phase    phase
	ex       *filter.Exchange
	ctx      context.Context //nolint:containedctx // carries the span from one phase message to the next
	// headed says that the head part of the chain has run, recorded that the exchange was recorded.
	headed, recorded bool
	// delivery reports whether Envoy has taken the last answer, if an intent awaits that.
	delivery filter.Delivery
}

// handle answers one message. Between two, the exchange waits for Envoy.
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
	return status.Errorf(codes.InvalidArgument, "%s out of order: check the processing mode of the filter", what)
}

// requestHeaders begins the exchange. The head part runs now if the headers
// say how long the body is; otherwise it waits for the body, because size is
// judged before everything else.
func (se *session) requestHeaders(ctx context.Context, req *extprocv3.ProcessingRequest, h *extprocv3.HttpHeaders) (*extprocv3.ProcessingResponse, error) {
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
	if h.EndOfStream || in.Length >= 0 {
		se.headed = true
		if !se.pipeline.Chain.RunHeaders(se.ctx, se.ex) {
			return se.immediate(), nil
		}
	}
	if !h.EndOfStream {
		se.phase = awaitBody
		return headersOnly(se.ex.In.Header), nil
	}
	return se.judge(in.Header, func(c *extprocv3.CommonResponse) *extprocv3.ProcessingResponse {
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{
			RequestHeaders: &extprocv3.HeadersResponse{Response: c},
		}}
	}), nil
}

// headersOnly lets Envoy go on to the body of a request whose headers are have.
// Until that is judged the request is stripped bare: were Envoy to forward it
// without asking again, it would carry no credential to nowhere.
func headersOnly(have http.Header) *extprocv3.ProcessingResponse {
	m := mutation(have, nil)
	set(m, ":path", "/")
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{
		RequestHeaders: &extprocv3.HeadersResponse{Response: &extprocv3.CommonResponse{HeaderMutation: m}},
	}}
}

// requestBody completes the request. A body that does not end the stream is
// whole all the same, since checkFilter has seen to that: trailers follow, which
// are not read.
func (se *session) requestBody(b *extprocv3.HttpBody) (*extprocv3.ProcessingResponse, error) {
	se.ex.SetBody(b.Body)
	if !se.headed && !se.pipeline.Chain.RunHeaders(se.ctx, se.ex) {
		return se.immediate(), nil
	}
	return se.judge(nil, func(c *extprocv3.CommonResponse) *extprocv3.ProcessingResponse {
		body := se.ex.Out.Body
		set(c.HeaderMutation, "content-length", strconv.Itoa(len(body)))
		c.BodyMutation = &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{Body: body}}
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{
			RequestBody: &extprocv3.BodyResponse{Response: c},
		}}
	}), nil
}

// judge runs the rest of the request phase and answers with the difference
// between the headers Envoy has and Out, wrapped for the phase at hand. A call whose
// answer must be seen whole is made here: to have Envoy make it takes two more messages
// with their replies, which cost more than the call.
func (se *session) judge(have http.Header, wrap func(*extprocv3.CommonResponse) *extprocv3.ProcessingResponse) *extprocv3.ProcessingResponse {
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

// responseHeaders sees an answer: the platform's, or Envoy's own when it gave
// up. Of the platform's, errors are rewritten, which takes their body; everything
// else passes with its headers filtered and its body unseen.
func (se *session) responseHeaders(req *extprocv3.ProcessingRequest, h *extprocv3.HttpHeaders) (*extprocv3.ProcessingResponse, error) {
	header, pseudo := readHeaders(h.Headers)
	code, err := strconv.Atoi(pseudo[":status"])
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "response headers without a status")
	}
	details := attributes(req)[responseDetails].GetStringValue()
	ours := details != "" && details != viaUpstream
	switch {
	case ours && se.phase == awaitHeaders:
		// Refused before it came to this filter: an upgrade, for instance.
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
		reply := responseReply(mutation(header, nil)) // bare, like a request whose body is awaited
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

// withoutBody ends a request whose body Envoy could not collect: it exceeds
// what Envoy holds, or did not come in time. The size stage, first in both
// parts of the chain, words the refusal.
func (se *session) withoutBody(code int, details string) *extprocv3.ProcessingResponse {
	in := &se.ex.In
	in.Oversize = code == http.StatusRequestEntityTooLarge
	in.Truncated = !in.Oversize
	run := se.pipeline.Chain.RunBody
	if !se.headed {
		run = se.pipeline.Chain.RunHeaders
	}
	if run(se.ctx, se.ex) {
		se.pipeline.Chain.Fail(se.ex, "size", fmt.Errorf("envoy answered %d (%s) and the chain saw nothing wrong", code, details))
	}
	return se.immediate()
}

// withoutAnswer ends a request to which the platform gave no answer.
func (se *session) withoutAnswer(code int, details string) *extprocv3.ProcessingResponse {
	cause := context.Canceled
	if code == http.StatusGatewayTimeout || code == http.StatusRequestTimeout {
		cause = context.DeadlineExceeded
	}
	se.pipeline.Chain.Fail(se.ex, filter.StageDispatch, fmt.Errorf("envoy answered %d (%s): %w", code, details, cause))
	return se.immediate()
}

// responseBody completes an error. Of one that exceeds its buffer, Envoy sends the
// beginning.
func (se *session) responseBody(b *extprocv3.HttpBody) (*extprocv3.ProcessingResponse, error) {
	se.ex.Response.Body = se.pipeline.Upstream.Credential(se.ex.Caller.Org).Scrub(b.Body)
	return se.immediate(), nil
}

// immediate ends the exchange with the chain's own answer.
func (se *session) immediate() *extprocv3.ProcessingResponse {
	se.pipeline.Chain.RunResponse(se.ctx, se.ex)
	se.phase = finished
	return immediate(se.ex.Response)
}

// fault notes an error of the protocol, so that it is found here and not only
// in Envoy's log.
func (se *session) fault(err error) error {
	if se.ex != nil {
		se.ex.Event.Outcome, se.ex.Event.Cause = telemetry.OutcomeFault, err
	}
	return err
}

// mustDeliver reports whether an intent goes on until it is known whether Envoy has taken the answer.
func (se *session) mustDeliver() bool { return se.ex != nil && len(se.ex.Undelivered()) > 0 }

// record records the exchange, once, and releases its memory.
func (se *session) record() {
	if se.ex == nil || se.recorded {
		return
	}
	se.recorded = true
	se.server.Recorder.Record(se.ctx, se.ex.Event)
	se.ex.ReleaseMemory()
}

// finish ends the exchange, once. A session that ends early was left by
// Envoy, usually because its caller was gone.
func (se *session) finish() {
	if se.ex == nil {
		return
	}
	if se.phase != finished {
		// The stages that were entered want to be left, whatever became of the call.
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
