package policies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
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

// BenchmarkDecide shows the cost of a pod create by number of policies, judged
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

// BenchmarkNamed shows the cost of a create with a new name, which one policy of
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

// BenchmarkLoad shows the cost of compiling one organisation.
func BenchmarkLoad(b *testing.B) {
	orgs := map[string]policies.Config{"acme": {Policies: benchPolicies()}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := policies.NewEngine(section.DefaultLimits(), orgs, policies.Deps{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReload shows the cost of a new engine in the place of another of so many
// organisations, each with five policies of the library and so many of its own, of which so
// many have changed.
func BenchmarkReload(b *testing.B) {
	for _, tt := range []struct{ orgs, changed, own int }{{1, 0, 1}, {1, 1, 1}, {100, 0, 1}, {100, 1, 1}, {100, 100, 1}, {1000, 1, 1}, {1000, 1, 0}} {
		b.Run(fmt.Sprintf("orgs=%d/changed=%d/own=%d", tt.orgs, tt.changed, tt.own), func(b *testing.B) {
			dir := b.TempDir()
			const own = "package policies.mine\n\ndeny contains \"too many\" if {\n\tinput.request.operation == \"createPod\"\n\tinput.request.body.gpu.count > 8\n\tinput.caller.team == data.bounded\n}\n"
			for name, text := range map[string]string{"mine.rego": own, "data.json": `{"bounded":"x"}`} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			orgs := func(turn int) map[string]policies.Config {
				m := make(map[string]policies.Config, tt.orgs)
				for i := range tt.orgs {
					entries := slices.Clone(benchPolicies()[:5])
					bound := 10 * i // each has a parameter of its own
					if i < tt.changed {
						bound += turn % 7
					}
					entries[2].Params = map[string]any{"max_usd_per_hour": 10 + bound}
					cfg := policies.Config{Policies: entries}
					if tt.own > 0 {
						cfg.Directory = files.UnrestrictedPath(dir)
					}
					m[fmt.Sprintf("org%d", i)] = cfg
				}
				return m
			}
			before, err := policies.NewEngine(section.DefaultLimits(), orgs(0), policies.Deps{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			began := processorTime(b)
			for turn := 1; b.Loop(); turn++ {
				if before, err = policies.NewEngine(section.DefaultLimits(), orgs(turn), policies.Deps{Before: before}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((processorTime(b)-began).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

// BenchmarkStart shows what so many organisations of five policies take at start: processor time, which a busy machine does not
// change, and the memory that they hold from then on.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("orgs=%d", n), func(b *testing.B) {
			orgs := make(map[string]policies.Config, n)
			for i := range n {
				entries := slices.Clone(benchPolicies()[:5])
				entries[2].Params = map[string]any{"max_usd_per_hour": 10 + i}
				orgs[fmt.Sprintf("org%d", i)] = policies.Config{Policies: entries}
			}
			var engine *policies.Engine
			before, began := held(), processorTime(b)
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if engine, err = policies.NewEngine(section.DefaultLimits(), orgs, policies.Deps{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((processorTime(b)-began).Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(held()-before)/1e6, "held-MB")
			runtime.KeepAlive(engine)
		})
	}
}

// held is the memory that is in use, in bytes.
func held() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// processorTime is what the process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
