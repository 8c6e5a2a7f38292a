package parity

import (
	"fmt"
	"strings"
	"testing"
)

// onlyOfficial allows no template but one that is not there.
const onlyOfficial = `- {policy: templates, params: {allow_own: false, allow: [official]}}`

// TestTemplatesThatAreNotNamed: where the old interfaces write a template's settings into the
// body, because v2 has no word for that wish, the policy about templates judges it as if it was
// named.
func TestTemplatesThatAreNotNamed(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		made := d.asPlatform(t, "POST", "/v2/templates", `{"name":"t","image":"img:1","mounts":{"persistent":{"size":20,"path":"/w"}}}`)
		id := fmt.Sprint(made["id"])
		endpoint := d.asPlatform(t, "POST", "/v2/serverless", smallEndpoint)
		virtual := fmt.Sprint("ept_", endpoint["id"])
		other := fmt.Sprint(d.asPlatform(t, "POST", "/v2/serverless", smallEndpoint)["id"])
		ask := func(method, target, body string) answer {
			return d.ask(t, request(method, target, "key_platform", body))
		}
		graphql := func(query string) answer {
			return ask("POST", "/graphql", fmt.Sprintf(`{"query":%q}`, query))
		}
		deploy := func() answer {
			return graphql(`mutation { podFindAndDeployOnDemand(input: {name: "a", templateId: "` + id + `", gpuTypeId: "NVIDIA L4", cloudType: SECURE}) { id } }`)
		}
		const text = "templates: the template %s is not allowed"
		for name, tc := range map[string]struct {
			answer   answer
			template string
			status   int
		}{
			"v2": {ask("POST", "/v2/pods", `{"name":"a","templateId":"`+id+`","gpu":{"id":"NVIDIA L4"}}`), id, 403},
			"v1": {ask("POST", "/v1/pods", `{"templateId":"`+id+`","gpuTypeIds":["NVIDIA L4"]}`), id, 403},
			"v1 without its volume": {
				ask("POST", "/v1/pods", `{"templateId":"`+id+`","volumeInGb":0,"gpuTypeIds":["NVIDIA L4"]}`), id, 403,
			},
			"v1 endpoint of a virtual one": {
				ask("POST", "/v1/endpoints", `{"templateId":"`+virtual+`","name":"e","gpuTypeIds":["NVIDIA L4"]}`), virtual, 403,
			},
			"v1 endpoint changed to a virtual one": {
				ask("PATCH", "/v1/endpoints/"+other, `{"templateId":"`+virtual+`"}`), virtual, 403,
			},
			"GraphQL": {deploy(), id, 200},
			"GraphQL cluster": {
				graphql(`mutation { createCluster(input: {clusterName: "c", templateId: "` + id + `", gpuTypeId: "NVIDIA H100 80GB HBM3", podCount: 2, gpuCountPerPod: 8, type: TRAINING}) { id } }`), id, 200,
			},
		} {
			if tc.answer.Status != tc.status || !strings.Contains(tc.answer.Body, fmt.Sprintf(text, tc.template)) {
				t.Errorf("%s: %d %s, want %d because of the template", name, tc.answer.Status, tc.answer.Body, tc.status)
			}
		}
		// From now on the template has no volume for the old interfaces.
		if a := ask("PATCH", "/v1/templates/"+id, `{"volumeInGb":0}`); a.Status != 200 {
			t.Fatalf("take the volume away: %d %s", a.Status, a.Body)
		}
		if a := deploy(); !strings.Contains(a.Body, fmt.Sprintf(text, id)) || !strings.Contains(a.Body, "FORBIDDEN") {
			t.Errorf("GraphQL without its volume: %d %s, want a refusal", a.Status, a.Body)
		}
		if a := ask("POST", "/v1/pods", `{"templateId":"`+id+`","gpuTypeIds":["NVIDIA L4"]}`); a.Status != 403 {
			t.Errorf("v1 without its volume, as remembered: %d %s, want 403", a.Status, a.Body)
		}
		for _, op := range []string{"createPod", "createCluster", "updateEndpoint"} {
			if n := len(d.platform.CallsTo(op)); n != 0 {
				t.Errorf("%d calls of %s reached the platform", n, op)
			}
		}
	}, under(onlyOfficial))
}

// TestTemplatesWithoutTheirVolume: a template that is allowed is still written
// into the body, and the volume nobody wants does not come back.
func TestTemplatesWithoutTheirVolume(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		made := d.asPlatform(t, "POST", "/v2/templates", `{"name":"t","image":"img:1","env":{"A":"t"},"mounts":{"persistent":{"size":20,"path":"/w"}}}`)
		id := fmt.Sprint(made["id"])
		if a := d.ask(t, request("POST", "/v1/pods", "key_platform", `{"templateId":"`+id+`","volumeInGb":0,"gpuTypeIds":["NVIDIA L4"]}`)); a.Status != 201 {
			t.Fatalf("create: %d %s", a.Status, a.Body)
		}
		sent := d.lastBody(t, "createPod")
		if sent["templateId"] != nil || sent["mounts"] != nil || sent["image"] != "img:1" {
			t.Errorf("sent %v, want the template's settings without its id and volume", sent)
		}
	}, under(strings.Replace(onlyOfficial, "allow_own: false", "allow_own: true", 1)))
}
