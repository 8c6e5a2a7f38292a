package extproc

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// Attributes that the filter must send, and the namespace of these attributes.
const (
	filterName      = "envoy.filters.http.ext_proc"
	sourceAddress   = "source.address"
	requestProtocol = "request.protocol"
	responseDetails = "response.code_details"

	// viaUpstream is the value of response.code_details for responses of the platform. With any other value, Envoy generated the response.
	viaUpstream = "via_upstream"
)

// checkFilter returns an error if the configuration of the filter is unsuitable. The filter must buffer request bodies by default: if Envoy
// does not permit a mode override, it ignores the override and forwards the request. The filter must not buffer response bodies by default,
// because Envoy would fail on each body larger than its buffer, even if the body is not needed. The filter must send the address of the
// caller, because the limit on wrong keys depends on it.
func checkFilter(req *extprocv3.ProcessingRequest) error {
	if req.ObservabilityMode {
		return status.Error(codes.FailedPrecondition, "observability_mode must be off: Envoy would forward requests that the gateway refuses")
	}
	c := req.GetProtocolConfig()
	if c.GetRequestBodyMode() != modev3.ProcessingMode_BUFFERED || c.GetResponseBodyMode() != modev3.ProcessingMode_NONE {
		return status.Errorf(codes.FailedPrecondition, "request_body_mode is %s and response_body_mode is %s, want BUFFERED and NONE",
			c.GetRequestBodyMode(), c.GetResponseBodyMode())
	}
	if attributes(req)[sourceAddress] == nil {
		return status.Error(codes.FailedPrecondition, "the filter does not send the attribute "+sourceAddress)
	}
	return nil
}

// withAnswer returns the mode that requests the body of an error response, or the beginning of a large body. The mode BUFFERED would stall
// on a body larger than Envoy's buffer. All fields are set, because Envoy compares all of them with its list of permitted modes.
func withAnswer() *modev3.ProcessingMode {
	return &modev3.ProcessingMode{
		RequestHeaderMode:   modev3.ProcessingMode_SEND,
		ResponseHeaderMode:  modev3.ProcessingMode_SEND,
		RequestBodyMode:     modev3.ProcessingMode_BUFFERED,
		ResponseBodyMode:    modev3.ProcessingMode_BUFFERED_PARTIAL,
		RequestTrailerMode:  modev3.ProcessingMode_SKIP,
		ResponseTrailerMode: modev3.ProcessingMode_SKIP,
	}
}

// inbound converts a request headers message.
func inbound(req *extprocv3.ProcessingRequest, h *extprocv3.HttpHeaders) (filter.Inbound, error) {
	header, pseudo := readHeaders(h.Headers)
	if pseudo[":method"] == "" { // CONNECT requests have no path; the chain refuses them
		return filter.Inbound{}, status.Error(codes.InvalidArgument, "request headers do not contain a method")
	}
	path, query, _ := strings.Cut(pseudo[":path"], "?")
	in := filter.Inbound{
		Door: filter.DoorExtProc, Method: pseudo[":method"], Path: path, Query: query,
		Major: 1, Minor: 1, Header: header, Length: -1,
	}
	if h.EndOfStream || in.Method == http.MethodConnect {
		in.Length = 0 // data after CONNECT is not a body (RFC 9110, section 9.3.6)
	}
	if v := header.Values("Content-Length"); len(v) == 1 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 {
			in.Length = n
		}
	}
	attrs := attributes(req)
	if a := attrs[sourceAddress].GetStringValue(); a != "" {
		in.Peer = strings.Trim(a[:max(strings.LastIndexByte(a, ':'), 0)], "[]")
	}
	if attrs[requestProtocol].GetStringValue() == "HTTP/1.0" {
		in.Minor = 0
	}
	return in, nil
}

// traced returns the context of a gRPC call with Envoy's span, if there is one. Envoy's trace context is trusted without further checks,
// because Envoy also receives the platform keys.
func traced(ctx context.Context) context.Context {
	header := make(http.Header, 2)
	for _, name := range []string{"traceparent", "tracestate"} {
		for _, v := range metadata.ValueFromIncomingContext(ctx, name) {
			header.Add(name, v)
		}
	}
	return telemetry.WithRemoteParent(ctx, header)
}

// attributes returns the attributes of a message.
func attributes(req *extprocv3.ProcessingRequest) map[string]*structpb.Value {
	return req.GetAttributes()[filterName].GetFields()
}

// readHeaders splits a header map into header fields with canonical names and pseudo-headers.
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
