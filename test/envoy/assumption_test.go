package envoy

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// other is an ext_proc server that is not ours. A test sets its first reply, and nothing
// else.
type other struct {
	extprocv3.UnimplementedExternalProcessorServer

	reply func(stream extprocv3.ExternalProcessor_ProcessServer) error
}

func (o *other) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	return o.reply(stream)
}

// with runs another server in the place of ours, behind an Envoy that shapes change.
func with(t *testing.T, reply func(stream extprocv3.ExternalProcessor_ProcessServer) error, shapes ...func(b *bootstrap)) *way {
	t.Helper()
	l := world.Listen(t)
	server := grpc.NewServer()
	extprocv3.RegisterExternalProcessorServer(server, &other{reply: reply})
	world.Serve(t, server, l)
	return open(t, shaped(func(b *bootstrap) {
		b.point("tollgate", l.Addr().String())
		for _, shape := range shapes {
			shape(b)
		}
	}))
}

// headersReply is a reply to the headers message with a header mutation.
func headersReply(m *extprocv3.HeaderMutation) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{
		RequestHeaders: &extprocv3.HeadersResponse{Response: &extprocv3.CommonResponse{HeaderMutation: m}},
	}}
}

// bodyReply is a reply to the body message, with the body replaced.
func bodyReply(length, body string) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{
		RequestBody: &extprocv3.BodyResponse{Response: &extprocv3.CommonResponse{
			HeaderMutation: setting("content-length", &corev3.HeaderValue{RawValue: []byte(length)}),
			BodyMutation:   &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{Body: []byte(body)}},
		}},
	}}
}

func setting(name string, value *corev3.HeaderValue) *extprocv3.HeaderMutation {
	value.Key = name
	return &extprocv3.HeaderMutation{SetHeaders: []*corev3.HeaderValueOption{{
		Header: value, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}}}
}

// wait keeps a stream open until Envoy ends it.
func wait(stream extprocv3.ExternalProcessor_ProcessServer) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

// What we believe of Envoy and build on. Should one of these fail with a later
// Envoy, the code that relies on it (named in each case) may be simplified, or
// must change.
func TestWhatWeBelieveOfEnvoy(t *testing.T) {
	get := request("GET", "/v2/pods", "key_research", "")
	post := request("POST", "/v2/pods", "key_research", pod4090)
	for _, tc := range []struct {
		// name is the belief; the code that relies on it follows in brackets.
		name    string
		request string
		reply   func(extprocv3.ExternalProcessor_ProcessServer) error
		// sent says whether the request reaches the platform; look judges it.
		sent bool
		look func(t *testing.T, c platform.Call)
		// status is the caller's; zero is not looked at.
		status int
	}{
		{
			name: "a clean end is consent (extproc.Process ends with an error)", request: get, sent: true,
			reply: func(extprocv3.ExternalProcessor_ProcessServer) error { return nil },
			look: func(t *testing.T, c platform.Call) {
				t.Helper()
				if got := c.Header.Get("Authorization"); got != "Bearer key_research" {
					t.Errorf("Authorization = %q", got)
				}
			},
		},
		{
			name: "a clean end after the headers is consent to the body (extproc.Process)", request: post, sent: true,
			reply: func(s extprocv3.ExternalProcessor_ProcessServer) error { return s.Send(headersReply(nil)) },
		},
		{
			name: "an end with an error is a refusal (extproc.Process)", request: get, status: 503,
			reply: func(extprocv3.ExternalProcessor_ProcessServer) error { return net.ErrClosed },
		},
		{
			name: "value is dropped (mutation.add sends raw_value)", request: get, sent: true,
			reply: func(s extprocv3.ExternalProcessor_ProcessServer) error {
				return s.Send(headersReply(setting("authorization", &corev3.HeaderValue{Value: "Bearer x"})))
			},
			look: func(t *testing.T, c platform.Call) {
				t.Helper()
				if got := c.Header.Values("Authorization"); len(got) != 1 || got[0] != "" {
					t.Errorf("Authorization = %q, want an empty one", got)
				}
			},
		},
		{
			name: "a body of another length than announced is refused (session.requestBody)", request: post, status: 503,
			reply: func(s extprocv3.ExternalProcessor_ProcessServer) error {
				if err := s.Send(headersReply(nil)); err != nil {
					return err
				}
				if _, err := s.Recv(); err != nil {
					return err
				}
				if err := s.Send(bodyReply("5", "{}")); err != nil {
					return err
				}
				return wait(s)
			},
		},
		{
			name: "an answer to another question is refused (session.phase)", request: get, status: 503,
			reply: func(s extprocv3.ExternalProcessor_ProcessServer) error {
				if err := s.Send(bodyReply("2", "{}")); err != nil {
					return err
				}
				return wait(s)
			},
		},
		{
			name: "the method cannot be changed (the chain never does)", request: get, status: 503,
			reply: func(s extprocv3.ExternalProcessor_ProcessServer) error {
				if err := s.Send(headersReply(setting(":method", &corev3.HeaderValue{RawValue: []byte("DELETE")}))); err != nil {
					return err
				}
				return wait(s)
			},
		},
		{
			name: "the mode of request bodies cannot be overridden to none in the body's reply (read.checkFilter)", request: post,
			reply: func(s extprocv3.ExternalProcessor_ProcessServer) error {
				r := headersReply(nil)
				r.ModeOverride = &modev3.ProcessingMode{RequestBodyMode: modev3.ProcessingMode_BUFFERED}
				if err := s.Send(r); err != nil {
					return err
				}
				if _, err := s.Recv(); err != nil {
					return err
				}
				return net.ErrClosed
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := with(t, tc.reply)
			var a answer
			calls := w.sent(func() { a = w.send(t, tc.request) })
			if (len(calls) > 0) != tc.sent {
				t.Fatalf("%d requests reached the platform: %+v", len(calls), calls)
			}
			if tc.status != 0 && a.Status != tc.status {
				t.Errorf("status = %d, want %d", a.Status, tc.status)
			}
			if tc.look != nil {
				tc.look(t, calls[0])
			}
		})
	}
}

// graceful has Envoy close streams gracefully, which is a setting of an operator's.
func graceful(b *bootstrap) {
	b.doc["layered_runtime"] = node{"layers": []any{node{
		"name": "closing", "static_layer": node{"envoy.reloadable_features.ext_proc_graceful_grpc_close": true},
	}}}
}

func impatient(b *bootstrap) { b.filter()["message_timeout"] = "0.25s" }

// How Envoy ends a stream says whether it has taken an immediate response (extproc.delivery, decision 027).
func TestHowEnvoyEndsStreams(t *testing.T) {
	for _, tc := range []struct {
		name           string
		shapes         []func(*bootstrap)
		answers        bool // the server answers
		leaves         bool // the caller leaves before there is an answer
		closed, resets bool // how the stream ends
		status         int
	}{
		{name: "taken", answers: true, resets: true, status: 201},
		{name: "message_timeout", shapes: []func(*bootstrap){impatient}, closed: true, resets: true, status: 504},
		{name: "caller leaves", leaves: true, closed: true, resets: true},
		{name: "taken, graceful", shapes: []func(*bootstrap){graceful}, answers: true, closed: true, status: 201},
		{name: "message_timeout, graceful", shapes: []func(*bootstrap){graceful, impatient}, closed: true, resets: true, status: 504},
		{name: "caller leaves, graceful", shapes: []func(*bootstrap){graceful}, leaves: true, closed: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked, ended := make(chan struct{}), make(chan [2]bool, 1)
			w := with(t, func(s extprocv3.ExternalProcessor_ProcessServer) error {
				end := make(chan error, 1)
				go func() { _, err := s.Recv(); end <- err }()
				close(asked)
				if tc.answers {
					if err := s.Send(created()); err != nil {
						return err
					}
				}
				closed, reset := errors.Is(<-end, io.EOF), true
				select {
				case <-s.Context().Done():
				case <-time.After(200 * time.Millisecond): // with graceful closing, a reset follows after a second
					reset = false
				}
				ended <- [2]bool{closed, reset}
				return nil
			}, tc.shapes...)
			get := request("GET", "/v2/pods", "key_research", "")
			if tc.leaves {
				conn := world.Dial(t, w.addr)
				_, _ = io.WriteString(conn, get)
				<-asked
				_ = conn.Close()
			} else if a := w.send(t, get); a.Status != tc.status {
				t.Errorf("status = %d, want %d", a.Status, tc.status)
			}
			if got, want := <-ended, [2]bool{tc.closed, tc.resets}; got != want {
				t.Errorf("the stream was half-closed and reset: %v, want %v", got, want)
			}
		})
	}
}

// created is an immediate response.
func created() *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ImmediateResponse{
		ImmediateResponse: &extprocv3.ImmediateResponse{Status: &typev3.HttpStatus{Code: typev3.StatusCode_Created}},
	}}
}
