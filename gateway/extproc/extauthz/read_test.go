package extauthz

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What the filter must be set to, and what is said when it is not.
func TestFilterSettings(t *testing.T) {
	header := func(name, value string) *corev3.HeaderValue {
		return &corev3.HeaderValue{Key: name, RawValue: []byte(value)}
	}
	for _, tc := range []struct {
		name   string
		change func(*authv3.AttributeContext)
		want   codes.Code
	}{
		{"as it should be", func(*authv3.AttributeContext) {}, codes.OK},
		{"nothing", func(a *authv3.AttributeContext) { a.Request = nil }, codes.InvalidArgument},
		{"headers joined", func(a *authv3.AttributeContext) { a.Request.Http.HeaderMap = nil }, codes.FailedPrecondition},
		{"a body as a string", func(a *authv3.AttributeContext) { a.Request.Http.Body = "{}" }, codes.FailedPrecondition},
		{"no body", func(a *authv3.AttributeContext) { a.Request.Http.RawBody = nil }, codes.FailedPrecondition},
		{"a longer body", func(a *authv3.AttributeContext) { a.Request.Http.RawBody = []byte("{ }") }, codes.FailedPrecondition},
		{"a part of a body", func(a *authv3.AttributeContext) {
			m := a.Request.Http.HeaderMap
			m.Headers = append(m.Headers, header("x-envoy-auth-partial-body", "false"), header("x-envoy-auth-partial-body", "true"))
		}, codes.FailedPrecondition},
		{"no address", func(a *authv3.AttributeContext) { a.Source = nil }, codes.FailedPrecondition},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &authv3.AttributeContext{
				Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
					SocketAddress: &corev3.SocketAddress{Address: "2001:db8::1"},
				}}},
				Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
					Method: "POST", Path: "/v2/pods?a=1", RawBody: []byte("{}"),
					HeaderMap: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{header(":method", "POST"), header("content-length", "2")}},
				}},
			}
			tc.change(a)
			in := inbound(a)
			if got := status.Code(checkFilter(a.GetRequest().GetHttp(), &in)); got != tc.want {
				t.Errorf("code = %s, want %s", got, tc.want)
			}
			if tc.want == codes.OK && (in.Path != "/v2/pods" || in.Query != "a=1" || in.Peer != "2001:db8::1" || in.Length != 2) {
				t.Errorf("inbound = %+v", in)
			}
		})
	}
}
