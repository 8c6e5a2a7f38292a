package deploy_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"gopkg.in/yaml.v3"

	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// A gateway runs with the user that compose.yaml makes in Redis, by the command line
// that it starts Redis with. What Redis refused it is in the log of its ACL.
func TestGatewayHasItsRightsInRedis(t *testing.T) {
	t.Parallel()
	tool(t, "redis-server")
	command := parse(t).Services["redis"].Command
	if len(command) != 3 || command[0] != "sh" {
		t.Fatalf("Redis is started by %q, want a line for sh -c", command)
	}
	port, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	// Compose writes $$ for $. The log of the ACL is read by a user of the test's own.
	line := strings.ReplaceAll(command[2], "$$", "$") + fmt.Sprintf(` --user test on nopass +@all --port %d --bind 127.0.0.1 --dir "$0"`, port)
	server := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", line, t.TempDir())
	server.Env = append(os.Environ(), "REDIS_PASSWORD=secret")
	start(t, server).wait(t, "Ready to accept connections")
	operator := redistest.Client(t, redis.Options{Addr: addr, Username: "test", Password: "any"})
	t.Cleanup(func() {
		denied, err := operator.ACLLog(context.WithoutCancel(t.Context()), 100).Result()
		if err != nil {
			t.Errorf("ACL LOG: %v", err)
		}
		for _, d := range denied {
			t.Errorf("Redis refused for %s: %s", d.Reason, d.Object)
		}
	})
	listener := listen(t)
	path := configure(t, listener.Addr().String(), "127.0.0.1:0", platform.RunT(t).URL, "    limits: {minute: 1000}\nredis: {url: {env: REDIS_URL}}\n")
	_ = listener.Close()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary(t), "serve", "-c", path)
	cmd.Env = append(os.Environ(), "ACME_KEY="+platform.DefaultKey, "REDIS_URL=redis://tollgate:secret@"+addr)
	gateway := start(t, cmd)
	gateway.wait(t, `"msg":"serving"`)
	for _, path := range []string{"/v2/pods", "/v1/pods"} {
		if got := world.Ask(t, listener.Addr().String(), world.Request(http.MethodGet, path, callerKey, "")); got.Status != http.StatusOK {
			t.Errorf("%s: status %d, want 200: %s", path, got.Status, got.Body)
		}
	}
	gateway.stop(t)
	if err := operator.Do(t.Context(), "ACL", "SETUSER", "default", "on", "nopass").Err(); err != nil {
		t.Errorf("the test's user may not do what it is for: %v", err)
	}
}

// The rights are those of the documentation, which test/limits proves sufficient.
func TestRightsInRedisAreDocumented(t *testing.T) {
	t.Parallel()
	right := regexp.MustCompile(`[~+][a-z@][a-z:*]*`)
	given := right.FindAllString(parse(t).Services["redis"].Command[2], -1)
	documented := right.FindAllString(strings.Join(regexp.MustCompile(`(?m)^    .*[~+][a-z].*$`).FindAllString(read(t, "docs/ratelimits.md"), -1), "\n"), -1)
	slices.Sort(given)
	slices.Sort(documented)
	if given, documented := slices.Compact(given), slices.Compact(documented); !slices.Equal(given, documented) {
		t.Errorf("compose.yaml gives %q, docs/ratelimits.md names %q", given, documented)
	}
}

func TestBalancerIsValid(t *testing.T) {
	t.Parallel()
	runTool(t, "envoy", "--mode", "validate", "--log-level", "error", "-c", "deploy/compose/envoy.yaml")
}

// The Envoy that compose.yaml starts is the one that the tests run.
func TestEnvoyIsOfTheVersionTested(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`(?m)^envoy_version=(\S+)$`).FindStringSubmatch(read(t, ".ci/install-tools"))
	if version == nil {
		t.Fatal("install-tools names no version of Envoy")
	}
	if got, want := parse(t).Services["envoy"].Image, "envoyproxy/envoy:v"+version[1]; got != want {
		t.Errorf("compose.yaml starts %s, want %s", got, want)
	}
}

func TestPrometheusIsConfigured(t *testing.T) {
	t.Parallel()
	alerts, err := filepath.Abs(root + "deploy/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "prometheus.yaml")
	text := strings.ReplaceAll(read(t, "deploy/compose/prometheus.yaml"), "/etc/prometheus/alerts.yaml", alerts)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	runTool(t, "promtool", "check", "config", path)
}

// Addresses that files of compose.yaml name are of its services, and everything that
// a pipeline of the collector names is defined.
func TestServicesFindEachOther(t *testing.T) {
	t.Parallel()
	services := parse(t).Services
	for _, file := range []string{"compose/prometheus.yaml", "compose/grafana.yaml", "compose/envoy.yaml", "tollgate.yaml"} {
		for _, m := range regexp.MustCompile(`(?:"|//|address: )((?:gateway|redis|collector|prometheus)[a-z0-9-]*)[:,]`).FindAllStringSubmatch(read(t, "deploy/"+file), -1) {
			if _, ok := services[m[1]]; !ok {
				t.Errorf("%s names %s, which is no service", file, m[1])
			}
		}
	}
	var collector struct {
		Receivers, Processors, Exporters map[string]any
		Service                          struct {
			Pipelines map[string]struct{ Receivers, Processors, Exporters []string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/compose/collector.yaml")), &collector); err != nil {
		t.Fatal(err)
	}
	for name, p := range collector.Service.Pipelines {
		for _, part := range []struct {
			kind    string
			names   []string
			defined map[string]any
		}{{"receiver", p.Receivers, collector.Receivers}, {"processor", p.Processors, collector.Processors}, {"exporter", p.Exporters, collector.Exporters}} {
			for _, of := range part.names {
				if _, ok := part.defined[of]; !ok {
					t.Errorf("pipeline %s has the %s %s, which is not defined", name, part.kind, of)
				}
			}
		}
	}
	var network struct {
		Networks map[string]struct {
			Ipam struct{ Config []struct{ Subnet string } }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/compose.yaml")), &network); err != nil {
		t.Fatal(err)
	}
	subnet := network.Networks["default"].Ipam.Config[0].Subnet
	if _, _, err := net.ParseCIDR(subnet); err != nil || !strings.Contains(read(t, "deploy/tollgate.yaml"), "anonymous_exempt: ["+subnet+"]") {
		t.Errorf("Envoy's network %q is not exempt in tollgate.yaml: %v", subnet, err)
	}
}
