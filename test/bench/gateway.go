package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// gateway is how tollgate is configured.
type gateway struct {
	// ten is ten policies, of which one reads names and one variables, instead of
	// five.
	ten bool
	// leased counts by leases, not exactly.
	leased bool
	// budgets are in force for callers, teams and the organisation.
	budgets bool
	// cold remembers no verdict.
	cold bool
	// over calls the platform over TLS.
	over bool
	// traced sends one trace in a hundred to a collector.
	traced bool
}

// spentKey is a caller that may make one call a day.
const spentKey = "bench-spent-001"

// Five policies, and five more.
const (
	fivePolicies = `
      - {policy: gpu_allow_list, params: {gpus: ["NVIDIA L4", "NVIDIA GeForce RTX 4090"]}}
      - {policy: gpu_count, params: {max_per_pod: 2}}
      - {policy: price_ceiling, params: {max_usd_per_hour: 40}}
      - {policy: cloud_tier, params: {clouds: [SECURE]}}
      - {policy: disk, params: {max_gb: 100}}`
	tenPolicies = fivePolicies + `
      - {policy: images, params: {allow: [registry.example/team]}}
      - {policy: ports, params: {max: 5}}
      - {policy: operations, params: {deny: [updateSshKeys]}}
      - {policy: naming, params: {pattern: "[a-z]+-[a-z0-9-]+", max_length: 40}}
      - {policy: env_rules, params: {forbidden: [AWS_*]}}`
)

// plenty are quotas that do not bite, in three windows.
const plenty = "{minute: 100000000, hour: 100000000, day: 100000000}"

// ample are budgets that do not bite.
const ample = "budget: {per_month: 1000000000, pods: 1000000000}"

// addresses are those of a gateway's listeners and of the servers that it calls.
type addresses struct {
	data, admin, extproc string
	platform, secure     string
	// runs is set if the platform's run interface is measured, too.
	runs bool
	// certificate and key are the files of TLS; empty is none.
	certificate, key string
}

// configuration is the gateway's file. It says little beside the needs of a measurement,
// so that older binaries take it too: patience, because a machine that is measured is
// busy, and no bound per address, because all callers share one.
func (g gateway) configuration(a addresses) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("listen: %s", a.data)
	line("admin: {listen: %q}", a.admin)
	if a.certificate != "" {
		line("tls: {certificate: {file: %q}, key: {file: %q}}", a.certificate, a.key)
	}
	if a.extproc != "" {
		line("envoy: {listen: %q}", a.extproc)
	}
	platform, more := "http://"+a.platform, ""
	if g.over {
		platform = "https://" + a.secure
	}
	if a.runs {
		more += fmt.Sprintf(", run_url: %q", platform)
	}
	line("platform: {base_url: %q%s}", platform, more)
	line("redis: {url: {env: BENCH_REDIS}}")
	line("connections: {total: 20000, per_address: 0}")
	mode := "exact"
	if g.leased {
		mode = "leased"
	}
	line("limits: {mode: %s, timeout: 2s, anonymous_exempt: [127.0.0.1/32]}", mode)
	if g.cold {
		line("policies: {deadline: 2s, remember: 0}")
	} else {
		line("policies: {deadline: 2s}")
	}
	if g.traced {
		line("telemetry: {sample_ratio: 0.01, otlp: {endpoint: %q}}", "http://"+a.platform)
	}
	policies := fivePolicies
	if g.ten {
		policies = tenPolicies
	}
	line("orgs:\n  - id: bench\n    credential: {env: BENCH_PLATFORM_KEY}\n    limits: %s\n    policies:%s", plenty, policies)
	budget := ""
	if g.budgets {
		budget = ", " + ample
		line("    " + ample)
	}
	line("    teams:")
	const teams = 10
	for i := range teams {
		line("      - {id: team%d, limits: %s%s}", i, plenty, budget)
	}
	line("    keys:")
	key := func(id, secret, limits string, team int) {
		line("      - {id: %s, team: team%d, roles: [operator], sha256: %q, limits: %s%s}", id, team, identity.DigestOf(secret), limits, budget)
	}
	key("spent", spentKey, "{minute: 1, hour: 1, day: 1}", 0)
	for i := range callers {
		number := []byte(callerMark)
		digits(number, int64(i))
		key("caller"+strconv.Itoa(i), "bench-caller-"+string(number), plenty, i%teams)
	}
	return b.String()
}
