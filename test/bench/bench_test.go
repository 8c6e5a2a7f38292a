package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/test/built"
)

// TestMain lets the test binary be the servers and the load of a run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"platform", "proxy", "load", "authorizer"}, os.Args[1]) {
		if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A run of the built binary, so small that its figures mean nothing, has a sample of
// everything and leaves out only absent programs.
func TestSmallRun(t *testing.T) {
	if testing.Short() {
		t.Skip("puts programs under load")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("TOLLGATE_REQUIRE_REDIS") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	tollgate := filepath.Join(dir, "tollgate")
	if err := built.Tollgate(t.Context(), tollgate); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bench.json")
	var stdout, stderr bytes.Buffer
	args := []string{"-tollgate", "built=" + tollgate, "-targets", "exact,tls,platform-tls,ten,inline,extproc,inline-2,extproc-2", "-rounds", "1", "-time", "20ms", "-connections", "16", "-idle", "20", "-envoy", "../../deploy/envoy.yaml", "-json", file}
	if err := run(t.Context(), args, nil, &stdout, &stderr); err != nil {
		t.Fatalf("run: %v\n%s", err, &stderr)
	}
	r, err := readReport(file)
	if err != nil {
		t.Fatal(err)
	}
	_, noEnvoyHere := exec.LookPath("envoy")
	out, runs := map[string]bool{}, map[string]bool{}
	for _, k := range kinds() {
		runs[k.name] = k.runs
	}
	for _, l := range r.Left {
		out[l.Target+"/"+l.Kind] = true
		if missing := strings.HasPrefix(l.Target, "extproc") && runs[l.Kind] || noEnvoyHere != nil && strings.Contains(l.Why, "envoy"); !missing {
			t.Errorf("left out: %+v", l)
		}
	}
	ts, _, err := chosen(r.Settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, tg := range ts {
		if out[tg.name+"/"] {
			continue
		}
		for _, k := range kinds() {
			if !tg.takes(k) || out[tg.name+"/"+k.name] {
				continue
			}
			at := slices.IndexFunc(r.Samples, func(s sample) bool { return s.Target == tg.name && s.Kind == k.name })
			if at < 0 {
				t.Errorf("%s has no sample of %s", tg.name, k.name)
				continue
			}
			units := []string{cpu, cpuRatio, perSecond, switches, p50, p99, p999}
			if tg.gateway != nil {
				units = append(units, redisCommands)
			}
			if tg.name == tg.base && r.Samples[at].Values[cpuRatio] != 1 {
				t.Errorf("%s %s: %v times itself", tg.name, k.name, r.Samples[at].Values[cpuRatio])
			}
			for _, unit := range units {
				if r.Samples[at].Values[unit] <= 0 {
					t.Errorf("%s %s: %s = %v, want more than 0", tg.name, k.name, unit, r.Samples[at].Values[unit])
				}
			}
		}
	}
	for _, want := range []string{"create-403", "ready", "20 connections", "built: "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the tables lack %q:\n%s", want, &stdout)
		}
	}
	stdout.Reset()
	if err := run(t.Context(), []string{"-text", file}, nil, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	if want := "BenchmarkGate/kind=create/target=exact/binary=built 1 "; !strings.Contains(stdout.String(), want) {
		t.Errorf("-text = %s\nwant a line with %s", &stdout, want)
	}
}

// Every gateway of the table has a configuration without a fault.
func TestConfigurations(t *testing.T) {
	for _, tg := range targets() {
		if tg.gateway == nil {
			continue
		}
		t.Run(tg.name, func(t *testing.T) {
			text := tg.gateway.configuration(addresses{data: "127.0.0.1:8080", admin: "127.0.0.1:8081", extproc: "127.0.0.1:8082", platform: "127.0.0.1:8083", secure: "127.0.0.1:8084", runs: true})
			secrets := map[string]string{"BENCH_REDIS": "redis://127.0.0.1:6379", "BENCH_PLATFORM_KEY": "k"}
			loaded, err := config.Parse("tollgate.yaml", []byte(text), config.Sources{
				Env: func(name string) (string, bool) { v, ok := secrets[name]; return v, ok },
			}, operator.Validator{})
			if err != nil {
				t.Fatal(err)
			}
			org := loaded.Config.Orgs[0]
			const unlisted = 3 // account_changes, roles and run_webhooks are in force without being listed
			want := 5 + unlisted
			if tg.gateway.ten {
				want = 10 + unlisted
			}
			if len(org.Policies.Policies) != want || len(org.Keys) != callers+1 {
				t.Errorf("%d policies and %d keys, want %d and %d", len(org.Policies.Policies), len(org.Keys), want, callers+1)
			}
		})
	}
}

// Each request differs from the last one where it is marked, and nowhere else.
func TestRequestsDiffer(t *testing.T) {
	c := &client{request: []byte("key-@@@ run-######## and ########")}
	c.callers, c.numbers = places(string(c.request), callerMark), places(string(c.request), requestMark)
	for _, tc := range []struct {
		number int64
		want   string
	}{{7, "key-007 run-00000007 and 00000007"}, {5_000_123, "key-023 run-05000123 and 05000123"}} {
		c.number(tc.number)
		if got := string(c.request); got != tc.want {
			t.Errorf("request %d = %q, want %q", tc.number, got, tc.want)
		}
	}
}

func TestCell(t *testing.T) {
	plain, spread := column{show: ratio}, column{show: ratio, spread: true}
	for _, tc := range []struct {
		c    column
		v    []float64
		want string
	}{
		{plain, nil, ""},
		{plain, []float64{3, 1, 2}, "2.00"},
		{spread, []float64{4, 1, 2, 3}, "2.50 (1.00 to 4.00)"},
		{spread, []float64{1.5}, "1.50"},
	} {
		if got := tc.c.cell(tc.v); got != tc.want {
			t.Errorf("cell(%v) = %q, want %q", tc.v, got, tc.want)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-rate", "0"}, {"-time", "0s"}, {"there"}, {"-no"}} {
		if _, _, err := parse(args, new(bytes.Buffer)); err == nil {
			t.Errorf("%v: got no error", args)
		}
	}
	s, _, err := parse([]string{"-tollgate", "old=/a,new=/b", "-targets", "leased", "-kinds", "read"}, new(bytes.Buffer))
	if err != nil || s.Time != time.Second || !cmp.Equal(s.Tollgate, []string{"old=/a", "new=/b"}) {
		t.Errorf("parse = %+v, %v", s, err)
	}
	ts, ks, err := chosen(s)
	if err != nil || len(ts) != 2 || ts[1].name != plainProxy || len(ks) != 1 {
		t.Errorf("chosen = %+v, %+v, %v, want leased, its base and read", ts, ks, err)
	}
	if _, _, err := chosen(settings{Kinds: []string{"redd"}}); err == nil {
		t.Error("a kind that is none: got no error")
	}
}
