package policies_test

import (
	"fmt"
	"testing"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/section"
)

// benchPolicies are in the order they are added; none refuses the call.
func benchPolicies() []policies.Entry {
	return []policies.Entry{
		{Policy: "gpu_allow_list", Params: map[string]any{"gpus": []any{"NVIDIA GeForce RTX 4090", "NVIDIA L4"}}},
		{Policy: "gpu_count", Params: map[string]any{"max_per_pod": 2}},
		{Policy: "price_ceiling", Params: map[string]any{"max_usd_per_hour": 4, "max_usd_per_gpu_hour": 2}},
		{Policy: "roles"},
		{Policy: "images", Params: map[string]any{"allow": []any{"ghcr.io/acme"}}},
		{Policy: "cloud_tier", Params: map[string]any{"clouds": []any{"SECURE"}}},
		{Policy: "ports", Params: map[string]any{"allow": []any{"http"}, "max": 4}},
		{Policy: "env_rules", Params: map[string]any{"forbidden": []any{"AWS_*"}, "secrets": []any{"hf"}}},
		{Policy: "disk", Params: map[string]any{"max_gb": 100}},
		{Policy: "storage", Params: map[string]any{"max_volume_gb": 500}},
		{Policy: "cpu_flavors", Params: map[string]any{"max_vcpus": 8}},
		{Policy: "gpu_in_flight", Params: map[string]any{"max_per_team": 100}},
		{Policy: "pools", Params: map[string]any{"pools": []any{"ADA_24"}}},
		{Policy: "serverless_workers", Params: map[string]any{"max_workers": 5}},
		{Policy: "serverless_scaling", Params: map[string]any{"max_idle_seconds": 60}},
		{Policy: "clusters", Params: map[string]any{"max_pods": 8}},
		{Policy: "templates"},
		{Policy: "remote_access", Params: map[string]any{"jupyter": false}},
		{Policy: "operations", Params: map[string]any{"deny": []any{"updateSshKeys"}}},
		{Policy: "run_limits", Params: map[string]any{"max_tokens": 4096}},
	}
}

func benchCall(b *testing.B) *policies.Input {
	b.Helper()
	in := call(b, "createPod", `{"name":"a","image":"ghcr.io/acme/train:1","gpu":{"id":"NVIDIA L4","count":1},"cloud":"SECURE",
		"disk":20,"ports":["8888/http"],"env":{"A":"1","B":"two"},"startSsh":false,"startJupyter":false,"globalNetworking":false}`)
	in.Spend.Known = true
	return in
}

// BenchmarkDecide shows what a pod create costs by number of policies, judged
// anew each time and remembered.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1, 5, 20} {
		for _, mode := range []struct {
			name string
			size int
		}{{"fresh", 0}, {"remembered", 4096}} {
			b.Run(fmt.Sprintf("policies=%d/%s", n, mode.name), func(b *testing.B) {
				e := engineRemembering(b, mode.size, policies.Config{Policies: benchPolicies()[:n]})
				in := benchCall(b)
				b.ReportAllocs()
				for b.Loop() {
					if d, err := e.Decide(b.Context(), "acme", in); err != nil || !d.Allowed() {
						b.Fatal(d, err)
					}
				}
			})
		}
	}
}

// BenchmarkNamed shows what a create costs whose name is new, which one policy of
// eleven reads.
func BenchmarkNamed(b *testing.B) {
	cfg := without(policies.Config{Policies: benchPolicies()[:11]}, "env_rules") // which reads everything
	cfg.Policies = append(cfg.Policies, policies.Entry{Policy: "naming", Params: map[string]any{"pattern": "^[a-z0-9-]+$"}})
	e := engineRemembering(b, 4096, cfg)
	in := benchCall(b)
	after, _ := in.Resource.After.(map[string]any)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		after["name"] = fmt.Sprintf("train-%d", n)
		if d, err := e.Decide(b.Context(), "acme", in); err != nil || !d.Allowed() {
			b.Fatal(d, err)
		}
	}
}

// BenchmarkLoad shows what compiling one organisation costs.
func BenchmarkLoad(b *testing.B) {
	orgs := map[string]policies.Config{"acme": {Policies: benchPolicies()}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := policies.NewEngine(section.DefaultLimits(), orgs, policies.Deps{}); err != nil {
			b.Fatal(err)
		}
	}
}
