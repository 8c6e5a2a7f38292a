package parity

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/world"
)

// What the decision log has of inputs is of the schema that is published for them:
// of every call of the table, in all dialects.
func TestLoggedInputsAreOfTheSchema(t *testing.T) {
	text, err := os.ReadFile("../../policies/input.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.CompileString("input.schema.json", string(text))
	if err != nil {
		t.Fatal(err)
	}
	d := openDoor(t, "http")
	var log world.Buffer
	data := world.Listen(t)
	d.gateway = world.Gateway(t, load(t, "decisions: {stdout: true}\n"+d.text, d.upstream), gateway.Deps{
		Redis: world.Redis(t, d.redis.Addr()), Logger: d.logs.Logger(), Data: data, Admin: world.Listen(t), Stdout: &log, Now: d.clock.Now,
	})
	d.addr = data.Addr().String()
	end := world.Run(t, d.gateway)
	template := d.asPlatform(t, "POST", "/v2/templates", `{"name":"t","image":"i:1","env":{"A":"secret"}}`)["id"].(string)
	pod := d.asPlatform(t, "POST", "/v2/pods", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)["id"].(string)
	for _, c := range table() {
		if c.door == "" {
			d.ask(t, c.request)
		}
	}
	for _, raw := range []string{
		request("POST", "/v2/pods", "key_exempt", `{"name":"a","templateId":"`+template+`","gpu":{"id":"NVIDIA L4"},"env":{"B":"x"}}`),
		request("PATCH", "/v2/pods/"+pod, "key_exempt", `{"disk":30}`),
		request("POST", "/v2/pods/"+pod+"/action", "key_exempt", `{"action":"stop"}`),
		request("POST", "/v1/pods/"+pod+"/start", "key_exempt", ""),
		request("POST", "/v2/serverless", "key_exempt", smallEndpoint),
		request("POST", "/v2/network-volumes", "key_exempt", `{"name":"v","size":100,"dataCenter":"EU-RO-1"}`),
		request("POST", "/v2/registries", "key_exempt", `{"name":"r","username":"u","password":"p"}`),
		request("POST", "/graphql", "key_exempt", `{"query":"{ myself { pods { id } } gpuTypes { id } }"}`),
	} {
		if a := d.ask(t, raw); a.Status >= 400 {
			t.Errorf("%.60q: %d %s", raw, a.Status, a.Body)
		}
	}
	end()
	operations := map[any]bool{}
	for line := range strings.Lines(log.String()) {
		var event struct {
			Input map[string]any `json:"input"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if err := schema.Validate(any(event.Input)); err != nil {
			t.Errorf("%#v\n%s", err, line)
		}
		request, _ := event.Input["request"].(map[string]any)
		operations[request["operation"]] = true
	}
	if len(operations) < 10 {
		t.Errorf("decisions about %v alone, want about more operations", operations)
	}
}
