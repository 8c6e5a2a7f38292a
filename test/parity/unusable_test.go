package parity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/translate"
)

// An answer of the platform that is none, with a status of success, is a 502 in the
// old dialects. It does not mean that there is nothing.
func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	reads := []struct {
		operation, v1, graphql string
		bodies                 []string // besides those that no operation answers
	}{
		{"listPods", "/pods", "myself { pods { id } }", append(hostilePods(), `{"pods":null}`, `{"pods":{}}`)},
		{"getPod", "/pods/x", `pod(input: {podId: "x"}) { id }`, nil},
		{"listEndpoints", "/endpoints", "myself { endpoints { id } }", []string{`{"endpoints":"none"}`}},
		{"getEndpoint", "/endpoints/x", `myself { endpoint(id: "x") { id } }`, nil},
		{"listTemplates", "/templates", "myself { podTemplates { id } }", []string{`{"items":[]}`}},
		{"getTemplate", "/templates/x", `podTemplate(id: "x") { id }`, nil},
		{"listNetworkVolumes", "/networkvolumes", "myself { networkVolumes { id } }", nil},
		{"getNetworkVolume", "/networkvolumes/x", "", nil},
		{"listRegistries", "/containerregistryauth", "myself { containerRegistryCreds { id } }", nil},
		{"getRegistry", "/containerregistryauth/x", "", nil},
		{"listPodBilling", "/billing/pods", "", []string{`{"records":null}`}},
		{"listServerlessBilling", "/billing/endpoints", "", nil},
		{"listNetworkVolumeBilling", "/billing/networkvolumes", "", nil},
		{"getSshKeys", "", "myself { pubKey }", []string{`{"keys":null}`}},
		{"listGpuTypes", "", "gpuTypes { id }", []string{`{"gpus":null}`}},
		{"listCpuTypes", "", "cpuFlavors { id }", nil},
		{"listDataCenters", "", "dataCenters { id }", nil},
		{"listPublicTemplates", "/templates?includePublicTemplates=true", "podTemplates { id }", nil},
	}
	eachDoor(t, func(t *testing.T, d *door) {
		for _, r := range reads {
			for _, body := range append([]string{"not JSON", " ", "null", "[]", "{}", `"pods"`}, r.bodies...) {
				d.platform.ClearFaults()
				d.platform.AddFault(platform.Fault{Operation: r.operation, Kind: platform.FaultMalformed, Body: body})
				d.advance(catalogKept) // what the catalog failed to tell is asked again
				if r.v1 != "" {
					if a := d.ask(t, request("GET", "/v1"+r.v1, "key_exempt", "")); a.Status != 502 {
						t.Errorf("v1 %s, %s answers %q: %d %.200s, want 502", r.v1, r.operation, body, a.Status, a.Body)
					}
				}
				if r.graphql == "" {
					continue
				}
				d.advance(catalogKept)
				a := d.ask(t, request("POST", "/graphql", "key_exempt", fmt.Sprintf(`{"query":%q}`, "{ "+r.graphql+" }")))
				faults := translate.Items(decoded(t, a), "errors")
				if len(faults) == 0 || fmt.Sprint(translate.At(faults[0], "extensions", "status")) != "502" || strings.Contains(a.Body, "[]") {
					t.Errorf("GraphQL %s, %s answers %q: %d %.300s, want an error with status 502", r.graphql, r.operation, body, a.Status, a.Body)
				}
			}
		}
	})
}

// hostilePods are lists of pods that have two readings or ask for work without end.
func hostilePods() []string {
	return []string{
		`{"pods":[{"id":"a","id":"b"}]}`, `{"pods":[{"id":"a","env":{"A":"1","\u0041":"2"}}]}`, `{"pods":[],"pods":[{"id":"a"}]}`,
		`{"pods":[{"id":"a","runtime":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}]}`, `{"pods":[{"id":"a","cost":1e100000}]}`,
		`{"pods":[{"id":"a","disk":` + strings.Repeat("9", 600) + `}]}`, `{"pods":[{"id":"\ud800"}]}`, `{"pods":[{"id":"a"}]}{}`, "{\"pods\":[{\"id\":\"\xff\"}]}",
	}
}

// A strange member in a pod of a list is shown as it is, or as if it were not there.
func TestStrangePodsAreListed(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.platform.AddFault(platform.Fault{Operation: "listPods", Kind: platform.FaultMalformed, Body: `{"pods":[
			{"id":"a","env":{"Z":{"b":1,"a":[{"c":null}]},"A":[{}]},"gpu":{"id":7},"mounts":[],"ports":{"a":1},"runtime":{"ports":[{"type":"tcp","public":1,"private":22}]}},
			{"id":"b","name":{"x":1},"cpu":{"id":"cpu5c","vcpuCount":"2"},"cost":"free","createdAt":{}},
			7]}`})
		a := d.ask(t, request("GET", "/v1/pods", "key_exempt", ""))
		for _, want := range []string{`"env":{"A":[{}],"Z":{"a":[{"c":null}],"b":1}}`, `"portMappings":{"22":1}`, `"cpuFlavorId":"cpu5c"`, `"id":""`} {
			if a.Status != 200 || !strings.Contains(a.Body, want) {
				t.Errorf("%d, without %s: %s", a.Status, want, a.Body)
			}
		}
	})
}

// A change whose answer is none is a 502 in the old dialects, too: whether it took
// place is not known.
func TestChangesWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		made := func(path, body string) string {
			t.Helper()
			id, _ := d.asPlatform(t, "POST", path, body)["id"].(string)
			return id
		}
		pod := made("/v2/pods", `{"name":"p","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)
		endpoint := made("/v2/serverless", `{"name":"e","image":"i","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`)
		template := made("/v2/templates", `{"name":"t","image":"i"}`)
		volume := made("/v2/network-volumes", `{"name":"v","size":10,"dataCenter":"EU-RO-1"}`)
		for _, c := range []struct {
			operation, method, path, body string
			field, kind, selection        string
			input                         map[string]any
		}{
			{"updatePod", "PATCH", "/pods/" + pod, `{"name":"q"}`, "podEditJob", "PodEditJobInput!", "{ id }", map[string]any{"podId": pod, "imageName": "i:2", "containerDiskInGb": 20, "dockerArgs": ""}},
			{"podAction", "POST", "/pods/" + pod + "/stop", "", "podStop", "PodStopInput!", "{ id }", map[string]any{"podId": pod}},
			{"podAction", "POST", "/pods/" + pod + "/restart", "", "podRestart", "PodRestartInput!", "{ id }", map[string]any{"podId": pod}},
			{"updateEndpoint", "PATCH", "/endpoints/" + endpoint, `{"workersMax":2}`, "saveEndpoint", "EndpointInput!", "{ id }", map[string]any{"id": endpoint, "name": "e", "gpuIds": "ADA_24", "workersMax": 2}},
			{"updateTemplate", "PATCH", "/templates/" + template, `{"imageName":"j"}`, "saveTemplate", "SaveTemplateInput!", "{ id }", map[string]any{"id": template, "name": "t", "imageName": "j", "containerDiskInGb": 5, "volumeInGb": 0, "dockerArgs": "", "env": []any{}}},
			{"updateNetworkVolume", "PATCH", "/networkvolumes/" + volume, `{"name":"w"}`, "updateNetworkVolume", "UpdateNetworkVolumeInput!", "{ id }", map[string]any{"id": volume, "name": "w"}},
			{"updateSshKeys", "", "", "", "updateUserSettings", "UpdateUserSettingsInput!", "{ id }", map[string]any{"pubKey": "ssh-ed25519 AAAA a"}},
		} {
			for _, body := range []string{"not JSON", " ", "null", "[]", "{}", `"x"`} {
				d.platform.ClearFaults()
				d.platform.AddFault(platform.Fault{Operation: c.operation, Kind: platform.FaultMalformed, Body: body})
				if c.path != "" {
					if a := d.ask(t, request(c.method, "/v1"+c.path, "key_platform", c.body)); a.Status != 502 {
						t.Errorf("v1 %s, %s answers %q: %d %.200s, want 502", c.path, c.operation, body, a.Status, a.Body)
					}
				}
				a := d.ask(t, mutation(t, c.field, c.kind, c.selection, c.input))
				faults := translate.Items(decoded(t, a), "errors")
				if len(faults) == 0 || fmt.Sprint(translate.At(faults[0], "extensions", "status")) != "502" {
					t.Errorf("GraphQL %s, %s answers %q: %d %.300s, want an error with status 502", c.field, c.operation, body, a.Status, a.Body)
				}
			}
		}
	})
}
