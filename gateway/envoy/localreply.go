package envoy

import (
	"net/http"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// requestID is the id of a request in Envoy's own errors, bounded as gateways bound it.
const requestID = "%REQ(X-REQUEST-ID):128%"

// refused is true of all answers but those that a gateway has Envoy give by ext_proc, which
// says so in their details.
const refused = "response.code_details != 'tollgate'"

// localReplies words Envoy's own errors as gateways word theirs (RFC 9457). Envoy's words
// name hosts and connections. By ext_proc, a gateway's refusal is a local reply, too, and
// stays as it is.
func localReplies(b *builder, t Topology) *managerv3.LocalReplyConfig {
	c := new(managerv3.LocalReplyConfig)
	if t == InLine {
		c.BodyFormat = problem(&structpb.Struct{Fields: map[string]*structpb.Value{
			"title": structpb.NewStringValue("Bad Request"), "detail": structpb.NewStringValue("the request cannot be read"),
		}})
	}
	for _, r := range []struct {
		status        int
		title, detail string
	}{
		{http.StatusBadRequest, "Bad Request", "the request cannot be read"},
		{http.StatusNotFound, "Not Found", "nothing is served there"},
		{http.StatusRequestTimeout, "Request Timeout", "the request did not arrive in time"},
		{http.StatusRequestEntityTooLarge, "Content Too Large", "the body is too large"},
		{http.StatusBadGateway, "Bad Gateway", "no answer of a gateway could be read; look before you repeat a change"},
		{http.StatusServiceUnavailable, "Service Unavailable", "no gateway answered; look before you repeat a change"},
		{http.StatusGatewayTimeout, "Gateway Timeout", "no gateway answered in time; look before you repeat a change"},
	} {
		m := &managerv3.ResponseMapper{
			Filter: own(b, t, r.status),
			BodyFormatOverride: problem(&structpb.Struct{Fields: map[string]*structpb.Value{
				"title": structpb.NewStringValue(r.title), "detail": structpb.NewStringValue(r.detail),
			}}),
			HeadersToAdd: []*corev3.HeaderValueOption{replaced("x-request-id", requestID)},
		}
		if r.status == http.StatusServiceUnavailable {
			m.HeadersToAdd = append(m.HeadersToAdd, replaced("retry-after", "2"))
		}
		c.Mappers = append(c.Mappers, m)
	}
	return c
}

// own selects Envoy's own errors of a status.
func own(b *builder, t Topology, status int) *accesslogv3.AccessLogFilter {
	of := &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_StatusCodeFilter{
		StatusCodeFilter: &accesslogv3.StatusCodeFilter{Comparison: &accesslogv3.ComparisonFilter{
			Op: accesslogv3.ComparisonFilter_EQ, Value: &corev3.RuntimeUInt32{DefaultValue: uint32(status), RuntimeKey: "tollgate.none"},
		}},
	}}
	if t == InLine {
		return of
	}
	others := &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ExtensionFilter{ExtensionFilter: &accesslogv3.ExtensionFilter{
		Name:       "envoy.access_loggers.extension_filters.cel",
		ConfigType: &accesslogv3.ExtensionFilter_TypedConfig{TypedConfig: b.pack(&celv3.ExpressionFilter{Expression: refused})},
	}}}
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_AndFilter{
		AndFilter: &accesslogv3.AndFilter{Filters: []*accesslogv3.AccessLogFilter{of, others}},
	}}
}

// problem is the form of a problem with these members.
func problem(of *structpb.Struct) *corev3.SubstitutionFormatString {
	of.Fields["status"] = structpb.NewStringValue("%RESPONSE_CODE%")
	of.Fields["request_id"] = structpb.NewStringValue(requestID)
	return &corev3.SubstitutionFormatString{
		Format:      &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: of},
		ContentType: "application/problem+json", OmitEmptyValues: true,
	}
}

func replaced(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}
