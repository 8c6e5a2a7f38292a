package parity

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// graph is a program's request to the GraphQL interface.
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

// changed is the decoded answer to a change of a pod.
type changed struct {
	ID               string  `json:"id"`
	CostPerHr        float64 `json:"costPerHr"`
	DesiredStatus    string  `json:"desiredStatus"`
	LastStatusChange string  `json:"lastStatusChange"`
}

// The old command line: the offers, and the life of a pod, as it asks for and decodes them, with a
// key without roles.
func TestTheOldCommandLine(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

// A manager of clusters, which calls GraphQL and v1: its check of the credential, a volume,
// a private image by a registry and a template, a pod with all of them until it can be
// reached, who uses the volume, a pod for a bid, and the way back.
func TestAManagerOfClusters(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		ask := func(format string, args ...any) map[string]any {
			t.Helper()
			return decodes[map[string]any](t, d, "/graphql", "key_globex", graph{Query: fmt.Sprintf(format, args...)})
		}
		myself := func(fields, list string) (out []map[string]any) {
			t.Helper()
			me, _ := ask(`query myself { myself { %s } }`, fields)["myself"].(map[string]any)
			items, ok := me[list].([]any)
			if !ok {
				t.Fatalf("%s: %v, want a list", list, me)
			}
			for _, item := range items {
				object, _ := item.(map[string]any)
				out = append(out, object)
			}
			return out
		}
		id := func(of any) string {
			t.Helper()
			object, _ := of.(map[string]any)
			text, _ := object["id"].(string)
			if text == "" {
				t.Fatalf("%v has no id", of)
			}
			return text
		}
		pods := func() []map[string]any {
			t.Helper()
			return myself(`pods { id containerDiskInGb containerRegistryAuthId costPerHr desiredStatus dockerArgs dockerId env gpuCount imageName lastStatusChange machineId memoryInGb name
				podType port ports uptimeSeconds vcpuCount volumeInGb volumeMountPath networkVolumeId runtime { ports { ip isIpPublic privatePort publicPort type } } machine { gpuDisplayName } }`, "pods")
		}
		if got := pods(); len(got) != 0 {
			t.Errorf("pods %v before there is one", got)
		}
		rest := func(method, path, body string, out any) {
			t.Helper()
			a := d.ask(t, request(method, "/v1"+path, "key_globex", body, "Content-Type: application/json"))
			if err := json.Unmarshal([]byte("["+a.Body+"]"), &[]any{out}); err != nil || a.Status >= 300 {
				t.Fatalf("%s %s: %d %s (%v)", method, path, a.Status, a.Body, err)
			}
		}
		var volumes []map[string]any
		if rest("GET", "/networkvolumes", "", &volumes); len(volumes) != 0 {
			t.Errorf("volumes %v before there is one", volumes)
		}
		var made map[string]any
		rest("POST", "/networkvolumes", `{"dataCenterId": "EU-RO-1", "name": "data", "size": 10}`, &made)
		volume := id(made)
		if rest("GET", "/networkvolumes", "", &volumes); len(volumes) != 1 || volumes[0]["name"] != "data" || volumes[0]["dataCenterId"] != "EU-RO-1" || volumes[0]["size"] != 10.0 {
			t.Errorf("volumes %v, want the one that was made", volumes)
		}
		gpu, _ := ask(`query GpuTypes { gpuTypes(input: {id: "NVIDIA L40S"}) { maxGpuCount id displayName manufacturer memoryInGb cudaCores secureCloud communityCloud securePrice communityPrice
			oneMonthPrice threeMonthPrice oneWeekPrice communitySpotPrice secureSpotPrice lowestPrice(input: {gpuCount: 1}) { minimumBidPrice uninterruptablePrice } } }`)["gpuTypes"].([]any)
		if first, _ := gpu[0].(map[string]any); len(gpu) != 1 || first["memoryInGb"] != 48.0 {
			t.Errorf("the type %v, want its memory", gpu)
		}
		registry := id(ask(`mutation SaveRegistryAuth { saveRegistryAuth(input: { name: "c-1-registry-auth", username: "u", password: "p" }) { id name } }`)["saveRegistryAuth"])
		template := id(ask(`mutation { saveTemplate(input: { name: "c-1-docker-login-template", imageName: "ghcr.io/o/img:1", dockerArgs: "", containerDiskInGb: 10, volumeInGb: 0, ports: "", env: [],
			containerRegistryAuthId: "%s", startSsh: true, isPublic: false, isServerless: false, readme: "" }) { id name imageName dockerArgs containerDiskInGb volumeInGb volumeMountPath ports
			env { key value } isServerless } }`, registry)["saveTemplate"])
		if got := myself("podTemplates { name containerRegistryAuthId }", "podTemplates"); len(got) != 1 || got[0]["name"] != "c-1-docker-login-template" || got[0]["containerRegistryAuthId"] != registry {
			t.Errorf("templates %v, want the one that was made, with its registry", got)
		}
		pod := id(ask(`mutation { podFindAndDeployOnDemand(input: { name: "c-1-head", imageName: "ghcr.io/o/img:1", gpuTypeId: "NVIDIA L40S", cloudType: SECURE, startSsh: true, supportPublicIp: true,
			dataCenterId: "EU-RO-1", countryCode: "RO", gpuCount: 1, volumeInGb: 0, containerDiskInGb: 50, minVcpuCount: 4, minMemoryInGb: 48, dockerArgs: "bash -c 'echo YQ== | base64 --decode > init.sh; bash init.sh'",
			ports: "22/tcp,8266/http,6380/http", volumeMountPath: "/data", templateId: "%s", networkVolumeId: "%s" }) { id desiredStatus imageName env machineId machine { podHostId } } }`, template, volume)["podFindAndDeployOnDemand"])
		got := pods()
		if len(got) != 1 || got[0]["id"] != pod || got[0]["name"] != "c-1-head" || got[0]["desiredStatus"] != "RUNNING" || got[0]["networkVolumeId"] != volume || got[0]["containerRegistryAuthId"] != registry {
			t.Fatalf("pods %v, want the one that was made, with its volume and its registry", got)
		}
		if runtime, ok := got[0]["runtime"].(map[string]any); ok {
			for _, port := range runtime["ports"].([]any) { //nolint:forcetypeassert // a list where there is a runtime
				for _, name := range []string{"ip", "isIpPublic", "privatePort", "publicPort"} {
					if _, there := port.(map[string]any)[name]; !there { //nolint:forcetypeassert // as above
						t.Errorf("the port %v has no %s", port, name)
					}
				}
			}
		}
		a := d.ask(t, request("POST", "/graphql", "key_globex", `{"query":"mutation { podRentInterruptable(input: { name: \"c-2-head\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L40S\", bidPerGpu: 0.3, volumeMountPath: \"/data\", cloudType: SECURE }) { id desiredStatus imageName env machineId machine { podHostId } } }"}`))
		if a.Status != 200 || !strings.Contains(a.Body, "Spot pods are no longer offered") || strings.Contains(strings.ToLower(a.Body), "forbidden") {
			t.Errorf("a pod for a bid: %d %s, want an error that is none of the credential", a.Status, a.Body)
		}
		ask(`mutation { podTerminate(input: { podId: "%s" }) }`, pod)
		ask(`mutation {deleteTemplate(templateName: "c-1-docker-login-template")}`)
		ask(`mutation DeleteRegistryAuth { deleteRegistryAuth(registryAuthId: "%s") }`, registry)
		rest("DELETE", "/networkvolumes/"+volume, "", &made)
		if n := len(d.platform.CallsTo("createPod")); n != 1 || len(d.platform.CallsTo("deletePod")) != 1 {
			t.Errorf("%d pods were made, want one, and one removed", n)
		}
	})
}

// members are those that a client with types decodes an object into: names with their types, a
// question mark before one that may be null or absent, and [] before a list.
type members map[string]string

// A client with types fails where a member is null or absent that it does not expect to be, or is
// a fraction where it has an integer: its types of v1.
var typed = map[string]members{ //nolint:gochecknoglobals // read only
	"pod": {
		"id": "string", "name": "?string", "image": "string", "consumerUserId": "string", "machineId": "string", "desiredStatus": "string", "costPerHr": "number",
		"adjustedCostPerHr": "number", "gpuCount": "?integer", "vcpuCount": "number", "memoryInGb": "number", "containerDiskInGb": "integer", "volumeInGb": "?integer",
		"volumeMountPath": "?string", "volumeEncrypted": "boolean", "ports": "[]string", "portMappings": "?object", "publicIp": "?string", "env": "object",
		"dockerEntrypoint": "?[]string", "dockerStartCmd": "?[]string", "interruptible": "boolean", "locked": "boolean", "gpu": "?gpu", "cpuFlavorId": "?string", "templateId": "?string",
		"networkVolumeId": "?string", "containerRegistryAuthId": "?string", "endpointId": "?string", "slsVersion": "?integer", "lastStartedAt": "?string", "lastStatusChange": "?string",
		"machine": "?machine", "networkVolume": "?volume",
	},
	"gpu": {
		"id": "string", "count": "integer", "displayName": "string", "securePrice": "number", "communityPrice": "number", "oneMonthPrice": "number", "threeMonthPrice": "number",
		"sixMonthPrice": "number", "oneWeekPrice": "number", "communitySpotPrice": "number", "secureSpotPrice": "number",
	},
	"machine": {
		"minPodGpuCount": "?integer", "gpuTypeId": "?string", "gpuType": "?gpu", "cpuCount": "?integer", "cpuTypeId": "?string", "location": "string", "dataCenterId": "string",
		"diskThroughputMBps": "?integer", "maxDownloadSpeedMbps": "?integer", "maxUploadSpeedMbps": "?integer", "supportPublicIp": "boolean", "secureCloud": "boolean", "costPerHr": "number",
		"currentPricePerGpu": "?number", "gpuAvailable": "?integer", "gpuDisplayName": "?string",
	},
	"endpoint": {
		"id": "string", "name": "?string", "userId": "string", "templateId": "string", "version": "integer", "computeType": "string", "createdAt": "string", "dataCenterIds": "[]string",
		"env": "?object", "executionTimeoutMs": "integer", "gpuCount": "?integer", "gpuTypeIds": "?[]string", "instanceIds": "?[]string", "idleTimeout": "integer", "networkVolumeId": "?string",
		"scalerType": "string", "scalerValue": "integer", "workersMax": "integer", "workersMin": "integer", "allowedCudaVersions": "?[]string", "template": "?template", "workers": "?[]pod",
	},
	"template": {
		"id": "string", "name": "string", "imageName": "string", "isPublic": "boolean", "isAcme": "boolean", "isServerless": "boolean", "category": "?string", "containerDiskInGb": "integer",
		"containerRegistryAuthId": "?string", "dockerEntrypoint": "?[]string", "dockerStartCmd": "?[]string", "earned": "?number", "env": "?object", "ports": "?[]string", "readme": "?string",
		"runtimeInMin": "?integer", "volumeInGb": "integer", "volumeMountPath": "string",
	},
	"volume":   {"id": "string", "name": "string", "size": "integer", "dataCenterId": "string"},
	"registry": {"id": "string", "name": "string"},
	"bill": {
		"amount": "number", "diskSpaceBilledGb": "?integer", "endpointId": "?string", "gpuTypeId": "?string", "podId": "?string", "time": "string", "timeBilledMs": "?integer",
	},
}

// fits reports what of a value does not fit a type.
func fits(at, kind string, v any) (faults []string) {
	if rest, optional := strings.CutPrefix(kind, "?"); optional {
		if v == nil {
			return nil
		}
		kind = rest
	}
	var ok bool
	switch list, isList := strings.CutPrefix(kind, "[]"); kind {
	case "string":
		_, ok = v.(string)
	case "boolean":
		_, ok = v.(bool)
	case "object":
		_, ok = v.(map[string]any)
	case "number", "integer":
		var n json.Number
		n, ok = v.(json.Number)
		if _, err := n.Int64(); kind == "integer" {
			ok = ok && err == nil
		}
	default:
		if isList {
			items, is := v.([]any)
			for i, item := range items {
				faults = append(faults, fits(fmt.Sprintf("%s[%d]", at, i), list, item)...)
			}
			ok = is
			break
		}
		object, is := v.(map[string]any)
		for name, kind := range typed[kind] {
			faults = append(faults, fits(at+"."+name, kind, object[name])...)
		}
		ok = is && typed[kind] != nil
	}
	if !ok {
		faults = append(faults, fmt.Sprintf("%s is %v, want %s", at, v, kind))
	}
	return faults
}

// A client of v1 with types decodes what every call answers, with a key without roles.
func TestAClientWithTypes(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		call := func(method, path, body, kind string) any {
			t.Helper()
			a := d.ask(t, request(method, "/v1"+path, "key_globex", body, "Content-Type: application/json"))
			if a.Status >= 300 {
				t.Fatalf("%s %s: %d %s", method, path, a.Status, a.Body)
			}
			if kind == "" {
				return nil
			}
			var v any
			decoder := json.NewDecoder(strings.NewReader(a.Body))
			if decoder.UseNumber(); decoder.Decode(&v) != nil {
				t.Fatalf("%s %s: %s", method, path, a.Body)
			}
			for _, fault := range fits(kind, kind, v) {
				t.Errorf("%s %s: %s", method, path, fault)
			}
			return v
		}
		make := func(path, body, kind string) string {
			t.Helper()
			object, _ := call("POST", path, body, kind).(map[string]any)
			id, _ := object["id"].(string)
			if id == "" {
				t.Fatalf("%s: %v has no id", path, object)
			}
			call("GET", path, "", "[]"+kind)
			if kind != "registry" {
				call("PATCH", path+"/"+id, `{"name":"renamed"}`, kind)
			}
			call("GET", path+"/"+id, "", kind)
			return id
		}
		registry := make("/containerregistryauth", `{"name":"r","username":"u","password":"p"}`, "registry")
		volume := make("/networkvolumes", `{"name":"v","size":10,"dataCenterId":"EU-RO-1"}`, "volume")
		template := make("/templates", `{"name":"t","imageName":"img:1"}`, "template")
		serverless := make("/templates", `{"name":"s","imageName":"img:1","isServerless":true,"env":{"A":"b"},"containerRegistryAuthId":"`+registry+`"}`, "template")
		endpoint := make("/endpoints", `{"templateId":"`+serverless+`","name":"e","gpuTypeIds":["NVIDIA L40S"],"workersMin":0,"workersMax":3}`, "endpoint")
		cpu := make("/endpoints", `{"templateId":"`+serverless+`","computeType":"CPU","cpuFlavorIds":["cpu3c"],"vcpuCount":2}`, "endpoint")
		pod := make("/pods", `{"name":"p","imageName":"img:1","gpuCount":1,"gpuTypeIds":["NVIDIA L40S"],"dataCenterIds":["EU-RO-1"],"networkVolumeId":"`+volume+`"}`, "pod")
		small := make("/pods", `{"imageName":"img:1","computeType":"CPU","cpuFlavorIds":["cpu3c"],"vcpuCount":2}`, "pod")
		call("GET", "/endpoints?includeTemplate=true&includeWorkers=true", "", "[]endpoint")
		call("GET", "/endpoints/"+endpoint+"?includeTemplate=true&includeWorkers=true", "", "endpoint")
		call("GET", "/pods?includeMachine=true&includeNetworkVolume=true&includeSavingsPlans=true&includeTemplate=true", "", "[]pod")
		for _, action := range []string{"stop", "start", "restart", "reset"} {
			call("POST", "/pods/"+pod+"/"+action, "", "")
		}
		for _, what := range []string{"pods", "endpoints", "networkvolumes"} {
			call("GET", "/billing/"+what, "", "[]bill")
		}
		for _, path := range []string{"/pods/" + pod, "/pods/" + small, "/endpoints/" + endpoint, "/endpoints/" + cpu, "/templates/" + serverless, "/templates/" + template, "/networkvolumes/" + volume, "/containerregistryauth/" + registry} {
			call("DELETE", path, "", "")
		}
	}, func(d *door) { d.text = strings.Replace(d.text, "orgs:\n", "legacy: {brand: Acme}\norgs:\n", 1) })
}
