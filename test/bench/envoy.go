package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/goccy/go-yaml"
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
)

// object is one object of Envoy's bootstrap.
type object = map[string]any

// startEnvoy starts Envoy with the settings of the bootstrap in deploy, one worker,
// and its filters exchanged. Its clusters lead to the addresses given by name.
func (r *runner) startEnvoy(ctx context.Context, filters []any, clusters map[string]string) (p *process, addr string, err error) {
	program, err := exec.LookPath("envoy")
	if err != nil {
		return nil, "", err
	}
	text, err := os.ReadFile(r.settings.Envoy)
	if err != nil {
		return nil, "", err
	}
	var doc object
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, "", fmt.Errorf("%s: %w", r.settings.Envoy, err)
	}
	addr, err = port(ctx)
	if err != nil {
		return nil, "", err
	}
	admin, err := port(ctx)
	if err != nil {
		return nil, "", err
	}
	if err := shape(doc, addr, admin, filters, clusters); err != nil {
		return nil, "", fmt.Errorf("%s: %w", r.settings.Envoy, err)
	}
	text, err = json.Marshal(doc)
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(r.machine.dir, "envoy.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, "", err
	}
	cmd := r.machine.command(ctx, measured, program, "-c", file, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warn")
	access, err := os.Create(filepath.Join(r.machine.dir, "access.log"))
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = access.Close() }()
	cmd.Stdout = access
	p, err = r.machine.start("envoy", cmd, nil)
	if err != nil {
		return nil, "", err
	}
	return p, addr, p.ready(ctx, answers("http://"+admin+"/ready"))
}

// shape puts a bootstrap on loopback. The filters replace those before the router;
// nil keeps them.
func shape(doc object, addr, admin string, filters []any, clusters map[string]string) error {
	resources, ok := doc["static_resources"].(object)
	listener, ok1 := at(resources, "listeners", 0).(object)
	manager, ok2 := at(listener, "filter_chains", 0, "filters", 0, "typed_config").(object)
	if !ok || !ok1 || !ok2 {
		return errors.New("no connection manager where it was")
	}
	doc["admin"] = object{"address": socket(admin)}
	listener["address"] = socket(addr)
	if filters != nil {
		were, _ := manager["http_filters"].([]any)
		if len(were) == 0 {
			return errors.New("no filters")
		}
		manager["http_filters"] = append(filters, were[len(were)-1])
	}
	all, _ := resources["clusters"].([]any)
	var kept []any
	for _, c := range all {
		cluster, _ := c.(object)
		name, _ := cluster["name"].(string)
		if to := clusters[name]; to != "" {
			cluster["type"] = "STATIC"
			delete(cluster, "transport_socket")
			cluster["load_assignment"] = endpoint(name, to)
			kept = append(kept, cluster)
		}
	}
	resources["clusters"] = kept
	return nil
}

// at follows keys and indices; nil is what is not there.
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

func endpoint(cluster, addr string) object {
	return object{"cluster_name": cluster, "endpoints": []any{object{"lb_endpoints": []any{object{"endpoint": object{"address": socket(addr)}}}}}}
}

func socket(addr string) object {
	host, text, _ := net.SplitHostPort(addr) // ours
	number, _ := strconv.Atoi(text)
	return object{"socket_address": object{"address": host, "port_value": number}}
}
