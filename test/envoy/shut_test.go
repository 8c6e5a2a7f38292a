package envoy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// rule is a row of the table in docs/envoy.md of what keeps the door shut: a
// setting and its value, as Envoy tells it. What Envoy does not tell has the zero
// value of its type.
type rule struct {
	setting string
	// of finds the object that has it.
	of   func(*dump) map[string]any
	want any
	// only restricts the rule to a topology.
	only string
}

const (
	extProcFilter = "envoy.filters.http.ext_proc"
	routerFilter  = "envoy.filters.http.router"
)

// rules are written from the documentation, not from what generates.
func rules() []rule {
	manager := func(d *dump) map[string]any { return d.manager }
	filter := func(d *dump) map[string]any { return d.filters[extProcFilter] }
	under := func(of func(*dump) map[string]any, path ...string) func(*dump) map[string]any {
		return func(d *dump) map[string]any { return object(of(d), path...) }
	}
	mode, mutation := under(filter, "processing_mode"), under(filter, "mutation_rules")
	return []rule{
		{"failure_mode_allow", filter, nil, mesh},
		{"request_body_mode", mode, "BUFFERED", mesh},
		{"request_header_mode", mode, "SEND", mesh},
		{"response_header_mode", mode, "SEND", mesh},
		{"response_body_mode", mode, nil, mesh}, // NONE
		{"allow_mode_override", filter, true, mesh},
		{"allowed_override_modes", filter, nil, mesh},
		{"observability_mode", filter, nil, mesh},
		{"request_attributes", filter, []any{"source.address", "request.protocol"}, mesh},
		{"response_attributes", filter, []any{"response.code_details"}, mesh},
		{"allow_envoy", mutation, true, mesh},
		{"allow_all_routing", mutation, nil, mesh},
		{"disallow_is_error", mutation, true, mesh},
		{"status_on_error", filter, map[string]any{"code": "ServiceUnavailable"}, mesh},
		{"route_cache_action", filter, "RETAIN", mesh},
		{"retry_on", under(filter, "grpc_service", "retry_policy"), unsent, mesh},
		{"internal_address_config", manager, nil, ""},
		{"use_remote_address", manager, true, ""},
		{"normalize_path", manager, nil, ""},
		{"merge_slashes", manager, nil, ""},
		{"path_with_escaped_slashes_action", manager, "KEEP_UNCHANGED", ""},
		{"headers_with_underscores_action", under(manager, "common_http_protocol_options"), nil, ""}, // ALLOW
		{"upgrade_configs", manager, nil, ""},
		{"suppress_envoy_headers", func(d *dump) map[string]any { return d.filters[routerFilter] }, true, ""},
		{"per_connection_buffer_limit_bytes", func(d *dump) map[string]any { return d.listener }, 131072.0, ""},
	}
}

// open lists what leaves the door open in an Envoy of a group.
func (d *dump) open(group string) []string {
	var found []string
	for _, r := range rules() {
		if r.only != "" && r.only != group {
			continue
		}
		got := r.of(d)[r.setting]
		if r.want == nil && (got == false || got == "NONE" || got == "ALLOW") {
			got = nil
		}
		if !reflect.DeepEqual(got, r.want) {
			found = append(found, fmt.Sprintf("%s is %v", r.setting, got))
		}
	}
	filters, clusters := []string{routerFilter}, []string{"tollgate"}
	if group == mesh {
		filters, clusters = []string{extProcFilter, routerFilter}, []string{"platform", "tollgate"}
		if d.clusters[httpDoor] != nil {
			clusters = append(clusters, httpDoor)
		}
	}
	if !slices.Equal(d.order, filters) {
		found = append(found, fmt.Sprintf("filters are %v", d.order))
	}
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(d.clusters)), func(name string) bool { return name == "tollgate_xds" })
	if !slices.Equal(known, clusters) {
		found = append(found, fmt.Sprintf("clusters are %v", known))
	}
	early := fmt.Sprint(d.manager["early_header_mutation_extensions"])
	if !strings.Contains(early, "remove_on_match:map[key_matcher:map[prefix:x-envoy-]]") {
		found = append(found, "x-envoy- headers of callers stay: "+early)
	}
	return append(found, d.openRoutes(group, clusters[0])...)
}

// httpDoor is the cluster of the HTTP doors where others are asked by ext_proc.
const httpDoor = "tollgate_http"

// When a request, or a question about one, may be sent again: at any time if it did not
// reach a gateway, and after that if the route is for safe methods only.
const unsent, unanswered = "connect-failure,refused-stream,reset-before-request", "connect-failure,refused-stream,reset"

func retries(route any, on any) bool {
	match := object(route, "match")
	safe := strings.Contains(fmt.Sprint(match["headers"]), "GET|HEAD") || strings.Contains(fmt.Sprint(match["safe_regex"]), "/logs")
	return on == unsent || safe && on == unanswered
}

// overrides reports whether a route of safe methods changes nothing of the filter but when
// a gateway is asked again.
func overrides(route any) bool {
	own := object(route, "typed_per_filter_config", extProcFilter, "overrides")
	service := object(own, "grpc_service")
	return len(own) == 1 && object(service, "envoy_grpc")["cluster_name"] == "tollgate" && retries(route, object(service, "retry_policy")["retry_on"])
}

// openRoutes lists the routes that lead past the gateway, or repeat a call. The run
// interface goes to the HTTP door in either topology, past the filter.
func (d *dump) openRoutes(group, cluster string) []string {
	var found []string
	if len(d.routes) == 0 {
		found = append(found, "there are no routes")
	}
	for _, r := range d.routes {
		to := object(r, "route")
		direct := group == edge || to["cluster"] == httpDoor
		if to["cluster"] != cluster && !direct || group == edge && to["cluster"] != cluster {
			found = append(found, fmt.Sprintf("a route leads to %v", to["cluster"]))
		}
		retry := object(to, "retry_policy")
		if on := retry["retry_on"]; on != nil && (!direct || !retries(r, on)) {
			found = append(found, fmt.Sprintf("a route retries on %v", on))
		}
		if to["hedge_policy"] != nil && (group != edge || !strings.Contains(fmt.Sprint(object(r, "match")["headers"]), "GET|HEAD")) {
			found = append(found, "a route of changes has hedge_policy")
		}
		for _, key := range []string{"typed_per_filter_config", "request_mirror_policies", "internal_redirect_policy"} {
			if (object(r)[key] != nil || to[key] != nil) && (key != "typed_per_filter_config" || to["cluster"] != httpDoor && !overrides(r)) {
				found = append(found, "a route has "+key)
			}
		}
	}
	return found
}

// The configuration of a fleet's Envoys keeps the door shut, by their own account; and the
// check finds every single setting that does not.
func TestTheDoorIsShut(t *testing.T) {
	f := newFleet(t, configuration+groups)
	m := f.run(t, nil)
	for _, group := range []string{edge, mesh} {
		t.Run(group, func(t *testing.T) {
			p := start(t, bootstrapOf(t, group, m.door))
			if found := p.dump(t).open(group); len(found) > 0 {
				t.Errorf("open: %q", found)
			}
			for _, r := range rules() {
				if r.only != "" && r.only != group {
					continue
				}
				d := p.dump(t)
				if of := r.of(d); of == nil {
					t.Errorf("%s: nothing has it", r.setting)
				} else {
					of[r.setting] = "OTHER"
				}
				if found := d.open(group); len(found) != 1 || !strings.HasPrefix(found[0], r.setting) {
					t.Errorf("%s is another: open = %q, want it and nothing else", r.setting, found)
				}
			}
			for name, change := range map[string]func(*dump){
				"a filter before":     func(d *dump) { d.order = append([]string{"envoy.filters.http.lua"}, d.order...) },
				"a further cluster":   func(d *dump) { d.clusters["elsewhere"] = nil },
				"a route elsewhere":   func(d *dump) { object(d.routes[0], "route")["cluster"] = "elsewhere" },
				"a route that passes": func(d *dump) { object(d.routes[0])["typed_per_filter_config"] = map[string]any{} },
				"a route that is the filter's own master": func(d *dump) {
					object(d.routes[0])["typed_per_filter_config"] = map[string]any{extProcFilter: map[string]any{"overrides": map[string]any{"failure_mode_allow": true}}}
				},
				"retries": func(d *dump) { object(d.routes[0], "route")["retry_policy"] = map[string]any{"retry_on": "5xx"} },
				"retries of creates": func(d *dump) {
					object(d.routes[len(d.routes)-1], "route")["retry_policy"] = map[string]any{"retry_on": unanswered}
				},
				"second copies of creates": func(d *dump) {
					object(d.routes[len(d.routes)-1], "route")["hedge_policy"] = map[string]any{"hedge_on_per_try_timeout": true}
				},
				"headers of callers": func(d *dump) { delete(d.manager, "early_header_mutation_extensions") },
			} {
				d := p.dump(t)
				change(d)
				if found := d.open(group); len(found) != 1 {
					t.Errorf("%s: open = %q, want one", name, found)
				}
			}
		})
	}
}
