package parity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// byTemplate makes a cluster by the template %s.
const byTemplate = `{"name":"c","type":"TRAINING","compute":{"gpuTypeId":"NVIDIA L4","gpuCountPerPod":1,"podCount":2},"templateId":"%s"}`

// TestClustersByTemplate: policies and prices judge what the template supplies, and the judged values are sent.
func TestClustersByTemplate(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		made := d.asPlatform(t, "POST", "/v2/templates", `{"name":"t","image":"ghcr.io/acme/train:1","env":{"A":"t"},"ports":["22/tcp"],"disk":40,"args":"run","startSsh":false,
			"mounts":{"persistent":{"size":20,"path":"/w"}}}`)
		id := made["id"].(string)
		create := func(template string) answer {
			return d.ask(t, request("POST", "/v2/clusters", "key_platform", fmt.Sprintf(byTemplate, template)))
		}
		if a := create(id); a.Status != 201 {
			t.Fatalf("create: %d %s", a.Status, a.Body)
		}
		want := map[string]any{
			"name": "c", "type": "TRAINING", "compute": map[string]any{"gpuTypeId": "NVIDIA L4", "gpuCountPerPod": 1.0, "podCount": 2.0},
			"image": "ghcr.io/acme/train:1", "env": map[string]any{"A": "t"}, "ports": []any{"22/tcp"}, "disk": 40.0, "args": "run",
			"mounts": map[string]any{"persistent": map[string]any{"size": 20.0, "path": "/w"}}, "startSsh": false, "startJupyter": true,
		}
		if diff := cmp.Diff(want, d.lastBody(t, "createCluster")); diff != "" {
			t.Errorf("what was sent (-want +got):\n%s", diff)
		}
		d.asPlatform(t, "PATCH", "/v2/templates/"+id, `{"image":"evil.example/miner:1"}`) // read anew, without a wait
		wantRefusal(t, create(id), "images /image")
		if a := create("nope1234"); a.Status != 404 {
			t.Errorf("an unknown template: %d %s, want 404", a.Status, a.Body)
		}
		serverless := d.asPlatform(t, "POST", "/v2/templates", `{"name":"s","image":"ghcr.io/acme/train:1","serverless":true}`)
		if a := create(serverless["id"].(string)); a.Status != 422 || !strings.Contains(a.Body, "$.templateId: a serverless template makes neither pods nor clusters") {
			t.Errorf("a serverless template: %d %s, want 422", a.Status, a.Body)
		}
		if n := len(d.platform.CallsTo("createCluster")); n != 1 {
			t.Errorf("%d clusters were asked for, want 1", n)
		}
	}, under(workersAndImages))
}

// TestClustersWithPolicySettings: what a policy sets is sent with the values of the template.
func TestClustersWithPolicySettings(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		id := d.asPlatform(t, "POST", "/v2/templates", `{"name":"t","image":"img:1","env":{"A":"t"}}`)["id"].(string)
		a := d.ask(t, request("POST", "/v2/clusters", "key_platform", fmt.Sprintf(byTemplate, id)))
		sent := d.lastBody(t, "createCluster")
		if diff := cmp.Diff(map[string]any{"A": "t", "TEAM": "x"}, sent["env"]); diff != "" || a.Status != 201 || sent["image"] != "img:1" || sent["templateId"] != nil {
			t.Errorf("create: %d %s, sent %v", a.Status, a.Body, sent)
		}
	}, under(setsEnv))
}

// setsEnv sets a container setting of clusters.
const setsEnv = `
- policy: field_values
  params: {force: {createCluster: {/env/TEAM: x}}}
`

// TestClustersByTemplateAlone: container settings beside the template are the platform's 400.
func TestClustersByTemplateAlone(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		id := d.asPlatform(t, "POST", "/v2/templates", `{"name":"t","image":"img:1"}`)["id"].(string)
		for name, value := range map[string]string{
			"image": `"i"`, "args": `""`, "entrypoint": `["e"]`, "cmd": `[]`, "disk": `1`, "env": `{}`, "ports": `[]`, "mounts": `{}`,
		} {
			body := strings.Replace(fmt.Sprintf(byTemplate, id), "{", `{"`+name+`":`+value+`,`, 1)
			a := d.ask(t, request("POST", "/v2/clusters", "key_platform", body))
			if a.Status != 400 || !strings.Contains(a.Body, "$."+name+": cannot be sent beside 'templateId'") {
				t.Errorf("%s beside the template: %d %s, want 400", name, a.Status, a.Body)
			}
		}
		body := strings.Replace(fmt.Sprintf(byTemplate, id), "{", `{"dataCenterIds":[],"startJupyter":false,`, 1)
		if a := d.ask(t, request("POST", "/v2/clusters", "key_platform", body)); a.Status != 201 {
			t.Errorf("other members beside the template: %d %s, want 201", a.Status, a.Body)
		}
	})
}
