package extproc

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// phase is what a session waits for. It never goes back.
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
	// headed says that the head part of the chain has run.
	headed bool
}

// handle answers one message.
func (se *session) handle(ctx context.Context, req *extprocv3.ProcessingRequest) (*extprocv3.ProcessingResponse, error) {
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
		if se.phase != awaitResponse {
			return nil, outOfOrder("response headers")
		}
		return se.responseHeaders(m.ResponseHeaders)
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
	se.ex = filter.NewExchange(in, &telemetry.Event{Revision: se.pipeline.Revision})
	se.ctx, se.ex.Span = se.server.Recorder.Begin(ctx)

	if h.EndOfStream || in.Length >= 0 {
		se.headed = true
		if !se.pipeline.Chain.RunHead(se.ctx, se.ex) {
			return se.immediate(), nil
		}
	}
	if !h.EndOfStream {
		se.phase = awaitBody
		return &extprocv3.ProcessingResponse{
			Response: &extprocv3.ProcessingResponse_RequestHeaders{
				RequestHeaders: &extprocv3.HeadersResponse{Response: &extprocv3.CommonResponse{}},
			},
			ModeOverride: &modev3.ProcessingMode{
				RequestHeaderMode:  modev3.ProcessingMode_SEND,
				ResponseHeaderMode: modev3.ProcessingMode_SEND,
				RequestBodyMode:    modev3.ProcessingMode_BUFFERED,
			},
		}, nil
	}
	return se.judge(func(c *extprocv3.CommonResponse) *extprocv3.ProcessingResponse {
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{
			RequestHeaders: &extprocv3.HeadersResponse{Response: c},
		}}
	}), nil
}

// requestBody completes the request.
func (se *session) requestBody(b *extprocv3.HttpBody) (*extprocv3.ProcessingResponse, error) {
	if !b.EndOfStream {
		return nil, status.Error(codes.FailedPrecondition, "the request body came in parts: the filter must send it BUFFERED")
	}
	se.ex.In.Body = b.Body
	se.ex.Event.BytesIn = int64(len(b.Body))
	if !se.headed && !se.pipeline.Chain.RunHead(se.ctx, se.ex) {
		return se.immediate(), nil
	}
	return se.judge(func(c *extprocv3.CommonResponse) *extprocv3.ProcessingResponse {
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{
			RequestBody: &extprocv3.BodyResponse{Response: c},
		}}
	}), nil
}

// judge runs the rest of the request phase and answers with the difference
// between In and Out, wrapped for the phase at hand.
func (se *session) judge(wrap func(*extprocv3.CommonResponse) *extprocv3.ProcessingResponse) *extprocv3.ProcessingResponse {
	ex := se.ex
	if !se.pipeline.Chain.RunContent(se.ctx, ex) {
		return se.immediate()
	}
	auth, err := se.pipeline.Dispatch.Upstream.Authorization(ex.Caller.Org)
	if err != nil {
		se.pipeline.Chain.Fail(ex, "dispatch", err)
		return se.immediate()
	}
	se.phase = awaitResponse
	want := maps.Clone(ex.Out.Header)
	want["Authorization"] = []string{auth}
	common := &extprocv3.CommonResponse{HeaderMutation: mutation(ex.In.Header, want)}
	set(common.HeaderMutation, ":path", ex.Out.Target())
	if ex.Out.Body != nil {
		set(common.HeaderMutation, "content-length", strconv.Itoa(len(ex.Out.Body)))
		common.BodyMutation = &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{Body: ex.Out.Body}}
	}
	return wrap(common)
}

// responseHeaders sees the platform's answer. Errors are rewritten, which
// takes their body; everything else passes with its headers filtered.
func (se *session) responseHeaders(h *extprocv3.HttpHeaders) (*extprocv3.ProcessingResponse, error) {
	header, pseudo := readHeaders(h.Headers)
	code, err := strconv.Atoi(pseudo[":status"])
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "response headers without a status")
	}
	ex := se.ex
	ex.Event.UpstreamStatus = code
	ex.Event.UpstreamLatency = se.server.Recorder.Now().Sub(ex.In.Received)
	ex.Answer = &filter.Answer{Status: code, Header: header, Relayed: true}
	if code >= http.StatusBadRequest && !h.EndOfStream {
		se.phase = awaitResponseBody
		return &extprocv3.ProcessingResponse{
			Response: &extprocv3.ProcessingResponse_ResponseHeaders{
				ResponseHeaders: &extprocv3.HeadersResponse{Response: &extprocv3.CommonResponse{}},
			},
			ModeOverride: &modev3.ProcessingMode{
				ResponseHeaderMode: modev3.ProcessingMode_SEND,
				ResponseBodyMode:   modev3.ProcessingMode_BUFFERED,
			},
		}, nil
	}
	se.pipeline.Chain.RunResponse(se.ctx, ex)
	se.phase = finished
	if !ex.Answer.Relayed || ex.Answer.Status >= http.StatusBadRequest {
		return immediate(ex.Answer), nil
	}
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{
		ResponseHeaders: &extprocv3.HeadersResponse{Response: &extprocv3.CommonResponse{
			HeaderMutation: mutation(header, ex.Answer.Header),
		}},
	}}, nil
}

// responseBody replaces an error of the platform by what may be shown of it.
func (se *session) responseBody(b *extprocv3.HttpBody) (*extprocv3.ProcessingResponse, error) {
	if !b.EndOfStream {
		return nil, status.Error(codes.FailedPrecondition, "the response body came in parts: the filter must send it BUFFERED")
	}
	se.ex.Answer.Body = b.Body
	se.pipeline.Chain.RunResponse(se.ctx, se.ex)
	se.phase = finished
	return immediate(se.ex.Answer), nil
}

// immediate ends the exchange with the chain's own answer.
func (se *session) immediate() *extprocv3.ProcessingResponse {
	se.pipeline.Chain.RunResponse(se.ctx, se.ex)
	se.phase = finished
	return immediate(se.ex.Answer)
}

// finish records the exchange. A session that ends early was left by Envoy,
// usually because its caller was gone.
func (se *session) finish() {
	if se.ex == nil {
		return
	}
	if se.phase != finished {
		se.ex.Event.Outcome = telemetry.OutcomeGone
	}
	se.server.Recorder.Record(se.ctx, se.ex.Event)
}

// inbound reads the request headers message.
func inbound(req *extprocv3.ProcessingRequest, h *extprocv3.HttpHeaders) (filter.Inbound, error) {
	header, pseudo := readHeaders(h.Headers)
	if pseudo[":method"] == "" || pseudo[":path"] == "" {
		return filter.Inbound{}, status.Error(codes.InvalidArgument, "request headers without method or path")
	}
	path, query, _ := strings.Cut(pseudo[":path"], "?")
	in := filter.Inbound{
		Door: "envoy", Method: pseudo[":method"], Path: path, Query: query,
		Major: 1, Minor: 1, Header: header, Length: -1,
	}
	if h.EndOfStream {
		in.Length = 0
	}
	if v := header.Values("Content-Length"); len(v) == 1 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 {
			in.Length = n
		}
	}
	attrs := req.GetAttributes()["envoy.filters.http.ext_proc"].GetFields()
	if a := attrs["source.address"].GetStringValue(); a != "" {
		in.Peer = a[:max(strings.LastIndexByte(a, ':'), 0)]
	}
	if attrs["request.protocol"].GetStringValue() == "HTTP/1.0" {
		in.Minor = 0
	}
	return in, nil
}

// readHeaders splits a header map into fields, canonical names, and pseudo
// headers.
func readHeaders(m *corev3.HeaderMap) (header http.Header, pseudo map[string]string) {
	header = make(http.Header, len(m.GetHeaders()))
	pseudo = make(map[string]string, 4)
	for _, h := range m.GetHeaders() {
		value := h.Value
		if len(h.RawValue) > 0 {
			value = string(h.RawValue)
		}
		if strings.HasPrefix(h.Key, ":") {
			pseudo[h.Key] = value
			continue
		}
		header.Add(h.Key, value)
	}
	return header, pseudo
}
