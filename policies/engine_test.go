package policies_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// decode reads JSON as the gateway does: numbers stay text.
func decode(tb testing.TB, s string) any {
	tb.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("%s: %v", s, err)
	}
	return v
}

func usd(tb testing.TB, s string) catalog.Money {
	tb.Helper()
	m, err := catalog.ParseMoney(s)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func gpu(tb testing.TB, id, pool, secure, serverless string) catalog.GPU {
	tb.Helper()
	return catalog.GPU{
		ID: id, Name: id, Pool: pool, Manufacturer: "NVIDIA", MemoryGB: 24,
		Secure:     catalog.Offer{Offered: true, MaxCount: 8, Price: catalog.Price{Known: true, PerHour: usd(tb, secure)}},
		Serverless: catalog.Price{Known: serverless != "0", PerHour: usd(tb, serverless)},
	}
}

func prices(tb testing.TB) *catalog.Snapshot {
	tb.Helper()
	return catalog.NewSnapshot(catalog.Lists{GPUs: []catalog.GPU{
		gpu(tb, "NVIDIA GeForce RTX 4090", "ADA_24", "0.44", "1.1"),
		gpu(tb, "NVIDIA L4", "ADA_24", "0.43", "0.69"),
		gpu(tb, "NVIDIA H100 80GB HBM3", "ADA_80_PRO", "2.69", "4.18"),
	}, CPUs: []catalog.CPU{{ID: "cpu5c", MinVCPU: 2, MaxVCPU: 32, Secure: catalog.Price{Known: true, PerHour: 40_000}}}},
		catalog.Rates{}, noon())
}

// noon is a Monday.
func noon() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

// call builds the input of a create or update with its price, as the gateway
// would.
func call(tb testing.TB, id, after string) *policies.Input {
	tb.Helper()
	body, _ := decode(tb, after).(map[string]any)
	snap := prices(tb)
	row, _ := operation.Lookup(id)
	return &policies.Input{
		Request:  policies.Request{Operation: id, Body: body, Dialect: "v2"},
		Caller:   policies.Caller{Org: "acme", Team: "research", Key: "k1", Roles: []string{"operator"}},
		Resource: policies.Resource{After: body},
		Catalog:  snap,
		Cost:     snap.Price(id, row.EffectiveVerb(body), body),
		Time:     noon(),
	}
}

func newEngine(tb testing.TB, cfg policies.Config) *policies.Engine {
	tb.Helper()
	limits := policyconfig.DefaultLimits()
	limits.Deadline = 10 * time.Second // the machine may be busy
	e, err := policies.NewEngine(limits, map[string]policies.Config{"acme": cfg}, policies.Deps{})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// demo is the policy set of the demo's research team.
func demo() policies.Config {
	return policies.Config{Policies: []policies.Entry{
		{Policy: "gpu_allow_list", Params: map[string]any{"gpus": []any{"NVIDIA GeForce RTX 4090", "NVIDIA L4"}}},
		{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 2}},
		{Policy: "price_ceiling", Params: map[string]any{"max_usd_per_hour": 4.0, "max_usd_per_gpu_hour": 2}},
	}}
}

// denied renders denials one per line for comparison.
func denied(d policies.Decision) string {
	var lines []string
	for _, v := range d.Deny {
		lines = append(lines, v.Policy+" "+v.Pointer+" "+v.Message)
	}
	return strings.Join(lines, "\n")
}

func TestDecide(t *testing.T) {
	e := newEngine(t, demo())
	tests := []struct{ name, op, after, want string }{
		{"allowed", "createPod", `{"gpu":{"id":"NVIDIA L4","count":2}}`, ""},
		{"cpu pod", "createPod", `{"cpu":{"id":"cpu5c","vcpuCount":2}}`, ""},
		{
			"type", "createPod", `{"gpu":{"id":"NVIDIA H100 80GB HBM3"}}`,
			`gpu_allow_list /gpu/id GPU type "NVIDIA H100 80GB HBM3" is not on the allow-list for the offer SECURE (allowed: "NVIDIA GeForce RTX 4090", "NVIDIA L4")
price_ceiling /gpu 2.69 USD per GPU-hour exceeds the limit of 2.00 USD (1 x NVIDIA H100 80GB HBM3 (SECURE) at 2.69)`,
		},
		{"type in another case", "createPod", `{"gpu":{"id":"nvidia l4"}}`, `gpu_allow_list /gpu/id GPU type "nvidia l4" is not on the allow-list for the offer SECURE (allowed: "NVIDIA GeForce RTX 4090", "NVIDIA L4")
price_ceiling /gpu the price per hour is unknown: GPU type "nvidia l4" is not in the catalog`},
		{"count", "createPod", `{"gpu":{"id":"NVIDIA L4","count":3}}`, "gpu_count /gpu/count 3 GPUs per pod exceed the limit of 2"},
		{"update", "updatePod", `{"gpu":{"id":"NVIDIA L4","count":3}}`, "gpu_count /gpu/count 3 GPUs per pod exceed the limit of 2"},
		{"cluster", "createCluster", `{"compute":{"gpuTypeId":"NVIDIA L4","gpuCountPerPod":1,"podCount":3}}`, "gpu_count /compute/podCount 3 GPUs at once exceed the limit of 2 for a cluster"},
		{"endpoint", "createEndpoint", `{"gpu":{"pools":["ADA_24"]},"workers":{"max":3}}`, ""},
		{
			"endpoint pool", "createEndpoint", `{"gpu":{"pools":["ADA_24","ADA_80_PRO","X"]},"workers":{"max":1}}`,
			`gpu_allow_list /gpu/pools/1 pool "ADA_80_PRO" contains GPU types that are not on the allow-list; add them to gpu.excludedTypes: "NVIDIA H100 80GB HBM3" (allowed: "NVIDIA GeForce RTX 4090", "NVIDIA L4")
gpu_allow_list /gpu/pools/2 pool "X" is not in the catalog, so its GPU types cannot be checked
price_ceiling /gpu the price per hour is unknown: serverless pool "X" is not in the catalog`,
		},
		{"endpoint price", "createEndpoint", `{"gpu":{"pools":["ADA_24"]},"workers":{"max":4}}`, "price_ceiling /gpu 4.40 USD per hour exceeds the limit of 4.00 USD (4 workers x 1 x NVIDIA GeForce RTX 4090 (most expensive of ADA_24) at 1.1)"},
		{"delete", "deletePod", `{}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := e.Decide(t.Context(), "acme", call(t, tt.op, tt.after))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, denied(d)); diff != "" {
				t.Errorf("denials (-want +got):\n%s", diff)
			}
			if revision, _ := e.Revision("acme"); d.Revision != revision || revision == "" {
				t.Errorf("revision: got %q, want %q", d.Revision, revision)
			}
		})
	}
}

// TestWrongTypesNeverPass gives every field a policy reads each value of a
// wrong type: the schema refuses those first, the policies must not rely on it.
func TestWrongTypesNeverPass(t *testing.T) {
	e := newEngine(t, demo())
	bodies := map[string]string{
		"createPod count":      `{"gpu":{"id":"NVIDIA L4","count":%s}}`,
		"createPod id":         `{"gpu":{"id":%s}}`,
		"createPod gpu":        `{"gpu":%s}`,
		"createEndpoint count": `{"gpu":{"pools":["ADA_24"],"count":%s}}`,
		"createEndpoint pools": `{"gpu":{"pools":%s}}`,
		"createEndpoint pool":  `{"gpu":{"pools":[%s]}}`,
		"createCluster pods":   `{"compute":{"gpuTypeId":"NVIDIA L4","gpuCountPerPod":1,"podCount":%s}}`,
		"createCluster count":  `{"compute":{"gpuTypeId":"NVIDIA L4","gpuCountPerPod":%s,"podCount":2}}`,
		"createCluster type":   `{"compute":{"gpuTypeId":%s,"gpuCountPerPod":1,"podCount":2}}`,
		"createCluster all":    `{"compute":%s}`,
	}
	for name, body := range bodies {
		op, _, _ := strings.Cut(name, " ")
		for _, wrong := range []string{`false`, `true`, `""`, `[]`, `{}`, `"9"`, `null`} {
			in := call(t, op, strings.Replace(body, "%s", wrong, 1))
			in.Cost = policies.Cost{Known: true, Hourly: 1} // not the reason of the refusal
			d, err := e.Decide(t.Context(), "acme", in)
			if name == "createPod gpu" && wrong == "null" {
				continue // no GPU at all: a CPU pod
			}
			if err == nil && len(d.Deny) == 0 {
				t.Errorf("%s = %s: got no denial and no error", name, wrong)
			}
		}
	}
}

func TestModesAndAudience(t *testing.T) {
	entry := func(mode policies.Mode, change func(*policies.Entry)) policies.Config {
		e := policies.Entry{Policy: "gpu_count", Mode: mode, Params: map[string]any{"max_per_pod": 1}}
		if change != nil {
			change(&e)
		}
		return policies.Config{Policies: []policies.Entry{e}}
	}
	tests := []struct {
		name string
		cfg  policies.Config
		want string // deny/warn/shadow counts
	}{
		{"enforce", entry("", nil), "100"},
		{"warn", entry(policies.ModeWarn, nil), "010"},
		{"shadow", entry(policies.ModeShadow, nil), "001"},
		{"own team", entry("", func(e *policies.Entry) { e.Teams = []string{"x", "research"} }), "100"},
		{"other team", entry("", func(e *policies.Entry) { e.Teams = []string{"platform"} }), "000"},
		{"team exempt", entry("", func(e *policies.Entry) { e.ExceptTeams = []string{"research"} }), "000"},
		{"other team exempt", entry("", func(e *policies.Entry) { e.ExceptTeams = []string{"platform"} }), "100"},
		{"own role", entry("", func(e *policies.Entry) { e.Roles = []string{"viewer", "operator"} }), "100"},
		{"other role", entry("", func(e *policies.Entry) { e.Roles = []string{"admin"} }), "000"},
		{"role exempt", entry("", func(e *policies.Entry) { e.ExceptRoles = []string{"operator"} }), "000"},
		{"names that need quoting", entry("", func(e *policies.Entry) { e.Teams = []string{"\"}\n; x", "research"} }), "100"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := newEngine(t, tt.cfg).Decide(t.Context(), "acme", call(t, "createPod", `{"gpu":{"id":"NVIDIA L4","count":2}}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%d%d%d", len(d.Deny), len(d.Warn), len(d.Shadow)); got != tt.want {
				t.Errorf("deny, warn, shadow: got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestInputsThatCannotBeJudged(t *testing.T) {
	e := newEngine(t, demo())
	good := func() *policies.Input { return call(t, "createPod", `{"gpu":{"id":"NVIDIA L4"}}`) }
	tests := []struct {
		name string
		org  string
		in   func(*policies.Input)
		want error
	}{
		{"unknown organisation", "globex", func(*policies.Input) {}, policies.ErrUnknownOrg},
		{"unknown operation", "acme", func(in *policies.Input) { in.Request.Operation = "createNotebook" }, policies.ErrInput},
		{"no state after", "acme", func(in *policies.Input) { in.Resource.After = nil }, policies.ErrInput},
		{"state after is a list", "acme", func(in *policies.Input) { in.Resource.After = []any{} }, policies.ErrInput},
		{"no time", "acme", func(in *policies.Input) { in.Time = time.Time{} }, policies.ErrInput},
		{"unknown action", "acme", func(in *policies.Input) {
			in.Request.Operation, in.Request.Body = "podAction", map[string]any{"action": "reset"}
		}, policies.ErrInput},
		{"a value JSON does not have", "acme", func(in *policies.Input) {
			in.Resource.After = map[string]any{"gpu": map[string]any{"id": struct{}{}}}
		}, policies.ErrInput},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := good()
			tt.in(in)
			if d, err := e.Decide(t.Context(), tt.org, in); !errors.Is(err, tt.want) {
				t.Errorf("got %+v, %v; want %v", d, err, tt.want)
			}
		})
	}
}

func TestNewEngineLocatesFaults(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "bad.rego", "package policies.bad\n\ndeny contains \"x\" if http.send({})\n")
	write(t, dir, "worse.rego", "package policies.worse\n\ndeny if {\n")
	write(t, dir, "mine.rego", "package tollgate.entrypoint\n\ndecision := {}\n")
	_, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{
		"acme": {Policies: []policies.Entry{
			{Policy: "gpu_alow_list"},
			{Policy: "gpu_count", Params: map[string]any{"max_per_pods": 1}},
			{Policy: "price_ceiling"},
			{Policy: "operations", Params: map[string]any{"deny": []any{"createPod", "creatPod"}}},
			{Policy: "field_values", Params: map[string]any{"force": map[string]any{"create": map[string]any{"x": 1}}}},
			{Policy: "working_hours", Params: map[string]any{"timezone": "Mars/Base", "from": "8"}},
			{Policy: "naming", Params: map[string]any{"pattern": "(", "max_length": 0}},
			{Policy: "gpu_allow_list", Mode: "off", Params: map[string]any{"gpus": []any{1}}},
		}},
		"globex": {Directory: files.UnrestrictedPath(dir)},
	}, policies.Deps{})
	if err == nil {
		t.Fatal("got no error")
	}
	want := strings.ReplaceAll(`org acme: policies[0].policy: unknown policy "gpu_alow_list", did you mean "gpu_allow_list"?
org acme: policy gpu_count: policies[1].params.max_per_pods: unknown parameter, did you mean "max_per_pod"?
org acme: policy gpu_count: policies[1].params.max_per_pod: is required
org acme: policy price_ceiling: policies[2].params: at least one of max_usd_per_hour, max_usd_per_gpu_hour is required
org acme: policy operations: policies[3].params.deny[1]: unknown operation "creatPod"
org acme: policy field_values: policies[4].params.force: unknown operation "create"
org acme: policy field_values: policies[4].params.force.create: "x" does not point into the body
org acme: policy working_hours: policies[5].params.from: does not match pattern '^([01][0-9]|2[0-3]):[0-5][0-9]$'
org acme: policy working_hours: policies[5].params.timezone: unknown time zone "Mars/Base"
org acme: policy naming: policies[6].params.max_length: must be >= 1 but found 0
org acme: policy naming: policies[6].params.pattern: '(' is not valid 'regex'
org acme: policies[7].mode: must be enforce, warn or shadow, got "off"
DIR/mine.rego:1:1: org globex: package tollgate.entrypoint is reserved for the library; use policies.<name>
DIR/worse.rego:4:1: org globex: rego_parse_error: unexpected eof token`, "DIR", dir)
	got := err.Error()
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func write(tb testing.TB, dir, name, text string) {
	tb.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// A ratchet on a policy that judges calls would let them all pass.
func TestRatchetsNeedResources(t *testing.T) {
	for policy, fine := range map[string]bool{"disk": true, "images": true, "naming": true, "roles": false, "kill_switch": false, "operations": false, "account_changes": false} {
		params := map[string]map[string]any{"disk": {"max_gb": 1}, "naming": {"pattern": "x"}, "operations": {"deny": []any{"createPod"}}}[policy]
		_, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{
			"acme": {Policies: []policies.Entry{{Policy: policy, Ratchet: true, Params: params}}},
		}, policies.Deps{})
		if fine != (err == nil) || err != nil && !strings.Contains(err.Error(), "policies[0].ratchet: has no effect") {
			t.Errorf("%s: %v, want fine = %t", policy, err, fine)
		}
	}
}

// A ratchet counts violations, and does not compare with a price that is not known.
func TestRatchetsAreNoLoophole(t *testing.T) {
	e := newEngine(t, policies.Config{Policies: []policies.Entry{
		{Policy: "ports", Ratchet: true, Params: map[string]any{"allow": []any{"http"}}},
		{Policy: "price_ceiling", Ratchet: true, Params: map[string]any{"max_usd_per_hour": 0.01}},
	}})
	for name, tc := range map[string]struct {
		before, after string
		unpriced      bool
		want          []string // policies that deny
	}{
		"as many":            {`["22/tcp","80/http"]`, `["80/http","22/tcp"]`, false, nil},
		"fewer":              {`["22/tcp","22/tcp"]`, `["22/tcp"]`, false, nil},
		"the same once more": {`["22/tcp"]`, `["22/tcp","22/tcp"]`, false, []string{"ports", "ports"}},
		"another":            {`["22/tcp"]`, `["23/tcp"]`, false, []string{"ports"}},
		"no price":           {`["22/tcp"]`, `["22/tcp"]`, true, []string{"price_ceiling"}},
	} {
		pod := func(ports string) string {
			return `{"gpu":{"id":"NVIDIA L4","count":1},"cloud":"SECURE","ports":` + ports + `}`
		}
		in := call(t, "updatePod", pod(tc.after))
		in.Resource.Current = decode(t, pod(tc.before))
		if tc.unpriced {
			in.Catalog, in.Cost = nil, policies.Cost{Reason: "away"}
		}
		d, err := e.Decide(t.Context(), "acme", in)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range d.Deny {
			got = append(got, v.Policy)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: denied by (-want +got):\n%s\n%+v", name, diff, d)
		}
	}
}

// A ratchet allows a violation whose excess does not grow.
func TestRatchetsCompareExcess(t *testing.T) {
	e := newEngine(t, policies.Config{Policies: []policies.Entry{{Policy: "disk", Ratchet: true, Params: map[string]any{"max_gb": 100}}}})
	for _, tc := range []struct {
		before, after int // GB
		denied        bool
		warned        bool
	}{
		{200, 200, false, true},
		{200, 150, false, true},
		{200, 201, true, false},
		{200, 100, false, false},
		{100, 101, true, false},
	} {
		pod := func(gb int) string { return fmt.Sprintf(`{"gpu":{"id":"NVIDIA L4","count":1},"disk":%d}`, gb) }
		in := call(t, "updatePod", pod(tc.after))
		in.Resource.Current = decode(t, pod(tc.before))
		d, err := e.Decide(t.Context(), "acme", in)
		if err != nil {
			t.Fatal(err)
		}
		if denied, warned := len(d.Deny) > 0, len(d.Warn) > 0; denied != tc.denied || warned != tc.warned {
			t.Errorf("from %d GB to %d GB: denied %t, warned %t, want %t and %t: %+v", tc.before, tc.after, denied, warned, tc.denied, tc.warned, d)
		}
	}
}
