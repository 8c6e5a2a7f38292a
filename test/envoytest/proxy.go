package envoytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// bufferLimit is the largest BUFFERED body (per_connection_buffer_limit).
const bufferLimit = 128 << 10

// Proxy forwards requests to Upstream the way Envoy does with an ext_proc
// filter that sends headers and BUFFERED request bodies, with mode override
// allowed and the attributes the gateway reads.
type Proxy struct {
	Client extprocv3.ExternalProcessorClient
	// Upstream is the cluster's address: scheme and host.
	Upstream *url.URL
	// Fault receives the faults of the processor; such a request is answered with 500, as
	// Envoy does.
	Fault func(error)
	// Transport sends to the upstream; required.
	Transport http.RoundTripper
}

// ServeHTTP handles one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stream, err := p.Client.Process(ctx)
	if err != nil {
		p.fail(w, err)
		return
	}
	x := &exchange{proxy: p, stream: stream, w: w}
	if err := x.run(r); err != nil && r.Context().Err() == nil { // whoever left breaks the stream off
		p.fail(w, err)
	}
}

func (p *Proxy) fail(w http.ResponseWriter, err error) {
	if p.Fault != nil {
		p.Fault(err)
	}
	http.Error(w, "ext_proc failed", http.StatusInternalServerError)
}

// exchange is one request through the filter.
type exchange struct {
	proxy  *Proxy
	stream extprocv3.ExternalProcessor_ProcessClient
	w      http.ResponseWriter
}

// run drives one request. It returns nil once a response was written.
func (x *exchange) run(r *http.Request) error {
	req := newMessage(r)
	hasBody := r.ContentLength != 0
	reply, err := x.ask(&extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{
			RequestHeaders: &extprocv3.HttpHeaders{Headers: req.proto(), EndOfStream: !hasBody},
		},
		Attributes: attributes(map[string]any{"source.address": r.RemoteAddr, "request.protocol": r.Proto}),
		// Only in the first message of a stream.
		ProtocolConfig: &extprocv3.ProtocolConfiguration{
			RequestBodyMode: modev3.ProcessingMode_BUFFERED, ResponseBodyMode: modev3.ProcessingMode_NONE,
		},
	})
	if err != nil || reply == nil {
		return err
	}
	common, err := headersReply(reply.GetRequestHeaders())
	if err != nil {
		return err
	}
	if err := req.apply(common); err != nil {
		return err
	}
	if hasBody {
		done, err := x.requestBody(r, req, reply.ModeOverride)
		if done || err != nil {
			return err
		}
	}
	res, err := x.send(r.Context(), req)
	if err != nil {
		res := local(http.StatusServiceUnavailable, "upstream connect error") //nolint:bodyclose // held in memory
		return x.respond(res, "upstream_reset_before_response_started{connection_termination}")
	}
	defer func() { _ = res.Body.Close() }()
	return x.respond(res, "via_upstream")
}

// requestBody sends the whole body to the processor, if it asked for it.
func (x *exchange) requestBody(r *http.Request, req *message, mode *modev3.ProcessingMode) (done bool, err error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, bufferLimit+1))
	if err != nil {
		return false, err
	}
	if len(body) > bufferLimit {
		res := local(http.StatusRequestEntityTooLarge, "Payload Too Large") //nolint:bodyclose // held in memory
		return true, x.respond(res, "request_payload_too_large")
	}
	req.body = body
	if mode != nil && mode.RequestBodyMode != modev3.ProcessingMode_BUFFERED {
		return false, fmt.Errorf("request body mode %s, want BUFFERED: the body was not judged", mode.GetRequestBodyMode())
	}
	reply, err := x.ask(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: body, EndOfStream: true},
	}})
	if err != nil || reply == nil {
		return true, err
	}
	if reply.ModeOverride != nil {
		return false, errors.New("mode_override in a body reply")
	}
	b := reply.GetRequestBody()
	if b == nil {
		return false, fmt.Errorf("reply %T to a request body", reply.Response)
	}
	return false, req.apply(b.GetResponse())
}

// send forwards the request as mutated.
func (x *exchange) send(ctx context.Context, m *message) (*http.Response, error) {
	u := *x.proxy.Upstream
	path, query, _ := strings.Cut(m.pseudo[":path"], "?")
	u.Opaque, u.RawQuery = path, query
	out := (&http.Request{Method: m.pseudo[":method"], URL: &u, Host: u.Host, Header: m.header.Clone()}).WithContext(ctx)
	out.Header.Del("Content-Length")
	out.Header.Del("Transfer-Encoding")
	if m.body != nil {
		out.Body = io.NopCloser(bytes.NewReader(m.body))
		out.ContentLength = int64(len(m.body))
	}
	return x.proxy.Transport.RoundTrip(out)
}

// local is an answer of Envoy's own. It passes the filter like any other.
func local(status int, text string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"text/plain"}},
		ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(text)),
	}
}

// attributes is how the filter sends them.
func attributes(values map[string]any) map[string]*structpb.Struct {
	s, err := structpb.NewStruct(values)
	if err != nil { // strings always fit
		panic(err)
	}
	return map[string]*structpb.Struct{"envoy.filters.http.ext_proc": s}
}

// respond takes a response through the filter and writes it. details says whose
// it is (response.code_details).
func (x *exchange) respond(res *http.Response, details string) error {
	m := &message{header: res.Header.Clone(), pseudo: map[string]string{":status": strconv.Itoa(res.StatusCode)}}
	empty := res.ContentLength == 0
	reply, err := x.ask(&extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_ResponseHeaders{
			ResponseHeaders: &extprocv3.HttpHeaders{Headers: m.proto(), EndOfStream: empty},
		},
		Attributes: attributes(map[string]any{"response.code_details": details}),
	})
	if err != nil || reply == nil {
		return err
	}
	common, err := headersReply(reply.GetResponseHeaders())
	if err != nil {
		return err
	}
	if err := m.apply(common); err != nil {
		return err
	}
	if !empty && reply.ModeOverride.GetResponseBodyMode() == modev3.ProcessingMode_BUFFERED_PARTIAL {
		body, err := io.ReadAll(io.LimitReader(res.Body, bufferLimit))
		if err != nil {
			return err
		}
		m.body = body
		reply, err := x.ask(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
			ResponseBody: &extprocv3.HttpBody{Body: body, EndOfStream: len(body) < bufferLimit},
		}})
		if err != nil || reply == nil {
			return err
		}
		if err := m.apply(reply.GetResponseBody().GetResponse()); err != nil {
			return err
		}
		res.Body = io.NopCloser(bytes.NewReader(m.body))
	}
	x.end()
	maps.Copy(x.w.Header(), m.header)
	x.w.WriteHeader(res.StatusCode)
	flusher := http.NewResponseController(x.w)
	buf := make([]byte, 4096)
	for {
		n, err := res.Body.Read(buf)
		if n > 0 {
			_, _ = x.w.Write(buf[:n])
			_ = flusher.Flush()
		}
		if err != nil {
			return nil //nolint:nilerr // the head is out; an upstream that broke off shows as such
		}
	}
}

// ask sends one message and returns its one reply; nil when that was an
// immediate response, which is then written.
func (x *exchange) ask(req *extprocv3.ProcessingRequest) (*extprocv3.ProcessingResponse, error) {
	if err := x.stream.Send(req); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	reply, err := x.stream.Recv()
	if err != nil {
		return nil, fmt.Errorf("the processor gave no verdict: %w", err)
	}
	im := reply.GetImmediateResponse()
	if im == nil {
		return reply, nil
	}
	m := &message{header: http.Header{"Content-Type": {"text/plain"}}, pseudo: map[string]string{}}
	if err := m.mutate(im.Headers); err != nil {
		return nil, err
	}
	x.end()
	maps.Copy(x.w.Header(), m.header)
	x.w.WriteHeader(int(im.GetStatus().GetCode()))
	_, _ = x.w.Write(im.Body)
	return nil, nil
}

// end ends the stream, and waits until the processor has, so that a test with an answer
// finds the processor's record of it.
func (x *exchange) end() {
	_ = x.stream.CloseSend() // an error is Recv's, too
	for {
		if _, err := x.stream.Recv(); err != nil {
			return
		}
	}
}

func headersReply(h *extprocv3.HeadersResponse) (*extprocv3.CommonResponse, error) {
	if h == nil {
		return nil, errors.New("another reply than the headers message asks for")
	}
	return h.GetResponse(), nil
}
