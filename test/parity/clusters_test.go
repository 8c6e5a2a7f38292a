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
		if a := create(serverless["id"].(string)); a.Status != 422 || !strings.Contains(a.Body, "$.templateId: a serverless template cannot be used for pods or clusters") {
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
			if a.Status != 400 || !strings.Contains(a.Body, "$."+name+": cannot be combined with 'templateId'") {
				t.Errorf("%s beside the template: %d %s, want 400", name, a.Status, a.Body)
			}
		}
		body := strings.Replace(fmt.Sprintf(byTemplate, id), "{", `{"dataCenterIds":[],"startJupyter":false,`, 1)
		if a := d.ask(t, request("POST", "/v2/clusters", "key_platform", body)); a.Status != 201 {
			t.Errorf("other members beside the template: %d %s, want 201", a.Status, a.Body)
		}
	})
}

// TestClustersWithARegistryCredential: a cluster's body cannot state a registry credential, so the cluster is made by the template that
// supplies it, as it was judged.
func TestClustersWithARegistryCredential(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		registry := d.asPlatform(t, "POST", "/v2/registries", bodies["createRegistry"])["id"].(string)
		template := fmt.Sprintf(`{"name":"t","image":"ghcr.io/acme/private:1","registry":"%s","env":{"A":"t"}}`, registry)
		id := d.asPlatform(t, "POST", "/v2/templates", template)["id"].(string)
		create := func(template string) answer {
			return d.ask(t, request("POST", "/v2/clusters", "key_platform", fmt.Sprintf(byTemplate, template)))
		}
		made := create(id)
		want := map[string]any{
			"name": "c", "type": "TRAINING", "compute": map[string]any{"gpuTypeId": "NVIDIA L4", "gpuCountPerPod": 1.0, "podCount": 2.0}, "templateId": id,
		}
		if diff := cmp.Diff(want, d.lastBody(t, "createCluster")); diff != "" || made.Status != 201 {
			t.Fatalf("create: %d %s, what was sent (-want +got):\n%s", made.Status, made.Body, diff)
		}
		pods := d.asPlatform(t, "GET", "/v2/clusters/"+fmt.Sprint(field(t, made.Body, "id"))+"/pods", "")["pods"].([]any)
		for _, pod := range pods {
			if p := pod.(map[string]any); p["registry"] != registry || p["image"] != "ghcr.io/acme/private:1" {
				t.Errorf("a member has the image %v with the credential %v, want those of the template", p["image"], p["registry"])
			}
		}
		if len(pods) != 2 {
			t.Errorf("%d members, want 2", len(pods))
		}
		d.asPlatform(t, "PATCH", "/v2/templates/"+id, `{"image":"evil.example/miner:1"}`)
		wantRefusal(t, create(id), "images /image")
		d.asPlatform(t, "PATCH", "/v2/templates/"+id, `{"image":"ghcr.io/acme/private:2","registry":null}`)
		if a := create(id); a.Status != 201 || d.lastBody(t, "createCluster")["image"] != "ghcr.io/acme/private:2" {
			t.Errorf("without the credential: %d %s, want the template's values in the body", a.Status, a.Body)
		}
		if n := len(d.platform.CallsTo("createCluster")); n != 2 {
			t.Errorf("%d clusters were asked for, want 2", n)
		}
	}, under(workersAndImages))
}

// TestClustersWithTheCredentialOfOthers: the platform does not show the credential of a public template of another account, so its values
// are sent without it. The platform shows its CUDA versions, which the body cannot state: the cluster is refused, and nothing is lost.
func TestClustersWithTheCredentialOfOthers(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		globex := func(path, body string) string {
			a := d.ask(t, request("POST", path, "key_globex", body))
			if a.Status != 201 {
				t.Fatalf("%s: %d %s, want 201", path, a.Status, a.Body)
			}
			return fmt.Sprint(field(t, a.Body, "id"))
		}
		registry := globex("/v2/registries", bodies["createRegistry"])
		id := globex("/v2/templates", fmt.Sprintf(`{"name":"t","image":"ghcr.io/acme/open:1","public":true,"registry":"%s"}`, registry))
		a := d.ask(t, request("POST", "/v2/clusters", "key_platform", fmt.Sprintf(byTemplate, id)))
		sent := d.lastBody(t, "createCluster")
		if a.Status != 201 || sent["templateId"] != nil || sent["image"] != "ghcr.io/acme/open:1" {
			t.Errorf("create: %d %s, sent %v, want the image in place of the template", a.Status, a.Body, sent)
		}
		id = globex("/v2/templates", `{"name":"u","image":"ghcr.io/acme/open:1","public":true,"allowedCudaVersions":["12.4"]}`)
		a = d.ask(t, request("POST", "/v2/clusters", "key_platform", fmt.Sprintf(byTemplate, id)))
		if a.Status != 400 || !strings.Contains(a.Body, "$.templateId: a template of another account must not have") || len(d.platform.CallsTo("createCluster")) != 1 {
			t.Errorf("with CUDA versions: %d %s, want 400 and no cluster", a.Status, a.Body)
		}
	}, under(workersAndImages))
}

// TestClustersWithPolicySettingsAndCredential: what a policy sets cannot be sent beside the template, and is not left out.
func TestClustersWithPolicySettingsAndCredential(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		registry := d.asPlatform(t, "POST", "/v2/registries", bodies["createRegistry"])["id"].(string)
		id := d.asPlatform(t, "POST", "/v2/templates", fmt.Sprintf(`{"name":"t","image":"img:1","registry":"%s"}`, registry))["id"].(string)
		a := d.ask(t, request("POST", "/v2/clusters", "key_platform", fmt.Sprintf(byTemplate, id)))
		if a.Status != 503 || !strings.Contains(a.Body, "policies set env, which cannot be combined with template "+id) || len(d.platform.CallsTo("createCluster")) > 0 {
			t.Errorf("create: %d %s, want 503 and no cluster", a.Status, a.Body)
		}
	}, under(setsEnv))
}
