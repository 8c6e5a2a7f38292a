package parity

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// graph is what a program sends to the GraphQL interface.
type graph struct {
	Query     string         `json:"query"`
	Variables map[string]any `json:"variables,omitempty"`
}

// decodes asks and decodes data into a type, as a typed client does: a null where it has
// none, a fraction in an integer, and errors beside the data end it.
func decodes[T any](t *testing.T, d *door, target, key string, g graph) (data T) {
	t.Helper()
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	a := d.ask(t, request("POST", target, key, string(text)))
	var answer struct {
		Data   *T
		Errors []struct{ Message string }
	}
	if err := json.Unmarshal([]byte(a.Body), &answer); err != nil || a.Status != 200 || len(answer.Errors) > 0 || answer.Data == nil {
		t.Fatalf("%s: %d %s (%v)", g.Query, a.Status, a.Body, err)
	}
	return *answer.Data
}

// changed is what a change of a pod is decoded into.
type changed struct {
	ID               string  `json:"id"`
	CostPerHr        float64 `json:"costPerHr"`
	DesiredStatus    string  `json:"desiredStatus"`
	LastStatusChange string  `json:"lastStatusChange"`
}

// The old command line: what is for rent, and the life of a pod, as it asks for and
// decodes them, with a key without roles.
func TestTheOldCommandLine(t *testing.T) {
	const target, key = "/graphql", "key_globex"
	eachDoor(t, func(t *testing.T, d *door) {
		type price struct {
			LowestPrice struct {
				GpuName              *string
				GpuTypeID            *string  `json:"gpuTypeId"`
				UninterruptablePrice *float64 `json:"uninterruptablePrice"`
				MinMemory            *float64 `json:"minMemory"`
				MinVcpu              *float64 `json:"minVcpu"`
			}
			MemoryInGb int
		}
		cloud := decodes[struct{ GpuTypes []price }](t, d, target, key, graph{
			`query LowestPrice($input: GpuLowestPriceInput!) { gpuTypes { memoryInGb lowestPrice(input: $input) { gpuName gpuTypeId minimumBidPrice uninterruptablePrice minMemory minVcpu } } }`,
			map[string]any{"input": map[string]any{"gpuCount": 1, "secureCloud": true}},
		})
		rows := 0
		for _, g := range cloud.GpuTypes {
			if p := g.LowestPrice; p.GpuName != nil && p.GpuTypeID != nil && p.UninterruptablePrice != nil && p.MinMemory != nil && p.MinVcpu != nil && *p.MinMemory > 0 {
				rows++
			}
		}
		if rows < 20 {
			t.Errorf("%d of %d types can be printed, want most", rows, len(cloud.GpuTypes))
		}
		made := decodes[struct{ PodFindAndDeployOnDemand changed }](t, d, target, key, graph{
			`mutation createPod($input: PodFindAndDeployOnDemandInput!) { podFindAndDeployOnDemand(input: $input) { id costPerHr desiredStatus lastStatusChange } }`,
			map[string]any{"input": map[string]any{
				"cloudType": "SECURE", "containerDiskInGb": 20, "dockerArgs": "sleep infinity", "env": []any{map[string]any{"key": "A", "value": "b"}}, "gpuCount": 1,
				"gpuTypeId": "NVIDIA L4", "imageName": "img:1", "minMemoryInGb": 20, "minVcpuCount": 1, "name": "img", "ports": "8888/http,22/tcp", "templateId": "",
				"volumeInGb": 1, "volumeMountPath": "/workspace",
			}},
		}).PodFindAndDeployOnDemand
		if made.ID == "" || made.CostPerHr <= 0 || made.DesiredStatus != "RUNNING" {
			t.Fatalf("made %+v", made)
		}
		type pod struct {
			ID                string `json:"id"`
			ContainerDiskInGb int
			CostPerHr         float32
			DesiredStatus     string
			DockerArgs        string
			Env               []string
			GpuCount          int
			ImageName         string
			MemoryInGb        int
			Name              string
			PodType           string
			Ports             string
			VcpuCount         int
			VolumeInGb        int
			VolumeMountPath   string
			Machine           *struct{ GpuDisplayName string }
		}
		pods := decodes[struct{ Myself struct{ Pods []pod } }](t, d, target, key, graph{Query: `query myPods { myself { pods { id containerDiskInGb costPerHr desiredStatus dockerArgs dockerId
			env gpuCount imageName lastStatusChange machineId memoryInGb name podType port ports uptimeSeconds vcpuCount volumeInGb volumeMountPath machine { gpuDisplayName } } } }`}).Myself.Pods
		if len(pods) != 1 || pods[0].ID != made.ID || pods[0].GpuCount != 1 || pods[0].ContainerDiskInGb != 20 || pods[0].ImageName != "img:1" || pods[0].Machine == nil ||
			pods[0].Env[0] != "A=b" || !strings.Contains(pods[0].Ports, "8888/http") || pods[0].MemoryInGb == 0 {
			t.Errorf("pods %+v, want the one that was made", pods)
		}
		only := map[string]any{"podId": made.ID}
		stopped := decodes[struct{ PodStop changed }](t, d, target, key, graph{`mutation stopPod($podId: String!) { podStop(input: {podId: $podId}) { id desiredStatus lastStatusChange } }`, only}).PodStop
		resumed := decodes[struct{ PodResume changed }](t, d, target, key, graph{`mutation podResume($podId: String!) { podResume(input: {podId: $podId}) { id costPerHr desiredStatus lastStatusChange } }`, only}).PodResume
		if stopped.DesiredStatus != "EXITED" || resumed.DesiredStatus != "RUNNING" {
			t.Errorf("stopped %+v and resumed %+v", stopped, resumed)
		}
		decodes[map[string]any](t, d, target, key, graph{`mutation terminatePod($podId: String!) { podTerminate(input: {podId: $podId}) }`, only})
		if n := len(d.platform.CallsTo("createPod")); n != 1 || len(d.platform.CallsTo("deletePod")) != 1 {
			t.Errorf("%d pods were made, want one, and one removed", n)
		}
	})
}

// A scheduler that writes its values into the document and its key into the address: its
// check of the credential, a registry, a volume, a pod with both until it runs, a change of
// its image, and the way back.
func TestASchedulerByGraphQL(t *testing.T) {
	eachDoor(t, func(t *testing.T, d *door) {
		ask := func(format string, args ...any) map[string]any {
			t.Helper()
			return decodes[map[string]any](t, d, "/graphql?api_key=key_globex", "", graph{Query: fmt.Sprintf(format, args...)})
		}
		id := func(data map[string]any, name string) string {
			t.Helper()
			object, _ := data[name].(map[string]any)
			text, _ := object["id"].(string)
			if text == "" {
				t.Fatalf("%s: %v", name, data)
			}
			return text
		}
		if me := id(ask(`query myself { myself { id authId email } }`), "myself"); me == "" {
			t.Error("nobody")
		}
		registry := id(ask(`mutation { saveRegistryAuth(input: {name: "r", username: "u", password: "p"}) { id } }`), "saveRegistryAuth")
		creds, _ := ask(`query myself { myself { containerRegistryCreds { id, name } } }`)["myself"].(map[string]any)["containerRegistryCreds"].([]any)
		if len(creds) != 1 {
			t.Errorf("registries %v, want the one that was made", creds)
		}
		volume := id(ask(`mutation { createNetworkVolume(input: {name: "v", size: 20, dataCenterId: "EU-RO-1"}) { id } }`), "createNetworkVolume")
		volumes, _ := ask(`query getMyVolumes { myself { networkVolumes { id, name, size, dataCenter { id name } } } }`)["myself"].(map[string]any)["networkVolumes"].([]any)
		if first, _ := volumes[0].(map[string]any); len(volumes) != 1 || first["id"] != volume || first["dataCenter"] == nil {
			t.Errorf("volumes %v, want the one that was made", volumes)
		}
		made, _ := ask(`mutation { podFindAndDeployOnDemand(input: {name: "run-1", imageName: "img:1", gpuTypeId: "NVIDIA L40S", cloudType: SECURE, startSsh: true, supportPublicIp: true,
			dataCenterId: "EU-RO-1", gpuCount: 1, volumeInGb: 0, containerDiskInGb: 100, minVcpuCount: 1, minMemoryInGb: 1, dockerArgs: "bash -c 'sleep 1'", ports: "10999/http,10022/tcp",
			volumeMountPath: "/runpod-volume", env: [{ key: "RUNPOD_POD_USER", value: "0" }], networkVolumeId: "%s"}) { id lastStatusChange imageName machine { podHostId } } }`, volume)["podFindAndDeployOnDemand"].(map[string]any)
		pod, _ := made["id"].(string)
		if pod == "" || made["imageName"] != "img:1" {
			t.Fatalf("made %v", made)
		}
		const look = `query pod { pod(input: {podId: "%s"}) { id containerDiskInGb costPerHr desiredStatus dockerArgs dockerId env gpuCount imageName lastStatusChange machineId memoryInGb name podType port
			ports uptimeSeconds vcpuCount volumeInGb volumeMountPath runtime { ports { ip isIpPublic privatePort publicPort type } } machine { gpuDisplayName } } }`
		got, _ := ask(look, pod)["pod"].(map[string]any)
		if _, there := got["runtime"]; !there || got["desiredStatus"] != "RUNNING" || got["containerDiskInGb"] != 100.0 {
			t.Errorf("the pod %v, want it running, with a runtime or null", got)
		}
		if edited := id(ask(`mutation { podEditJob(input: { podId: "%s" imageName: "img:2" containerDiskInGb: 100 containerRegistryAuthId: "%s" volumeInGb: 0 }) { id } }`, pod, registry), "podEditJob"); edited != pod {
			t.Errorf("edited %s, want %s", edited, pod)
		}
		if got, _ := ask(look, pod)["pod"].(map[string]any); got["imageName"] != "img:2" {
			t.Errorf("the pod's image is %v, want the new one", got["imageName"])
		}
		ask(`mutation { podTerminate(input: { podId: "%s" }) }`, pod)
		ask(`mutation { deleteNetworkVolume(input: { id: "%s" }) }`, volume)
		ask(`mutation { deleteRegistryAuth( registryAuthId: "%s" ) }`, registry)
		// It reads the path of the first error to tell a pod that is gone from other faults.
		a := d.ask(t, request("POST", "/graphql?api_key=key_globex", "", `{"query":"mutation { podTerminate(input: { podId: \"`+pod+`\" }) }"}`))
		errs, _ := field(t, a.Body, "errors").([]any)
		if first, _ := errs[0].(map[string]any); a.Status != 200 || !strings.Contains(fmt.Sprint(first["path"]), "podTerminate") {
			t.Errorf("a pod that is gone: %d %s, want an error with its path", a.Status, a.Body)
		}
		if a := d.ask(t, request("POST", "/graphql?api_key=wrong", "", `{"query":"query myself { myself { id } }"}`)); a.Status != 401 {
			t.Errorf("a wrong key: %d, want 401, which it reads as one", a.Status)
		}
	})
}
