package deploy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"
)

// everything has the values with which the chart does all it can.
const everything = chart + "/ci/everything-values.yaml"

// routeFault holds an HTTPRoute against its definition, in which members that are
// not named are faults.
func routeFault(t *testing.T, object map[string]any) error {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(schemas(t, "gateway-api-*"), "httproutes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Group    string
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPI map[string]any `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	for _, v := range definition.Spec.Versions {
		if object["apiVersion"] != definition.Spec.Group+"/"+v.Name {
			continue
		}
		properties := v.Schema.OpenAPI["properties"].(map[string]any)
		delete(properties, "metadata") // which Kubernetes defines
		closed(properties["spec"])
		b, err := json.Marshal(v.Schema.OpenAPI)
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("https://gateway-api.test/route", bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		return c.MustCompile("https://gateway-api.test/route").Validate(object)
	}
	return fmt.Errorf("there is no %s", object["apiVersion"])
}

// closed makes members that a schema does not name faults.
func closed(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, ok := s["properties"].(map[string]any); ok && s["type"] == "object" {
			s["additionalProperties"] = false
		}
		for _, v := range s {
			closed(v)
		}
	case []any:
		for _, v := range s {
			closed(v)
		}
	}
}

// All that the chart can do is valid, and there.
func TestChartDoesEverything(t *testing.T) {
	t.Parallel()
	manifests := render(t, "--values", everything)
	kinds := map[string]int{}
	for _, object := range objects(t, manifests) {
		kinds[object["kind"].(string)]++
		if object["kind"] != "ServiceMonitor" { // of which there is no schema
			validate(t, everything, object)
		}
	}
	for kind, want := range map[string]int{"Ingress": 1, "HTTPRoute": 1, "Service": 3, "Secret": 1, "Deployment": 2, "NetworkPolicy": 2, "PodDisruptionBudget": 2, "ConfigMap": 1, "ServiceMonitor": 1} {
		if kinds[kind] != want {
			t.Errorf("there are %d of %s, want %d", kinds[kind], kind, want)
		}
	}
	for _, want := range []string{
		"{name: data, containerPort: 8443}", "{name: envoy, containerPort: 8082}", "{name: admin, port: 8444, targetPort: admin}",
		"{name: callers, containerPort: 10000}", "{name: http, port: 80, targetPort: callers}", "[{port: 8082, protocol: TCP}, {port: 8443, protocol: TCP}]",
		"subPathExpr: $(POD_NAME)", "scheme: HTTPS",
		"[{port: envoy, protocol: TCP}, {port: data, protocol: TCP}]", "scheme: https", "serverName: gateway.example",
	} {
		if !strings.Contains(manifests, want) {
			t.Errorf("the manifests have no %s", want)
		}
	}
	route := objects(t, render(t, "--values", everything, "--show-only", "templates/ingress.yaml"))[1]
	route["spec"].(map[string]any)["hostname"] = "x"
	if err := routeFault(t, route); err == nil {
		t.Error("a member that HTTPRoute has not passes")
	}
}

// A configuration that nothing would reach is none for a pod, and the chart says so where
// it cannot follow.
func TestChartRefuses(t *testing.T) {
	t.Parallel()
	config := func(text string) []string {
		path := filepath.Join(t.TempDir(), "tollgate.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--set-file", "config=" + path}
	}
	const admin = "\nadmin: {listen: \"0.0.0.0:8081\"}\n"
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"loopback":          {config("listen: 127.0.0.1:8080" + admin), "listen is 127.0.0.1:8080 in config: a pod is not reachable on loopback"},
		"no listen":         {config("platform: {}" + admin), "listen is 127.0.0.1:8080 in config"},
		"another loopback":  {config("listen: 127.9.9.9:8080" + admin), "listen is 127.9.9.9:8080"},
		"localhost":         {config("listen: LocalHost:8080" + admin), "listen is LocalHost:8080"},
		"loopback of IPv6":  {config("listen: \"[::1]:8080\"" + admin), "listen is [::1]:8080"},
		"loopback within":   {config("listen: \"[::ffff:127.0.0.1]:8080\"" + admin), "listen is [::ffff:127.0.0.1]:8080"},
		"admin by itself":   {config("listen: 0.0.0.0:8080\n"), "admin.listen is 127.0.0.1:8081"},
		"admin":             {config("listen: 0.0.0.0:8080\nadmin: {listen: \"localhost:8081\"}\n"), "admin.listen is localhost:8081"},
		"Envoy":             {config("listen: 0.0.0.0:8080\nenvoy: {listen: \"127.0.0.1:8082\"}" + admin), "envoy.listen is 127.0.0.1:8082"},
		"no port":           {config("listen: gateway" + admin), "listen must contain a port in config, got gateway"},
		"no YAML":           {config("listen: [" + admin), "config is not valid YAML"},
		"a file twice":      {[]string{"--set-json", `files={"tollgate.yaml": "listen: 0.0.0.0:1"}`}, "tollgate.yaml"},
		"a path for a file": {[]string{"--set-json", `files={"../x": ""}`}, "../x"},
		"two sources":       {[]string{"--set", "mounts.tls.secret=a,mounts.tls.configMap=b"}, "mounts"},
		"no bootstrap":      {append(config("listen: 0.0.0.0:8080\nenvoy: {listen: \"0.0.0.0:8082\", xds: {groups: [{id: a, listen: \"0.0.0.0:1\"}]}}"+admin), "--set", "envoy.enabled=true"), "envoy.bootstrap is required"},
		"no Envoys":         {[]string{"--set", "envoy.enabled=true,envoy.bootstrap=x"}, "envoy.listen is required in config"},
		"no group":          {append(config("listen: 0.0.0.0:8080\nenvoy: {listen: \"0.0.0.0:8082\"}"+admin), "--set", "envoy.enabled=true,envoy.bootstrap=x"), "must be one of envoy.xds.groups"},
		"no parents":        {[]string{"--set", "httpRoute.enabled=true"}, "httpRoute.parentRefs is required"},
		"no host":           {[]string{"--set", "ingress.enabled=true"}, "ingress.host is required"},
	} {
		if out := failing(t, "helm", append([]string{"template", chart}, tc.args...)...); !strings.Contains(out, tc.want) {
			t.Errorf("%s: helm says %s, want %q", name, out, tc.want)
		}
	}
}
