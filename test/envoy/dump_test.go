package envoy

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/world"
)

// dump is what Envoy says it runs with, dynamic and static.
type dump struct {
	// listener is that of callers, manager its HTTP connection manager.
	listener, manager map[string]any
	// filters are those of requests, by name, without the type.
	filters map[string]map[string]any
	// order lists their names.
	order []string
	// routes are those of all virtual hosts, clusters those of callers' requests,
	// by name.
	routes   []any
	clusters map[string]map[string]any
}

// dump reads Envoy's own account of its configuration, once the listener of callers
// and its routes are in it: it accepts callers a moment before.
func (p *process) dump(t *testing.T) (d *dump) {
	t.Helper()
	world.Until(t, "envoy shows its listener and routes", func() bool {
		d = p.shown(t)
		return len(d.manager) > 0 && len(d.routes) > 0
	})
	return d
}

func (p *process) shown(t *testing.T) *dump {
	t.Helper()
	var doc struct{ Configs []map[string]any }
	if err := json.Unmarshal([]byte(p.ask(t, "/config_dump")), &doc); err != nil {
		t.Fatal(err)
	}
	d := &dump{filters: make(map[string]map[string]any), clusters: make(map[string]map[string]any)}
	for _, section := range doc.Configs {
		for _, v := range list(section["dynamic_listeners"]) {
			if l := object(v, "active_state", "listener"); l["name"] == "callers" {
				d.listener = l
			}
		}
		for _, kind := range []string{"dynamic_active_clusters", "static_clusters"} {
			for _, v := range list(section[kind]) {
				c := object(v, "cluster")
				if name, _ := c["name"].(string); name != "" {
					d.clusters[name] = c
				}
			}
		}
		for _, v := range list(section["dynamic_route_configs"]) {
			for _, host := range list(object(v, "route_config")["virtual_hosts"]) {
				d.routes = append(d.routes, list(object(host)["routes"])...)
			}
		}
	}
	for _, chain := range list(d.listener["filter_chains"]) {
		for _, f := range list(object(chain)["filters"]) {
			d.manager = object(f, "typed_config")
		}
	}
	for _, f := range list(d.manager["http_filters"]) {
		name, _ := object(f)["name"].(string)
		d.order = append(d.order, name)
		d.filters[name] = object(f, "typed_config")
	}
	return d
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// object follows keys to an object; an absent one is empty.
func object(v any, path ...string) map[string]any {
	m, _ := v.(map[string]any)
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

func sameListener(a, b *dump) bool { return cmp.Equal(a.listener, b.listener) && len(a.listener) > 0 }
