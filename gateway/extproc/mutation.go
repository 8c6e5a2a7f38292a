package extproc

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// managed lists the headers that Envoy sets itself.
var managed = map[string]bool{"Host": true, "Content-Length": true, "Transfer-Encoding": true}

// mutation returns the mutation that changes the headers have to the headers want. The mutation is sorted, so that equal arguments result
// in equal messages.
func mutation(have, want http.Header) *extprocv3.HeaderMutation {
	m := &extprocv3.HeaderMutation{}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, keep := want[name]; !keep && !managed[name] {
			m.RemoveHeaders = append(m.RemoveHeaders, strings.ToLower(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if managed[name] || name == "Connection" || slices.Equal(have[name], want[name]) {
			continue
		}
		for i, value := range want[name] {
			add(m, strings.ToLower(name), value, i > 0)
		}
	}
	return m
}

// set overwrites a header.
func set(m *extprocv3.HeaderMutation, name, value string) { add(m, name, value, false) }

// add appends a header as raw_value, because Envoy ignores value.
func add(m *extprocv3.HeaderMutation, name, value string, more bool) {
	action := corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
	if more {
		action = corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
	}
	m.SetHeaders = append(m.SetHeaders, &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, RawValue: []byte(value)},
		AppendAction: action,
	})
}

// immediate converts a response to an immediate response of ext_proc.
func immediate(a *filter.Response) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ImmediateResponse{
		ImmediateResponse: &extprocv3.ImmediateResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode(a.Status)},
			Headers: mutation(nil, a.Header),
			Body:    a.Body,
			Details: "tollgate",
		},
	}}
}
