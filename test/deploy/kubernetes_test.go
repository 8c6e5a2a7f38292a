package deploy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "rewrite deploy/kubernetes from the chart") //nolint:gochecknoglobals // a flag

const chart = "deploy/helm/tollgate"

// render returns the manifests that the chart makes.
func render(t *testing.T, args ...string) string {
	t.Helper()
	return runTool(t, "helm", append([]string{"template", "tollgate", chart, "--namespace", "tollgate"}, args...)...)
}

// The plain manifests are the chart's output by default. make deploy-check runs this;
// without Helm it is skipped.
func TestManifestsAreTheCharts(t *testing.T) {
	t.Parallel()
	runTool(t, "helm", "lint", "--strict", "--quiet", chart)
	for name, args := range map[string][]string{
		"deploy/kubernetes/tollgate.yaml":       nil,
		"deploy/kubernetes/servicemonitor.yaml": {"--set", "serviceMonitor.enabled=true", "--show-only", "templates/servicemonitor.yaml"},
	} {
		want := render(t, args...)
		if *update {
			if err := os.WriteFile(root+name, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, read(t, name)); diff != "" {
			t.Errorf("%s is stale: make golden PKG=./test/deploy (-want +got):\n%s", name, diff)
		}
	}
}

// The chart's output for other values is valid, too.
func TestChartIsValidWithOtherValues(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"fixed": {"--set", "autoscaling.enabled=false,networkPolicy.enabled=false,replicas=3"},
		"placed": {
			"--set", "nodeSelector.disk=ssd,tolerations[0].key=gpu,tolerations[0].operator=Exists,podAnnotations.a=b,imagePullSecrets[0].name=x",
			"--set", "networkPolicy.callers[0].namespaceSelector.matchLabels.team=research,service.annotations.a=b,service.type=LoadBalancer",
			"--set", "image.digest=sha256:" + strings.Repeat("0", 64),
		},
	} {
		for _, object := range objects(t, render(t, args...)) {
			validate(t, name, object)
		}
	}
	cmd := []string{"template", chart, "--set", "autoscalling.enabled=true"}
	if out := failing(t, "helm", cmd...); !strings.Contains(out, "autoscalling") {
		t.Errorf("a value that does not exist is taken: %s", out)
	}
}

func TestManifestsAreValid(t *testing.T) {
	t.Parallel()
	var kinds []string
	for _, object := range objects(t, read(t, "deploy/kubernetes/tollgate.yaml")) {
		kinds = append(kinds, object["kind"].(string))
		validate(t, "tollgate.yaml", object)
	}
	for _, want := range []string{"Deployment", "Service", "ConfigMap", "ServiceAccount", "PodDisruptionBudget", "HorizontalPodAutoscaler", "NetworkPolicy"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("there is no %s among %q", want, kinds)
		}
	}
}

// objects decodes a stream of YAML documents as JSON would.
func objects(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var object map[string]any
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		object = nil
		if err := json.Unmarshal(b, &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
}

// validate holds an object against the schema of its kind, in which members that
// are not named are faults.
func validate(t *testing.T, place string, object map[string]any) {
	t.Helper()
	if object["kind"] == "HTTPRoute" {
		if err := routeFault(t, object); err != nil {
			t.Errorf("%s: HTTPRoute: %#v", place, err)
		}
		return
	}
	dir := schemas(t, "kubernetes-schemas-*")
	kind, version := strings.ToLower(object["kind"].(string)), object["apiVersion"].(string)
	group, v, found := strings.Cut(version, "/")
	suffix := "-" + version
	if found {
		group, _, _ = strings.Cut(group, ".")
		suffix = "-" + group + "-" + v
	}
	c := jsonschema.NewCompiler()
	for _, name := range []string{"_definitions.json", kind + suffix + ".json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatalf("%s: no schema of %s %s: %v", place, version, object["kind"], err)
		}
		if err := c.AddResource("https://kubernetes.io/api/"+name, bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("https://kubernetes.io/api/" + kind + suffix + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(object); err != nil {
		t.Errorf("%s: %s: %#v", place, object["kind"], err)
	}
}

// schemas returns the directory of .tools with schemas of Kubernetes.
func schemas(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.Glob(root + ".tools/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		return found[len(found)-1]
	}
	if os.Getenv("TOLLGATE_REQUIRE_KUBERNETES_SCHEMAS") != "" {
		t.Fatal("the schemas of Kubernetes are required: .ci/install-tools kubernetes-schemas")
	}
	t.Skip("the schemas of Kubernetes are not installed: .ci/install-tools kubernetes-schemas")
	return ""
}

// The configuration that the chart comes with loads, and fits its probes and times.
func TestChartFitsTheGateway(t *testing.T) {
	t.Parallel()
	var values struct {
		Config string
		Secret string
		Grace  int `yaml:"terminationGracePeriodSeconds"`
	}
	if err := yaml.Unmarshal([]byte(read(t, chart+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	loaded := loadText(t, values.Config, map[string]string{
		"REDIS_URL": "redis://redis:6379/0", "ACME_PLATFORM_KEY": "key", "TOLLGATE_ADMIN_TOKEN": strings.Repeat("t", 16),
	})
	timeouts := loaded.Config.Timeouts
	if longest := timeouts.Notice + timeouts.Drain + time.Second; float64(values.Grace) <= longest.Seconds() {
		t.Errorf("terminationGracePeriodSeconds is %d, stopping may take %v", values.Grace, longest)
	}
	manifests := read(t, "deploy/kubernetes/tollgate.yaml")
	for name, addr := range map[string]string{"data": loaded.Config.Listen, "admin": loaded.Config.Admin.Listen} {
		_, port, _ := strings.Cut(addr, ":")
		if want := "{name: " + name + ", containerPort: " + port + "}"; !strings.Contains(manifests, want) {
			t.Errorf("the Deployment has no port %s", want)
		}
	}
}

// The network policy of the chart and of the manifests opens every port that the pages have in an address of Redis, a collector or a proxy.
func TestNetworkPolicyOpensDocumentedPorts(t *testing.T) {
	pages, err := filepath.Glob(root + "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`(?:rediss?(?:\+sentinel|\+cluster)?|https?)://[A-Za-z0-9_.:@,-]+`)
	port := regexp.MustCompile(`(?:[a-z0-9.-]+):([0-9]+)(?:,|$)`)
	ports := map[string]bool{"4317": true, "443": true} // OTLP by gRPC, and the platform
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range address.FindAllString(string(text), -1) {
			_, hosts, _ := strings.Cut(a, "://")
			if i := strings.LastIndexByte(hosts, '@'); i >= 0 {
				hosts = hosts[i+1:]
			}
			if strings.HasPrefix(hosts, "127.") || strings.HasPrefix(hosts, "localhost") || strings.HasPrefix(hosts, "gateway") || strings.HasPrefix(hosts, "tollgate") {
				continue // the gateway itself, or a machine of one's own
			}
			for _, m := range port.FindAllStringSubmatch(hosts, -1) {
				ports[m[1]] = true
			}
		}
	}
	if !ports["26379"] || !ports["4318"] || !ports["3128"] {
		t.Errorf("the pages name ports %v, want those of Sentinel, a collector and a proxy among them", ports)
	}
	_, manifests, _ := strings.Cut(read(t, "deploy/kubernetes/tollgate.yaml"), "  egress:")
	_, values, _ := strings.Cut(read(t, "deploy/helm/tollgate/values.yaml"), "networkPolicy:")
	values = regexp.MustCompile(`egressPorts: \[.*\]`).FindString(values)
	for p := range ports {
		if !strings.Contains(manifests, "{port: "+p+", protocol: TCP}") {
			t.Errorf("deploy/kubernetes/tollgate.yaml does not open port %s", p)
		}
		if !regexp.MustCompile(`[\[ ]` + p + `[,\]]`).MatchString(values) {
			t.Errorf("deploy/helm/tollgate/values.yaml does not open port %s: %s", p, values)
		}
	}
}
