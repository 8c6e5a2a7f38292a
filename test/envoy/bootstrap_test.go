package envoy

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// bootstrap is deploy/envoy.yaml, decoded.
type bootstrap struct {
	t   *testing.T
	doc map[string]any
}

// node is one object of the bootstrap.
type node map[string]any

// shipped reads deploy/envoy.yaml.
func shipped(t *testing.T) *bootstrap {
	t.Helper()
	text, err := os.ReadFile("../../deploy/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := &bootstrap{t: t}
	if err := yaml.Unmarshal(text, &b.doc); err != nil {
		t.Fatal(err)
	}
	return b
}

// at follows keys (string) and indices (int) from the document's root to an
// object.
func (b *bootstrap) at(path ...any) node {
	b.t.Helper()
	var v any = b.doc
	for i, step := range path {
		switch s := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok || m[s] == nil {
				b.t.Fatalf("deploy/envoy.yaml has nothing at %v", path[:i+1])
			}
			v = m[s]
		case int:
			l, ok := v.([]any)
			if !ok || s >= len(l) {
				b.t.Fatalf("deploy/envoy.yaml has nothing at %v", path[:i+1])
			}
			v = l[s]
		}
	}
	m, ok := v.(map[string]any)
	if !ok {
		b.t.Fatalf("deploy/envoy.yaml has no object at %v", path)
	}
	return m
}

// listener, manager, filter and virtualHost are the objects tests look at.
func (b *bootstrap) listener() node {
	b.t.Helper()
	return b.at("static_resources", "listeners", 0)
}

func (b *bootstrap) manager() node {
	b.t.Helper()
	return b.at("static_resources", "listeners", 0, "filter_chains", 0, "filters", 0, "typed_config")
}

func (b *bootstrap) filter() node {
	b.t.Helper()
	return b.at("static_resources", "listeners", 0, "filter_chains", 0, "filters", 0, "typed_config", "http_filters", 0, "typed_config")
}

func (b *bootstrap) routes() []any {
	b.t.Helper()
	host := b.at("static_resources", "listeners", 0, "filter_chains", 0, "filters", 0, "typed_config", "route_config", "virtual_hosts", 0)
	routes, ok := host["routes"].([]any)
	if !ok {
		b.t.Fatal("deploy/envoy.yaml has no routes")
	}
	return routes
}

// setRoutes replaces the routes.
func (b *bootstrap) setRoutes(routes []any) {
	b.t.Helper()
	b.at("static_resources", "listeners", 0, "filter_chains", 0, "filters", 0, "typed_config", "route_config", "virtual_hosts", 0)["routes"] = routes
}

// cluster finds a cluster by name.
func (b *bootstrap) cluster(name string) node {
	b.t.Helper()
	clusters, _ := b.at("static_resources")["clusters"].([]any)
	for i := range clusters {
		if c := b.at("static_resources", "clusters", i); c["name"] == name {
			return c
		}
	}
	b.t.Fatalf("deploy/envoy.yaml has no cluster %s", name)
	return nil
}

// point sends a cluster to an address, without TLS.
func (b *bootstrap) point(name, addr string) {
	b.t.Helper()
	c := b.cluster(name)
	c["type"] = "STATIC"
	delete(c, "transport_socket")
	c["load_assignment"] = node{"cluster_name": name, "endpoints": []any{node{"lb_endpoints": []any{node{
		"endpoint": node{"address": socket(b.t, addr)},
	}}}}}
}

// local puts listener and admin on loopback, on ports of the kernel's choice.
func (b *bootstrap) local() {
	b.t.Helper()
	b.listener()["address"] = socket(b.t, "127.0.0.1:0")
	b.at("admin")["address"] = socket(b.t, "127.0.0.1:0")
}

func socket(t *testing.T, addr string) node {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return node{"socket_address": node{"address": host, "port_value": n}}
}

// documented returns the filter of ext_proc as docs/envoy.md has it.
func documented(t *testing.T) map[string]any {
	t.Helper()
	page, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```yaml\n- name: "+extProcFilter+"\n")
	text, _, closed := strings.Cut(text, "```")
	var list []map[string]any
	if err := yaml.Unmarshal([]byte("- name: "+extProcFilter+"\n"+text), &list); err != nil || !found || !closed || len(list) != 1 {
		t.Fatalf("docs/envoy.md has no filter %s: %v", extProcFilter, err)
	}
	return list[0]
}

// The filter for meshes that exist is the one that is tested.
func TestTheDocumentedProcessorIsTheShippedOne(t *testing.T) {
	want := shipped(t).at("static_resources", "listeners", 0, "filter_chains", 0, "filters", 0, "typed_config", "http_filters", 0)
	if diff := cmp.Diff(map[string]any(want), documented(t)); diff != "" {
		t.Errorf("docs/envoy.md differs (-deploy/envoy.yaml +docs):\n%s", diff)
	}
}
