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

// The rival is what a company would put together instead of tollgate: Envoy, which
// asks OPA's plugin (ext_authz) about every request and envoyproxy/ratelimit about
// nine counters. It has the five policies' rules, and nothing of the rest.

//go:embed rival.rego
var rivalRules string

// Names of the rival's programs.
const (
	opaProgram       = "opa-envoy-plugin"
	ratelimitProgram = "ratelimit"
)

// startRival starts OPA, ratelimit, a Redis and Envoy.
func (r *runner) startRival(ctx context.Context, i *instance) error {
	opaPath, err := exec.LookPath(opaProgram)
	if err != nil {
		return err
	}
	ratelimitPath, err := exec.LookPath(ratelimitProgram)
	if err != nil {
		return err
	}
	var opaHTTP, opa, limitsHTTP, limits, debug string
	for _, to := range []*string{&opaHTTP, &opa, &limitsHTTP, &limits, &debug} {
		if *to, err = port(ctx); err != nil {
			return err
		}
	}
	if err := r.rivalFiles(); err != nil {
		return err
	}
	store, err := r.startRedis(ctx, i)
	if err != nil {
		return err
	}
	cmd := r.machine.command(ctx, measured, opaPath, "run", "--server", "--addr", opaHTTP,
		"--set", "plugins.envoy_ext_authz_grpc.addr="+opa, "--set", "plugins.envoy_ext_authz_grpc.path=bench/decision",
		"--set", "decision_logs.console=true", filepath.Join(r.machine.dir, "rival"))
	if err := r.pass(ctx, i, opaProgram, cmd, answers("http://"+opaHTTP+"/health")); err != nil {
		return err
	}
	cmd = r.machine.command(ctx, measured, ratelimitPath)
	host, number := split(limits)
	_, httpPort := split(limitsHTTP)
	_, debugPort := split(debug)
	cmd.Env = []string{
		"RUNTIME_ROOT=" + r.machine.dir, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false", "USE_STATSD=false", "USE_PROMETHEUS=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + store, "LOG_LEVEL=warn",
		"HOST=" + host, "PORT=" + httpPort, "GRPC_HOST=" + host, "GRPC_PORT=" + number, "DEBUG_HOST=" + host, "DEBUG_PORT=" + debugPort,
	}
	if err := r.pass(ctx, i, ratelimitProgram, cmd, answers("http://"+limitsHTTP+"/healthcheck")); err != nil {
		return err
	}
	return r.startEnvoy(ctx, i, front{
		filters:    []any{rivalAuthorization(), rivalLimits()},
		rateLimits: rivalDescriptors(),
		clusters:   map[string][]string{"platform": {r.platform.Addr}},
		grpc:       map[string]string{opaProgram: opa, ratelimitProgram: limits},
	})
}

// rivalFiles writes OPA's rules and data, and ratelimit's configuration.
func (r *runner) rivalFiles() error {
	known := map[string]object{identity.DigestOf(spentKey).String(): {"id": "spent", "team": "team0"}}
	for n := range callers {
		number := []byte(callerMark)
		digits(number, int64(n))
		known[identity.DigestOf("bench-caller-"+string(number)).String()] = object{"id": "caller" + strconv.Itoa(n), "team": "team" + strconv.Itoa(n%10)}
	}
	prices, err := gpuPrices(r.platform.Answers["GET /v2/catalog/gpus"])
	if err != nil {
		return err
	}
	data, err := json.Marshal(object{"callers": known, "prices": prices})
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		"rival/bench.rego": rivalRules, "rival/data.json": string(data), "ratelimit/config/bench.yaml": rivalQuotas(),
	} {
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
