package extauthz

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/gateway/extproc"
	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// partialBody is the header by which Envoy says whether the body it shows is all of it.
const partialBody = "X-Envoy-Auth-Partial-Body"

// checkFilter refuses to judge requests for a filter that is not set up to be judged
// for. It must show headers one by one and bodies as they are and whole: a part of a
// body is not judged, nor is a request without the body that it announces. The chain
// refuses a call that takes a body and has none, whatever it announces.
func checkFilter(r *authv3.AttributeContext_HttpRequest, in *filter.Inbound) error {
	fault := func(format string, args ...any) error {
		return status.Errorf(codes.FailedPrecondition, format, args...)
	}
	switch {
	case in.Method == "":
		return status.Error(codes.InvalidArgument, "a request without a method")
	case r.GetHeaderMap() == nil:
		return fault("the filter joins headers of one name: set encode_raw_headers")
	case r.GetBody() != "":
		return fault("the filter changes bodies that are not UTF-8: set with_request_body.pack_as_bytes")
	case slices.Contains(in.Header[partialBody], "true"):
		return fault("the filter sends a part of the body: with_request_body.allow_partial_message must be off")
	case in.Length > 0 && in.Length != int64(len(in.Body)):
		return fault("the filter sends %d bytes of a body of another length (%d): set with_request_body", len(in.Body), in.Length)
	case in.Peer == "":
		return fault("the filter does not send source.address")
	}
	return nil
}

// inbound reads a request. Its length is -1 when it was not declared.
func inbound(a *authv3.AttributeContext) filter.Inbound {
	r := a.GetRequest().GetHttp()
	header, _ := extproc.ReadHeaders(r.GetHeaderMap())
	path, query, _ := strings.Cut(r.GetPath(), "?")
	in := filter.Inbound{
		Door: filter.DoorExtAuthz, Method: r.GetMethod(), Path: path, Query: query, Major: 1, Minor: 1,
		Header: header, Length: -1, Body: r.GetRawBody(), Peer: a.GetSource().GetAddress().GetSocketAddress().GetAddress(),
	}
	if in.Method == http.MethodConnect {
		in.Length = 0 // what follows CONNECT is no body (RFC 9110, section 9.3.6)
	}
	if v := header["Content-Length"]; len(v) == 1 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 {
			in.Length = n
		}
	}
	if r.GetProtocol() == "HTTP/1.0" {
		in.Minor = 0
	}
	return in
}
