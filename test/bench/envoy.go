package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// envoy is what Envoy does in front.
type envoy int

const (
	// noEnvoy is no Envoy.
	noEnvoy envoy = iota
	// envoyAlone passes requests to the platform.
	envoyAlone
	// envoyInline passes them to the gateway's HTTP door.
	envoyInline
	// envoyExtProc asks the gateway's ext_proc server about them.
	envoyExtProc
	// envoyRival asks OPA's plugin and ratelimit.
	envoyRival
	// envoyLibrary asks a server around OPA's library, and ratelimit.
	envoyLibrary
)

// front is how Envoy differs from the bootstrap in deploy.
type front struct {
	// filters stand before the router; nil are those of the bootstrap.
	filters []any
	// rateLimits are the descriptors that are counted for every request, if any.
	rateLimits []any
	// clusters are the addresses of the bootstrap's clusters; those without one are
	// left out. Further ones, that speak gRPC, are grpc.
	clusters map[string][]string
	grpc     map[string]string
}

// object is one object of Envoy's bootstrap.
type object = map[string]any

// startEnvoy starts Envoy with the settings of the bootstrap in deploy and one
// worker. Callers connect to it from then on.
func (r *runner) startEnvoy(ctx context.Context, i *instance, f front) error {
	program, err := exec.LookPath("envoy")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(r.settings.Envoy)
	if err != nil {
		return err
	}
	var doc object
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("%s: %w", r.settings.Envoy, err)
	}
	addr, err := port(ctx)
	if err != nil {
		return err
	}
	admin, err := port(ctx)
	if err != nil {
		return err
	}
	if err := f.shape(doc, addr, admin); err != nil {
		return fmt.Errorf("%s: %w", r.settings.Envoy, err)
	}
	text, err = json.Marshal(doc)
	if err != nil {
		return err
	}
	file := filepath.Join(r.machine.dir, "envoy.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	cmd := r.machine.command(ctx, measured, program, "-c", file, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warn")
	access, err := os.Create(filepath.Join(r.machine.dir, "access.log"))
	if err != nil {
		return err
	}
	defer func() { _ = access.Close() }()
	cmd.Stdout = access
	i.addr = addr
	err = r.pass(ctx, i, "envoy", cmd, answers("http://"+admin+"/ready"))
	i.envoy = i.way[len(i.way)-1]
	return err
}

// shape puts a bootstrap on loopback and makes it what f says.
func (f front) shape(doc object, addr, admin string) error {
	resources, ok := doc["static_resources"].(object)
	listener, ok1 := at(resources, "listeners", 0).(object)
	manager, ok2 := at(listener, "filter_chains", 0, "filters", 0, "typed_config").(object)
	if !ok || !ok1 || !ok2 {
		return errors.New("no connection manager where it was")
	}
	doc["admin"] = object{"address": socket(admin)}
	listener["address"] = socket(addr)
	if host, ok := at(manager, "route_config", "virtual_hosts", 0).(object); ok && f.rateLimits != nil {
		host["rate_limits"] = f.rateLimits
	}
	if f.filters != nil {
		were, _ := manager["http_filters"].([]any)
		if len(were) == 0 {
			return errors.New("no filters")
		}
		manager["http_filters"] = append(f.filters, were[len(were)-1])
	}
	all, _ := resources["clusters"].([]any)
	var kept []any
	for _, c := range all {
		cluster, _ := c.(object)
		name, _ := cluster["name"].(string)
		if to := f.clusters[name]; to != nil {
			cluster["type"] = "STATIC"
			delete(cluster, "transport_socket")
			cluster["load_assignment"] = endpoint(name, to...)
			kept = append(kept, cluster)
		}
	}
	for name, to := range f.grpc {
		kept = append(kept, object{"name": name, "type": "STATIC", "load_assignment": endpoint(name, to), "typed_extension_protocol_options": object{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": object{
				"@type":                "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
				"explicit_http_config": object{"http2_protocol_options": object{}},
			},
		}})
	}
	resources["clusters"] = kept
	return nil
}

// at follows keys and indices; nil stands for an absent value.
func at(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(object)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

func endpoint(cluster string, addrs ...string) object {
	var all []any
	for _, a := range addrs {
		all = append(all, object{"endpoint": object{"address": socket(a)}})
	}
	return object{"cluster_name": cluster, "endpoints": []any{object{"lb_endpoints": all}}}
}

func socket(addr string) object {
	host, text := split(addr)
	number, _ := strconv.Atoi(text) // ours
	return object{"socket_address": object{"address": host, "port_value": number}}
}
