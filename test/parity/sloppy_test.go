package parity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/translate"
)

// v1's actions read their body within the bounds on bodies and drop any: the retired service did
// not look at it.
func TestV1ActionsDropTheirBodies(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		made := d.ask(t, request("POST", "/v1/pods", "key_research", `{"name":"b","imageName":"i:1","gpuTypeIds":["NVIDIA L4"]}`))
		pod := "/v1/pods/" + translate.Text(decoded(t, made), "id") + "/"
		for _, verb := range []string{"stop", "start", "restart", "reset"} {
			for _, body := range []string{"not json", `{"a":1,"a":2}`, "[" + strings.Repeat("[", 1000), "\xff"} {
				if a := d.ask(t, request("POST", pod+verb, "key_research", body)); a.Status != 200 {
					t.Errorf("%s with %.20q: %d %s, want 200", verb, body, a.Status, a.Body)
				}
			}
			if a := d.ask(t, request("POST", pod+verb, "key_research", strings.Repeat("x", 102401))); a.Status != 413 {
				t.Errorf("%s with too large a body: %d %s, want 413", verb, a.Status, a.Body)
			}
		}
		if a := d.ask(t, request("PATCH", strings.TrimSuffix(pod, "/"), "key_research", "not json")); a.Status != 400 {
			t.Errorf("an update: %d %s, want 400", a.Status, a.Body)
		}
	})
}

// GraphQL takes CPU types of one vCPU as those of two, names all unknown members of a
// request, and says what v2 refuses in the names of the caller.
func TestGraphQLSaysWhatTheCallerSaid(t *testing.T) {
	t.Parallel()
	deploy := func(members string) string {
		return graphql(`mutation { deployCpuPod(input: {name: "c", imageName: "i:1", containerDiskInGb: 10` + members + `}) { id vcpuCount } }`)
	}
	eachDoor(t, func(t *testing.T, d *door) {
		a := d.ask(t, deploy(`, instanceId: "cpu3c-1-2"`))
		if got := translate.Whole(decoded(t, a), "data", "deployCpuPod", "vcpuCount"); got != 2 {
			t.Errorf("one vCPU: %s, want a pod of 2", a.Body)
		}
		a = d.ask(t, deploy(`, instanceId: "cpu3c-2-4", zebra: 1, apple: {a: 1}, env: [{key: "a", val: "b"}]`))
		var said []string
		for _, item := range translate.Items(decoded(t, a), "errors") {
			said = append(said, strings.Split(translate.Text(item, "message"), `"`)[1])
		}
		if got := strings.Join(said, " "); got != "zebra apple val" {
			t.Errorf("unknown members %q, want zebra apple val: %s", got, a.Body)
		}
		a = d.ask(t, deploy(`, instanceId: "cpu3c-2-4", ports: "nope"`))
		if !strings.Contains(a.Body, `ports`) || strings.Contains(a.Body, "$.") {
			t.Errorf("a refusal of v2: %s, want the caller's names", a.Body)
		}
		a = d.ask(t, graphql(`mutation { saveEndpoint(input: {name: "e", gpuIds: "ADA_24", idleTimeout: 4000, template: {imageName: "i"}}) { id } }`))
		if !strings.Contains(a.Body, "idleTimeout:") || strings.Contains(a.Body, "$.workers") {
			t.Errorf("a refusal of v2: %s, want it to name idleTimeout", a.Body)
		}
	})
}

// Nothing leaves for the platform that its published description lacks: a command of a resource
// other than a pod leaves with args, though its caller wrote halves. The emulator refuses the
// halves, as the platform may.
func TestCommandsLeaveAsPublished(t *testing.T) {
	t.Parallel()
	const rest = `"image":"i:1","gpu":{"pools":["ADA_24"]},"workers":{"max":1},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}`
	eachDoor(t, func(t *testing.T, d *door) {
		ask := func(method, path, body string) string {
			t.Helper()
			a := d.ask(t, request(method, path, "key_platform", body))
			if a.Status > 201 {
				t.Fatalf("%s %s %s: %d %s", method, path, body, a.Status, a.Body)
			}
			return translate.Text(decoded(t, a), "id")
		}
		sent := func(operation string) map[string]any {
			t.Helper()
			calls := d.platform.CallsTo(operation)
			var body map[string]any
			if err := json.Unmarshal(calls[len(calls)-1].Body, &body); err != nil {
				t.Fatal(err)
			}
			for _, half := range []string{"cmd", "entrypoint"} {
				if _, has := body[half]; has {
					t.Errorf("%s was sent %s: %v", operation, half, body)
				}
			}
			return body
		}
		says := func(operation string, want any) {
			t.Helper()
			if got := sent(operation)["args"]; got != want {
				t.Errorf("%s was sent args %v, want %v", operation, got, want)
			}
		}
		endpoint := ask("POST", "/v2/serverless", `{"name":"e","type":"QUEUE","cmd":["a","b c"],"entrypoint":["sh"],`+rest+`}`)
		says("createEndpoint", `{"entrypoint":["sh"],"cmd":["a","b c"]}`)
		ask("PATCH", "/v2/serverless/"+endpoint, `{"cmd":["d"]}`)
		says("updateEndpoint", `{"entrypoint":["sh"],"cmd":["d"]}`)
		ask("PATCH", "/v2/serverless/"+endpoint, `{"cmd":[],"entrypoint":[]}`)
		says("updateEndpoint", "")
		template := ask("POST", "/v2/templates", `{"name":"bare","image":"i:1","serverless":true,"startSsh":false,"startJupyter":false}`)
		ask("POST", "/v2/serverless", `{"name":"f","type":"QUEUE","templateId":"`+template+`",`+rest+`}`)
		says("createEndpoint", "")
		ask("POST", "/v2/templates", `{"name":"split","image":"i:1","cmd":["x"]}`)
		says("createTemplate", `{"cmd":["x"]}`)
		ask("POST", "/v2/clusters", `{"name":"c","image":"i:1","cmd":["x"],"entrypoint":["sh","-c"],"type":"TRAINING","compute":{"gpuTypeId":"NVIDIA A100-SXM4-80GB","gpuCountPerPod":1,"podCount":2}}`)
		says("createCluster", `{"entrypoint":["sh","-c"],"cmd":["x"]}`)
	})
}

// A caller's key never leaves for the platform, in no dialect: it is taken out of the
// environment with a warning, and refused elsewhere.
func TestKeysInBodiesStayInside(t *testing.T) {
	t.Parallel()
	made := identity.NewKey()
	calls := []struct{ name, target, body string }{
		{"v2", "/v2/pods", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"},"env":{"A":"b","K":"%s"}}`},
		{"v1", "/v1/pods", `{"name":"b","imageName":"i:1","gpuTypeIds":["NVIDIA L4"],"env":{"A":"b","K":"%s"}}`},
		{"GraphQL", "/graphql", `{"query":"mutation { saveTemplate(input: {name: \"t%[2]d\", imageName: \"i\", dockerArgs: \"\", containerDiskInGb: 5, volumeInGb: 0, env: [{key: \"A\", value: \"b\"}, {key: \"K\", value: \"%[1]s\"}]}) { id } }"}`},
	}
	leaked := func(t *testing.T, d *door) {
		t.Helper()
		for _, call := range d.platform.Calls() {
			if bytes.Contains(call.Body, []byte("key_research")) || bytes.Contains(call.Body, []byte(made)) {
				t.Errorf("the platform was sent a key: %s", call.Body)
			}
		}
	}
	eachDoor(t, func(t *testing.T, d *door) {
		for _, c := range calls {
			for i, value := range []string{"key_research", "key_globex", made, "Bearer " + made} {
				body := c.body
				if strings.Contains(body, "%[2]d") {
					body = fmt.Sprintf(body, value, i)
				} else {
					body = fmt.Sprintf(body, value)
				}
				a := d.ask(t, request("POST", c.target, "key_platform", body))
				told := strings.Join(append(a.Header["X-Tollgate-Warning"], a.Header["X-Legacy-Warning"]...), " ")
				if a.Status > 201 || strings.Contains(a.Body, `"errors"`) || !strings.Contains(told, "removed from env because of a gateway key or token: K") {
					t.Errorf("%s with %.12s: %d %s, warnings %q", c.name, value, a.Status, a.Body, told)
				}
			}
		}
		for _, c := range calls {
			body := strings.NewReplacer(`"K":"%s"`, `"`+made+`":"x"`, `\"K\", value: \"%[1]s\"`, `\"`+made+`\", value: \"x\"`, "%[2]d", "named").Replace(c.body)
			a := d.ask(t, request("POST", c.target, "key_platform", body))
			if told := fmt.Sprint(a.Header, a.Body); !strings.Contains(body, made) || !strings.Contains(a.Body, "env: contains a gateway key") || strings.Contains(told, made) {
				t.Errorf("%s with a key for a name: %d %s, want it refused, and not repeated", c.name, a.Status, told)
			}
		}
		if last := d.platform.CallsTo("createPod"); !bytes.Contains(last[0].Body, []byte(`"env":{"A":"b"}`)) {
			t.Errorf("what else is in the environment is sent: %s", last[0].Body)
		}
		a := d.ask(t, request("POST", "/v2/pods", "key_platform", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"},"args":"serve --key `+made+`"}`))
		if a.Status != 422 || !strings.Contains(a.Body, "$.args: contains a gateway key") {
			t.Errorf("in args: %d %s, want 422", a.Status, a.Body)
		}
		leaked(t, d)
	})
	eachDoor(t, func(t *testing.T, d *door) {
		a := d.ask(t, request("POST", "/v2/pods", "key_platform", fmt.Sprintf(calls[0].body, "key_research")))
		if a.Status != 422 || !strings.Contains(a.Body, "$.env.K: contains a gateway key") {
			t.Errorf("refused: %d %s, want 422", a.Status, a.Body)
		}
		leaked(t, d)
	}, func(d *door) {
		d.text = strings.Replace(d.text, "credential: {env: ACME}", "credential: {env: ACME}\n    keys_in_bodies: refuse", 1)
	})
}
