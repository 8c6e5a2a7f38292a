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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// composeRedis starts Redis by the command line of compose.yaml and returns its
// address. A user test may do all; that of gateways has the password secret.
func composeRedis(t *testing.T) (addr string) {
	t.Helper()
	tool(t, "redis-server")
	command := parse(t).Services["redis"].Command
	if len(command) != 3 || command[0] != "sh" {
		t.Fatalf("Redis is started by %q, want a line for sh -c", command)
	}
	port, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr = fmt.Sprintf("127.0.0.1:%d", port)
	// Compose writes $$ for $. The log of the ACL is read by a user of the test's own.
	line := strings.ReplaceAll(command[2], "$$", "$") + fmt.Sprintf(` --user test on nopass +@all --port %d --bind 127.0.0.1 --dir "$0"`, port)
	server := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", line, t.TempDir())
	server.Env = append(os.Environ(), "REDIS_PASSWORD=secret")
	start(t, server).wait(t, "Ready to accept connections")
	return addr
}

// A gateway runs with the user that compose.yaml makes in Redis, by the command line
// that it starts Redis with. What Redis refused it is in the log of its ACL.
func TestGatewayHasItsRightsInRedis(t *testing.T) {
	t.Parallel()
	addr := composeRedis(t)
	operator := redistest.As(t, addr, "test", "any")
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
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary.Path(t), "serve", "-c", path)
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
	lines := regexp.MustCompile(`(?m)^    .*[~+][a-z].*$`).FindAllString(read(t, "docs/ratelimits.md"), -1)
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "+asking") }) // of a Cluster
	documented := right.FindAllString(strings.Join(lines, "\n"), -1)
	slices.Sort(given)
	slices.Sort(documented)
	if given, documented := slices.Compact(given), slices.Compact(documented); !slices.Equal(given, documented) {
		t.Errorf("compose.yaml gives %q, docs/ratelimits.md names %q", given, documented)
	}
}

// composed is the configuration of compose.yaml on this machine: a free port for each
// of its own, the certificate that its recipe makes, and the test's platform.
type composed struct {
	dir   string
	place *strings.Replacer
	data  string // the address where callers connect
	admin string // the port of Envoy's admin interface
}

func compositionHere(t *testing.T, upstream string) composed {
	t.Helper()
	c := composed{dir: t.TempDir()}
	recipe := strings.ReplaceAll(parse(t).Services["certificates"].Command[2], "/tls/", c.dir+"/")
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", recipe).CombinedOutput(); err != nil {
		t.Fatalf("openssl: %v\n%s", err, out)
	}
	port := func() string {
		n, err := redistest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		return strconv.Itoa(n)
	}
	callers, door := port(), port()
	c.admin = port()
	c.data = "127.0.0.1:" + callers
	c.place = strings.NewReplacer("listen: \"0.0.0.0:8080\"", "listen: \"127.0.0.1:"+callers+"\"", "listen: 0.0.0.0:8080", "listen: 127.0.0.1:"+port(),
		"0.0.0.0:8081", "127.0.0.1:0", "0.0.0.0:8082", "127.0.0.1:"+door, "172.30.17.0/24", "127.0.0.1/32", "https://platform.example", upstream,
		"/etc/tollgate/tls/", c.dir+"/", "/etc/envoy/tls/", c.dir+"/", strings.Repeat("f", 64), identity.DigestOf(callerKey).String(),
		`"gateway-1"`, `"127.0.0.1"`, `"gateway-2"`, `"127.0.0.1"`, `"port_value": 8082`, `"port_value": `+door, `"port_value": 8080`, `"port_value": `+callers,
		`"port_value": 9901`, `"port_value": `+c.admin, "::ffff:0.0.0.0", "::ffff:127.0.0.1")
	return c
}

func (c composed) write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The bootstrap of compose.yaml is the output of the command beside it, on a machine with no secret and no file of the gateways.
func TestBootstrapIsMade(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`(?m)^  #   (tollgate envoy (?:.*\\\n  # )?.*)$`).FindStringSubmatch(read(t, "deploy/compose.yaml"))
	if line == nil {
		t.Fatal("compose.yaml does not say how envoy.json is made")
	}
	args := strings.Fields(strings.ReplaceAll(line[1], "\\\n  # ", ""))[1:]
	cmd := exec.CommandContext(t.Context(), binary.Path(t), args...)
	cmd.Dir, cmd.Env = root, []string{}
	want, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	const golden = "deploy/compose/envoy.json"
	if *update {
		if err := os.WriteFile(root+golden, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(want), read(t, golden)); diff != "" {
		t.Errorf("%s is stale: make golden PKG=./test/deploy (-want +got):\n%s", golden, diff)
	}
}

// The commands of the manual print the bootstraps of Envoys that the chart and systemd start, without a secret or a file of the gateways.
func TestBootstrapsOfTheManual(t *testing.T) {
	t.Parallel()
	commands := regexp.MustCompile(`(?m)^tollgate envoy bootstrap (.*) > \S+$`).FindAllStringSubmatch(read(t, "docs/operations.md"), -1)
	if len(commands) != 2 {
		t.Fatalf("docs/operations.md has %d commands, want those of systemd and of the chart", len(commands))
	}
	_, config, _ := strings.Cut(read(t, "deploy/helm/tollgate/ci/everything-values.yaml"), "config: |\n")
	config, _, _ = strings.Cut("\n"+config, "\nfiles:")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tollgate.yaml"), []byte(strings.ReplaceAll(config, "\n  ", "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		cmd := exec.CommandContext(t.Context(), binary.Path(t), append([]string{"envoy", "bootstrap"}, strings.Fields(c[1])...)...)
		cmd.Dir, cmd.Env = dir, []string{}
		out, err := cmd.CombinedOutput()
		name := regexp.MustCompile(`--server-name (\S+)`).FindStringSubmatch(c[1])
		if err != nil || name == nil || !strings.Contains(string(out), `"`+name[1]+`"`) {
			t.Errorf("%s: %v\n%.2000s", c[0], err, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary.Path(t), "envoy", "bootstrap", "--gateway", "a:1", "--cert", "c", "--key", "k", "--ca", "a")
	cmd.Dir, cmd.Env = dir, []string{}
	const want = "envoy.tls.certificate: file /etc/tollgate.d/envoy/tls.crt: no such file or directory; pass the first DNS name in the gateways' certificate with --server-name"
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) || strings.Count(string(out), "\n") != 1 {
		t.Errorf("without a name: %v\n%s\nwant %s", err, out, want)
	}
}

// checkPodCommands runs the chart's questions and orders to an Envoy, by commands of its
// container.
func (c composed) checkPodCommands(t *testing.T) {
	t.Helper()
	commands := regexp.MustCompile(`(?s)exec 3<>/dev/tcp/127.0.0.1/9901.*?<&3`).FindAllString(read(t, "deploy/helm/tollgate/templates/envoy.yaml"), -1)
	if len(commands) != 2 {
		t.Fatalf("the chart asks Envoy by %q, want two commands", commands)
	}
	for _, command := range commands {
		command = strings.Join(strings.Fields(strings.ReplaceAll(command, "/9901", "/"+c.admin)), " ")
		if out, err := exec.CommandContext(t.Context(), "bash", "-c", command).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

// What compose.yaml starts works together: Redis with its user, a gateway, and an Envoy
// that it configures, by mutual TLS.
func TestCompositionServes(t *testing.T) {
	t.Parallel()
	envoy := tool(t, "envoy")
	tool(t, "openssl")
	c := compositionHere(t, platform.RunT(t).URL)
	gateway := exec.CommandContext(context.WithoutCancel(t.Context()), binary.Path(t), "serve", "-c", c.write(t, "tollgate.yaml", c.place.Replace(read(t, "deploy/compose/tollgate.yaml"))))
	gateway.Env = []string{"REDIS_URL=redis://tollgate:secret@" + composeRedis(t), "ACME_PLATFORM_KEY=" + platform.DefaultKey, "TOLLGATE_ADMIN_TOKEN=0123456789abcdef"}
	start(t, gateway).wait(t, `"msg":"serving"`)
	boot := c.write(t, "envoy.json", c.place.Replace(read(t, "deploy/compose/envoy.json")))
	start(t, exec.CommandContext(context.WithoutCancel(t.Context()), envoy, "--use-dynamic-base-id", "-c", boot)).wait(t, "add/update listener 'callers'")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.data+"/v2/pods", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+callerKey)
	// Until Envoy knows that the gateway is ready, it answers 503, or on its own listener nothing.
	said := ""
	for range 200 {
		res, err := client.Do(req)
		if err == nil {
			_ = res.Body.Close()
			if said = res.Status; res.StatusCode == http.StatusOK {
				c.checkPodCommands(t)
				return
			}
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Errorf("the last answer was %q, want 200", said)
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
	for _, file := range []string{"compose/prometheus.yaml", "compose/grafana.yaml", "compose/envoy.json", "compose/tollgate.yaml"} {
		for _, m := range regexp.MustCompile(`(?:"|//|address: |"address": ?")((?:gateway|redis|collector|prometheus)[a-z0-9-]*)[:,"]`).FindAllStringSubmatch(read(t, "deploy/"+file), -1) {
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
	if _, _, err := net.ParseCIDR(subnet); err != nil || !strings.Contains(read(t, "deploy/compose/tollgate.yaml"), "balancers: {addresses: ["+subnet+"]") {
		t.Errorf("Envoy's network %q is not that of balancers in tollgate.yaml: %v", subnet, err)
	}
}
