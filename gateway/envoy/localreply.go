package envoy

import (
	"net/http"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// requestID is the format of the request ID in errors that Envoy generates. It has the same maximum length as in gateways.
const requestID = "%REQ(X-REQUEST-ID):128%"

// refused is an expression that is false for responses that a gateway returns through ext_proc, which have this value of
// response.code_details, and true for all other responses.
const refused = "response.code_details != 'tollgate'"

// localReplies formats errors that Envoy generates like errors of the gateway (RFC 9457), because Envoy's own text would reveal hosts and
// connections. In the topology ExtProc, refusals of the gateway are also local replies; they are not changed.
func localReplies(b *builder, t Topology) *managerv3.LocalReplyConfig {
	c := new(managerv3.LocalReplyConfig)
	if t == InLine {
		c.BodyFormat = problem("Bad Request", "the request cannot be read")
	}
	for _, r := range []struct {
		status        int
		title, detail string
	}{
		{http.StatusBadRequest, "Bad Request", "the request cannot be read"},
		{http.StatusNotFound, "Not Found", "no operation has this path"},
		{http.StatusRequestTimeout, "Request Timeout", "the request did not arrive in time"},
		{http.StatusRequestEntityTooLarge, "Content Too Large", "the body is too large"},
		{http.StatusBadGateway, "Bad Gateway", "no readable response from a gateway; check the outcome before you repeat a change"},
		{http.StatusServiceUnavailable, "Service Unavailable", "no gateway responded; check the outcome before you repeat a change"},
		{http.StatusGatewayTimeout, "Gateway Timeout", "no gateway responded in time; check the outcome before you repeat a change"},
	} {
		m := &managerv3.ResponseMapper{
			Filter: own(b, t, r.status), BodyFormatOverride: problem(r.title, r.detail),
			HeadersToAdd: []*corev3.HeaderValueOption{replaced("x-request-id", requestID)},
		}
		if r.status == http.StatusServiceUnavailable {
			m.HeadersToAdd = append(m.HeadersToAdd, replaced("retry-after", "2"))
		}
		c.Mappers = append(c.Mappers, m)
	}
	return c
}

// own matches errors with the given status that Envoy generates.
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

// problem returns the format of a problem document.
func problem(title, detail string) *corev3.SubstitutionFormatString {
	of := jsonFormat(map[string]string{"title": title, "detail": detail, "status": "%RESPONSE_CODE%", "request_id": requestID})
	of.ContentType, of.OmitEmptyValues = "application/problem+json", true
	return of
}

// jsonFormat returns a format for JSON objects with the given members.
func jsonFormat(members map[string]string) *corev3.SubstitutionFormatString {
	fields := make(map[string]*structpb.Value, len(members))
	for name, value := range members {
		fields[name] = structpb.NewStringValue(value)
	}
	return &corev3.SubstitutionFormatString{
		Format: &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: &structpb.Struct{Fields: fields}},
	}
}

func replaced(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}
