package extproc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	meternoop "go.opentelemetry.io/otel/metric/noop"
	tracernoop "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// judge is a stage that refuses bodies which say no, and counts.
type judge struct{ heads, contents int }

type headStage struct{ *judge }

func (headStage) Name() string { return "head" }

func (s headStage) Request(_ context.Context, ex *filter.Exchange) error {
	s.heads++
	if ex.In.Header.Get("Authorization") == "" {
		return errors.New("no key")
	}
	return nil
}

type contentStage struct{ *judge }

func (contentStage) Name() string { return "content" }

func (s contentStage) Request(context.Context, *filter.Exchange) error {
	s.contents++
	return errors.New("no")
}

func newSession(t testing.TB) (*session, *judge) {
	t.Helper()
	recorder := telemetry.NewRecorder(slog.New(slog.DiscardHandler), tracernoop.NewTracerProvider(), meternoop.NewMeterProvider(), time.Now)
	j := new(judge)
	p := &filter.Pipeline{Chain: &filter.Chain{Headers: []filter.Filter{headStage{j}}, Body: []filter.Filter{contentStage{j}}}}
	return &session{server: &Server{Recorder: recorder}, pipeline: p}, j
}

// headers is a request headers message as a filter that is set up rightly sends
// it.
func headers(end bool, lines ...string) *extprocv3.ProcessingRequest {
	m := &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
		{Key: ":method", RawValue: []byte("POST")}, {Key: ":path", RawValue: []byte("/v2/pods?a=1")},
	}}
	for i := 0; i < len(lines); i += 2 {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: lines[i], RawValue: []byte(lines[i+1])})
	}
	return &extprocv3.ProcessingRequest{
		Request:        &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{Headers: m, EndOfStream: end}},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{RequestBodyMode: modev3.ProcessingMode_BUFFERED},
		Attributes: map[string]*structpb.Struct{filterName: {Fields: map[string]*structpb.Value{
			sourceAddress: structpb.NewStringValue("[2001:db8::1]:4711"), requestProtocol: structpb.NewStringValue("HTTP/1.1"),
		}}},
	}
}

func body(text string) *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: []byte(text), EndOfStream: true},
	}}
}

// response is a response headers message; details says whose it is.
func response(code, details string) *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extprocv3.HttpHeaders{
			Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: ":status", RawValue: []byte(code)}}},
		}},
		Attributes: map[string]*structpb.Struct{filterName: {Fields: map[string]*structpb.Value{
			responseDetails: structpb.NewStringValue(details),
		}}},
	}
}

// While its body is awaited, a request is of no use to anybody.
func TestAnUnjudgedRequestIsBare(t *testing.T) {
	se, j := newSession(t)
	res, err := se.handle(t.Context(), headers(false, "authorization", "Bearer k", "content-length", "2", "cookie", "a", "x-envoy-retry-on", "5xx"))
	if err != nil {
		t.Fatal(err)
	}
	common := res.GetRequestHeaders().GetResponse()
	want := []string{"authorization", "cookie", "x-envoy-retry-on"}
	if diff := cmp.Diff(want, common.GetHeaderMutation().GetRemoveHeaders()); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	set := common.GetHeaderMutation().GetSetHeaders()
	if len(set) != 1 || set[0].Header.Key != ":path" || string(set[0].Header.RawValue) != "/" {
		t.Errorf("set = %v, want :path alone", set)
	}
	if j.heads != 1 || j.contents != 0 {
		t.Errorf("heads and contents judged = %d and %d, want 1 and 0", j.heads, j.contents)
	}
}

// The required settings of the filter, and the message when they are missing.
func TestFilterSettings(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*extprocv3.ProcessingRequest)
		want   codes.Code
	}{
		{"as it should be", func(*extprocv3.ProcessingRequest) {}, codes.OK},
		{"too old to tell its modes", func(r *extprocv3.ProcessingRequest) { r.ProtocolConfig = nil }, codes.FailedPrecondition},
		{"request bodies not sent", func(r *extprocv3.ProcessingRequest) {
			r.ProtocolConfig.RequestBodyMode = modev3.ProcessingMode_NONE
		}, codes.FailedPrecondition},
		{"request bodies in part", func(r *extprocv3.ProcessingRequest) {
			r.ProtocolConfig.RequestBodyMode = modev3.ProcessingMode_BUFFERED_PARTIAL
		}, codes.FailedPrecondition},
		{"response bodies held", func(r *extprocv3.ProcessingRequest) {
			r.ProtocolConfig.ResponseBodyMode = modev3.ProcessingMode_BUFFERED
		}, codes.FailedPrecondition},
		{"observability mode", func(r *extprocv3.ProcessingRequest) { r.ObservabilityMode = true }, codes.FailedPrecondition},
		{"no address", func(r *extprocv3.ProcessingRequest) { r.Attributes = nil }, codes.FailedPrecondition},
	} {
		t.Run(tc.name, func(t *testing.T) {
			se, j := newSession(t)
			req := headers(true, "authorization", "Bearer k")
			tc.change(req)
			_, err := se.handle(t.Context(), req)
			if got := status.Code(err); got != tc.want {
				t.Errorf("error = %v, want code %s", err, tc.want)
			}
			if tc.want != codes.OK && j.heads > 0 {
				t.Error("the request was judged, and counted, all the same")
			}
		})
	}
}

func TestInbound(t *testing.T) {
	req := headers(false, "authorization", "Bearer k", "accept", "a", "accept", "b", "content-length", "7")
	got, err := inbound(req, req.GetRequestHeaders())
	if err != nil {
		t.Fatal(err)
	}
	want := filter.Inbound{
		Door: filter.DoorExtProc, Method: "POST", Path: "/v2/pods", Query: "a=1", Major: 1, Minor: 1, Length: 7, Peer: "2001:db8::1",
		Header: http.Header{"Authorization": {"Bearer k"}, "Accept": {"a", "b"}, "Content-Length": {"7"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inbound (-want +got):\n%s", diff)
	}
}

// Messages that cannot follow one another end the stream with an error.
func TestOrder(t *testing.T) {
	open := headers(false, "authorization", "Bearer k", "content-length", "2")
	for name, messages := range map[string][]*extprocv3.ProcessingRequest{
		"a body first":                          {body("{}")},
		"the platform's answer first":           {response("200", viaUpstream)},
		"headers twice":                         {open, headers(false, "authorization", "Bearer k")},
		"the platform's answer before a body":   {open, response("200", viaUpstream)},
		"an answer of nobody's before a body":   {open, response("200", "")},
		"a body after the verdict":              {open, body("{}"), body("{}")},
		"the platform's answer to a refusal":    {open, body("{}"), response("200", viaUpstream)},
		"a response body that nobody asked for": {open, {Request: &extprocv3.ProcessingRequest_ResponseBody{ResponseBody: &extprocv3.HttpBody{}}}},
		"trailers first":                        {trailers()},
		"trailers after a refusal":              {open, trailers(), trailers()},
		"nothing":                               {{}},
	} {
		t.Run(name, func(t *testing.T) {
			se, _ := newSession(t)
			for i, m := range messages {
				_, err := se.handle(t.Context(), m)
				if last := i == len(messages)-1; last != (err != nil) {
					t.Fatalf("message %d: error = %v", i, err)
				}
			}
		})
	}
}

// An answer of Envoy's own to a request that never got here passes as it is;
// it ends the exchange in every phase.
func TestAnswersOfEnvoysOwn(t *testing.T) {
	se, _ := newSession(t)
	res, err := se.handle(t.Context(), response("403", "upgrade_failed"))
	if err != nil || res.GetResponseHeaders() == nil {
		t.Errorf("before the headers: %v, %v", res, err)
	}
	se, j := newSession(t)
	if _, err := se.handle(t.Context(), headers(false, "authorization", "Bearer k", "content-length", "2")); err != nil {
		t.Fatal(err)
	}
	res, err = se.handle(t.Context(), response("413", "request_payload_too_large"))
	if err != nil || res.GetImmediateResponse() == nil || j.contents != 1 {
		t.Errorf("instead of the body: %v, %v after %d judgements", res, err, j.contents)
	}
}

// stream is the server's side of a stream whose client sends the given messages
// and then ends with end.
type stream struct {
	grpc.ServerStream

	messages []*extprocv3.ProcessingRequest
	end      error
	replies  int
}

func (*stream) Context() context.Context { return context.Background() }

func (s *stream) Send(*extprocv3.ProcessingResponse) error { s.replies++; return nil }

func (s *stream) Recv() (*extprocv3.ProcessingRequest, error) {
	if len(s.messages) == 0 {
		return nil, s.end
	}
	m := s.messages[0]
	s.messages = s.messages[1:]
	return m, nil
}

// A stream only ends cleanly when everything was judged: Envoy takes a clean end
// for consent.
func TestACleanEndIsConsent(t *testing.T) {
	open := headers(false, "authorization", "Bearer k", "content-length", "2")
	for _, tc := range []struct {
		name     string
		messages []*extprocv3.ProcessingRequest
		end      error
		clean    bool
	}{
		{"at once", nil, io.EOF, false},
		{"before the body", []*extprocv3.ProcessingRequest{open}, io.EOF, false},
		{"after the verdict", []*extprocv3.ProcessingRequest{open, body("{}")}, io.EOF, true},
		{"with the verdict, whatever else comes", []*extprocv3.ProcessingRequest{open, body("{}"), open}, io.EOF, true},
		{"by the caller's leaving", []*extprocv3.ProcessingRequest{open}, status.Error(codes.Canceled, "gone"), false},
		{"by a message out of order", []*extprocv3.ProcessingRequest{body("{}")}, io.EOF, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			se, _ := newSession(t)
			se.server.Pipeline = func() *filter.Pipeline { return se.pipeline }
			err := se.server.Process(&stream{messages: tc.messages, end: tc.end})
			if (err == nil) != tc.clean {
				t.Errorf("error = %v, want a clean end: %v", err, tc.clean)
			}
		})
	}
}

// With any messages in any order: no panic, one reply or an error for each
// message, nothing goes on after an error, and no request passes unjudged.
func FuzzOrder(f *testing.F) {
	f.Add([]byte{0, 2, 4})
	f.Add([]byte{1, 2, 6, 7})
	f.Add([]byte{3, 4, 5})
	f.Fuzz(func(t *testing.T, order []byte) {
		kinds := []func() *extprocv3.ProcessingRequest{
			func() *extprocv3.ProcessingRequest { return headers(false, "authorization", "Bearer k") },
			func() *extprocv3.ProcessingRequest {
				return headers(false, "authorization", "Bearer k", "content-length", "2")
			},
			func() *extprocv3.ProcessingRequest { return body("{}") },
			func() *extprocv3.ProcessingRequest { return headers(true, "authorization", "Bearer k") },
			func() *extprocv3.ProcessingRequest { return response("200", viaUpstream) },
			func() *extprocv3.ProcessingRequest { return response("413", "request_payload_too_large") },
			func() *extprocv3.ProcessingRequest { return response("504", "response_timeout") },
			func() *extprocv3.ProcessingRequest { return &extprocv3.ProcessingRequest{} },
			trailers,
		}
		se, j := newSession(t)
		for _, b := range order[:min(len(order), 16)] {
			before := se.phase
			res, err := se.handle(t.Context(), kinds[int(b)%len(kinds)]())
			if err != nil {
				return
			}
			if res == nil || se.phase < before {
				t.Fatalf("reply %v, phase %d after %d", res, se.phase, before)
			}
			if passed := res.GetRequestBody() != nil || res.GetRequestTrailers() != nil || res.GetRequestHeaders() != nil && se.phase != awaitBody; passed && j.contents == 0 {
				t.Fatalf("passed unjudged: %v", res)
			}
			if m := res.GetRequestHeaders().GetResponse().GetHeaderMutation(); m != nil && !slices.Contains(m.RemoveHeaders, "authorization") {
				t.Fatalf("the caller's key goes on: %v", m)
			}
		}
	})
}

// lodger is a stage that must be left as often as it was entered.
type lodger struct{ inside int }

func (*lodger) Name() string { return "lodger" }

func (l *lodger) Request(_ context.Context, ex *filter.Exchange) error {
	l.inside++
	ex.Caller, ex.Out.Header = &identity.Caller{Org: "acme"}, http.Header{}
	return nil
}

func (l *lodger) Response(context.Context, *filter.Exchange) error {
	l.inside--
	return nil
}

// acmeClient is a client with the credential of acme.
func acmeClient(t *testing.T) *upstream.Client {
	t.Helper()
	client, err := upstream.New(upstream.Config{BaseURL: "http://127.0.0.1:1"}, map[string]upstream.Credential{"acme": upstream.NewCredential("pk")})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestSessionsThatBreakOffLeaveTheirStages: a caller that hangs up holds nothing
// that a stage took for it.
func TestSessionsThatBreakOffLeaveTheirStages(t *testing.T) {
	client := acmeClient(t)
	for name, messages := range map[string]int{"after the headers": 1, "before the answer": 2} {
		t.Run(name, func(t *testing.T) {
			se, _ := newSession(t)
			l := new(lodger)
			se.pipeline.Chain.Headers, se.pipeline.Chain.Body = []filter.Filter{l}, nil
			se.pipeline.Upstream = client
			body := &extprocv3.ProcessingRequest{
				Request: &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{Body: []byte("{}"), EndOfStream: true}},
			}
			for _, m := range []*extprocv3.ProcessingRequest{headers(false, "authorization", "Bearer k", "content-length", "2"), body}[:messages] {
				if _, err := se.handle(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			if l.inside != 1 {
				t.Fatalf("the stage was entered %d times, want once", l.inside)
			}
			e := se.ex.Event
			se.finish()
			if l.inside != 0 {
				t.Error("the stage was not left")
			}
			if e.Outcome != telemetry.OutcomeCanceled {
				t.Errorf("outcome = %s, want gone", e.Outcome)
			}
			se.finish() // once is enough
			if l.inside != 0 {
				t.Error("the stage was left twice")
			}
		})
	}
}

// wanting is a stage that wants the answer's body seen.
type wanting struct{ whole bool }

func (wanting) Name() string { return "wanting" }

func (w wanting) Request(_ context.Context, ex *filter.Exchange) error {
	ex.Caller, ex.Out.Header, ex.Out.Buffered = &identity.Caller{Org: "acme"}, http.Header{}, w.whole
	return nil
}

// sender stands for the platform.
type sender struct{ err error }

func (s sender) Send(_ context.Context, ex *filter.Exchange) (func(), error) {
	ex.MarkSent()
	if s.err != nil {
		return nil, s.err
	}
	ex.SetUpstreamResponse(http.StatusCreated, http.Header{})
	ex.Response.Body = []byte(`{"id":"p1"}`)
	return func() {}, nil
}

// A call whose answer a stage wants whole is made here, and Envoy gets its answer; Envoy makes
// the others.
func TestAnswersWantedWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		whole  bool
		lost   error
		status int // of the immediate response, 0 for none
		body   string
		sent   filter.SendState
	}{
		"not wanted": {false, nil, 0, "", filter.SentUnanswered},
		"whole":      {true, nil, 201, `{"id":"p1"}`, filter.Answered},
		"lost":       {true, upstream.ErrUnreachable, 502, "", filter.SentUnanswered},
	} {
		t.Run(name, func(t *testing.T) {
			se, _ := newSession(t)
			se.pipeline.Chain.Headers, se.pipeline.Chain.Body = []filter.Filter{wanting{tc.whole}}, nil
			se.pipeline.Upstream = acmeClient(t)
			se.pipeline.Ports = filter.Ports{Sender: sender{tc.lost}}
			res, err := se.handle(t.Context(), headers(true, "authorization", "Bearer k"))
			if err != nil {
				t.Fatal(err)
			}
			im := res.GetImmediateResponse()
			if got := int(im.GetStatus().GetCode()); got != tc.status || se.ex.Sent != tc.sent {
				t.Errorf("answered %d with sent %d, want %d with %d", got, se.ex.Sent, tc.status, tc.sent)
			}
			if tc.body != "" && string(im.GetBody()) != tc.body {
				t.Errorf("body %s, want %s", im.GetBody(), tc.body)
			}
			if forwarded := res.GetRequestHeaders() != nil; forwarded == tc.whole {
				t.Errorf("Envoy is told to make the call: %t", forwarded)
			}
		})
	}
}
