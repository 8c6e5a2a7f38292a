package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// The rival is the set of programs that a company would put together instead of
// tollgate: Envoy, which asks OPA (ext_authz) about every request and
// envoyproxy/ratelimit about nine counters. It has the five policies' rules, and
// nothing of the rest. OPA is its plugin for Envoy, or a server around its library.

//go:embed rival.rego
var rivalRules string

// Names of the rival's programs.
const (
	opaProgram       = "opa-envoy-plugin"
	ratelimitProgram = "ratelimit"
)

// startRival starts OPA, ratelimit, a Redis and Envoy.
func (r *runner) startRival(ctx context.Context, i *instance, startOPA func(context.Context, *instance) (addr string, err error)) error {
	opa, err := startOPA(ctx, i)
	if err != nil {
		return err
	}
	limits, err := r.startRatelimit(ctx, i)
	if err != nil {
		return err
	}
	return r.startEnvoy(ctx, i, front{
		filters:    []any{rivalAuthorization(), rivalLimits()},
		rateLimits: rivalDescriptors(),
		clusters:   map[string][]string{"platform": {r.platform.Addr}},
		grpc:       map[string]string{opaProgram: opa, ratelimitProgram: limits},
	})
}

// startPlugin starts OPA with its plugin for Envoy.
func (r *runner) startPlugin(ctx context.Context, i *instance) (addr string, err error) {
	program, err := exec.LookPath(opaProgram)
	if err != nil {
		return "", err
	}
	data, err := r.rivalData()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(data)
	if err != nil {
		return "", err
	}
	if err := r.files(map[string]string{"rival/bench.rego": rivalRules, "rival/data.json": string(text)}); err != nil {
		return "", err
	}
	var admin string
	for _, to := range []*string{&admin, &addr} {
		if *to, err = port(ctx); err != nil {
			return "", err
		}
	}
	cmd := r.machine.command(ctx, measured, program, "run", "--server", "--addr", admin,
		"--set", "plugins.envoy_ext_authz_grpc.addr="+addr, "--set", "plugins.envoy_ext_authz_grpc.path=bench/decision",
		"--set", "decision_logs.console=true", filepath.Join(r.machine.dir, "rival"))
	return addr, r.pass(ctx, i, opaProgram, cmd, answers("http://"+admin+"/health"))
}

// startLibrary starts the server around OPA's library.
func (r *runner) startLibrary(ctx context.Context, i *instance) (addr string, err error) {
	data, err := r.rivalData()
	if err != nil {
		return "", err
	}
	if addr, err = port(ctx); err != nil {
		return "", err
	}
	p, err := r.machine.role(ctx, measured, "authorizer", authorizer{Addr: addr, Data: data})
	if err != nil {
		return "", err
	}
	i.way = append(i.way, p)
	return addr, p.ready(ctx, accepts(addr))
}

// startRatelimit starts envoyproxy/ratelimit and a Redis.
func (r *runner) startRatelimit(ctx context.Context, i *instance) (addr string, err error) {
	program, err := exec.LookPath(ratelimitProgram)
	if err != nil {
		return "", err
	}
	if err := r.files(map[string]string{"ratelimit/config/bench.yaml": rivalQuotas()}); err != nil {
		return "", err
	}
	var limitsHTTP, debug string
	for _, to := range []*string{&addr, &limitsHTTP, &debug} {
		if *to, err = port(ctx); err != nil {
			return "", err
		}
	}
	store, err := r.startRedis(ctx, i)
	if err != nil {
		return "", err
	}
	cmd := r.machine.command(ctx, measured, program)
	host, number := split(addr)
	_, httpPort := split(limitsHTTP)
	_, debugPort := split(debug)
	// Without a receiver of its statistics, ratelimit would write each of them to its log.
	cmd.Env = []string{
		"RUNTIME_ROOT=" + r.machine.dir, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false", "DISABLE_STATS=true",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + store, "LOG_LEVEL=warn",
		"HOST=" + host, "PORT=" + httpPort, "GRPC_HOST=" + host, "GRPC_PORT=" + number, "DEBUG_HOST=" + host, "DEBUG_PORT=" + debugPort,
	}
	return addr, r.pass(ctx, i, ratelimitProgram, cmd, answers("http://"+limitsHTTP+"/healthcheck"))
}

// rivalData returns the callers and prices that the rules read.
func (r *runner) rivalData() (object, error) {
	known := object{identity.DigestOf(spentKey).String(): object{"id": "spent", "team": "team0"}}
	for n := range callers {
		number := []byte(callerMark)
		digits(number, int64(n))
		known[identity.DigestOf("bench-caller-"+string(number)).String()] = object{"id": "caller" + strconv.Itoa(n), "team": "team" + strconv.Itoa(n%10)}
	}
	prices, err := gpuPrices(r.platform.Answers["GET /v2/catalog/gpus"])
	return object{"callers": known, "prices": prices}, err
}

// files writes files below the run's directory, by path.
func (r *runner) files(texts map[string]string) error {
	for path, text := range texts {
		path = filepath.Join(r.machine.dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// gpuPrices reads the price by GPU from the platform's answer.
func gpuPrices(answer string) (map[string]float64, error) {
	_, body, _ := strings.Cut(answer, "\r\n\r\n")
	var list struct {
		GPUs []struct {
			ID    string
			Price struct{ Secure float64 }
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		return nil, fmt.Errorf("price list: %w", err)
	}
	prices := map[string]float64{}
	for _, g := range list.GPUs {
		prices[g.ID] = g.Price.Secure
	}
	return prices, nil
}

// The rival's scopes, by header, and its windows.
func rivalScopes() []string  { return []string{"caller", "team", "org"} }
func rivalWindows() []string { return []string{"minute", "hour", "day"} }

func rivalQuotas() string {
	var b strings.Builder
	b.WriteString("domain: bench\ndescriptors:\n")
	for _, scope := range rivalScopes() {
		for _, window := range rivalWindows() {
			if scope == "caller" {
				fmt.Fprintf(&b, "  - {key: caller_%s, value: spent, rate_limit: {unit: %s, requests_per_unit: 1}}\n", window, window)
			}
			fmt.Fprintf(&b, "  - {key: %s_%s, rate_limit: {unit: %s, requests_per_unit: 100000000}}\n", scope, window, window)
		}
	}
	return b.String()
}

func rivalDescriptors() []any {
	var out []any
	for _, scope := range rivalScopes() {
		for _, window := range rivalWindows() {
			out = append(out, object{"actions": []any{object{"request_headers": object{"header_name": "x-" + scope, "descriptor_key": scope + "_" + window}}}})
		}
	}
	return out
}

// rivalAuthorization and rivalLimits are Envoy's filters.
func rivalAuthorization() object {
	return object{"name": "envoy.filters.http.ext_authz", "typed_config": object{
		"@type":             "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
		"grpc_service":      object{"envoy_grpc": object{"cluster_name": opaProgram}, "timeout": "2s"},
		"with_request_body": object{"max_request_bytes": 102400}, "transport_api_version": "V3",
		"status_on_error": object{"code": "ServiceUnavailable"},
	}}
}

func rivalLimits() object {
	return object{"name": "envoy.filters.http.ratelimit", "typed_config": object{
		"@type":  "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit",
		"domain": "bench", "failure_mode_deny": true, "timeout": "2s", "enable_x_ratelimit_headers": "DRAFT_VERSION_03",
		"rate_limit_service": object{"grpc_service": object{"envoy_grpc": object{"cluster_name": ratelimitProgram}}, "transport_api_version": "V3"},
	}}
}
