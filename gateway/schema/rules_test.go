package schema_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

// pod returns a valid create request for a GPU pod with members added.
func pod(members string) string {
	base := []string{`"name":"a"`, `"image":"i"`}
	if !strings.Contains(members, `"gpu":`) && !strings.Contains(members, `"cpu":`) {
		base = append(base, `"gpu":{"id":"NVIDIA A40"}`)
	}
	if members != "" {
		base = append(base, members)
	}
	return "{" + strings.Join(base, ",") + "}"
}

func gpuEndpoint(members string) string {
	if !strings.Contains(members, `"gpu":`) && !strings.Contains(members, `"cpu":`) {
		members = strings.TrimPrefix(members+`,"gpu":{"pools":["ADA_24"]}`, ",")
	}
	return endpoint(members)
}

func TestCheckRules(t *testing.T) {
	tests := []struct {
		name, operation, body string
		want                  []string
	}{
		{"GPU pod", "createPod", pod(``), nil},
		{"CPU pod", "createPod", pod(`"cpu":{"id":"cpu5c","vcpuCount":4}`), nil},
		{"neither", "createPod", `{"name":"a","image":"i"}`, []string{"$: must have exactly one of 'gpu' and 'cpu'"}},
		{"neither beside a template", "createPod", `{"name":"a","templateId":"t"}`, []string{"$: must have exactly one of 'gpu' and 'cpu'"}},
		{"both", "createPod", pod(`"gpu":{"id":"x"},"cpu":{"id":"y","vcpuCount":2}`), []string{"$: must have exactly one of 'gpu' and 'cpu'"}},
		{"three virtual CPUs", "createPod", pod(`"cpu":{"id":"cpu5c","vcpuCount":3}`), []string{"$.cpu.vcpuCount: must be a power of two"}},
		{"6 virtual CPUs in the second shape", "createEndpoint", gpuEndpoint(`"cpu":[{"id":"a","vcpuCount":2},{"id":"a","vcpuCount":6}]`), []string{
			"$.cpu[1].vcpuCount: must be a power of two",
		}},
		{"a flavor with its size", "createPod", pod(`"cpu":{"id":"cpu5c-4-8","vcpuCount":4}`), nil},
		{"a flavor with a larger size", "createPod", pod(`"cpu":{"id":"cpu5c-32-64","vcpuCount":2}`), []string{
			"$.cpu.id: must have the same size as 'vcpuCount', which is 2",
		}},
		{"a flavor with a smaller size", "createPod", pod(`"cpu":{"id":"cpu5c-2-4","vcpuCount":8}`), []string{
			"$.cpu.id: must have the same size as 'vcpuCount', which is 8",
		}},
		{"a flavor with a size beyond numbers", "createPod", pod(`"cpu":{"id":"cpu5c-18446744073709551618-4","vcpuCount":2}`), []string{
			"$.cpu.id: must have the same size as 'vcpuCount', which is 2",
		}},
		{"a flavor with half a size", "createPod", pod(`"cpu":{"id":"cpu5c-32","vcpuCount":2}`), []string{
			"$.cpu.id: must be a flavor, or a flavor with its size, <flavor>-<vCPUs>-<GB>",
		}},
		{"a flavor with more than a size", "createPod", pod(`"cpu":{"id":"cpu5c-32-64-128","vcpuCount":2}`), []string{
			"$.cpu.id: must be a flavor, or a flavor with its size, <flavor>-<vCPUs>-<GB>",
		}},
		{"a flavor with another size in an endpoint", "createEndpoint", gpuEndpoint(`"cpu":[{"id":"cpu5c-2-4","vcpuCount":2},{"id":"cpu5c-32-64","vcpuCount":2}]`), []string{
			"$.cpu[1].id: must have the same size as 'vcpuCount', which is 2",
		}},
		{"a flavor with another size in a change", "updateEndpoint", `{"cpu":[{"id":"cpu5c-32-64","vcpuCount":2}]}`, []string{
			"$.cpu[0].id: must have the same size as 'vcpuCount', which is 2",
		}},
		{"both CUDA constraints", "createPod", pod(`"gpu":{"id":"x","allowedCudaVersions":["12.8"],"minCudaVersion":"12.0"}`), []string{
			"$.gpu: must not have both 'allowedCudaVersions' and 'minCudaVersion'",
		}},
		{"an empty list beside a lowest version", "createPod", pod(`"gpu":{"id":"x","allowedCudaVersions":[],"minCudaVersion":"12.0"}`), nil},
		{"a list beside an empty version", "updateEndpoint", `{"gpu":{"allowedCudaVersions":["12.8"],"minCudaVersion":""}}`, nil},
		{"both mounts", "createPod", pod(`"mounts":{"persistent":{"size":10,"path":"/a"},"network":[{"volumeId":"v","path":"/b"}]}`), []string{
			"$.mounts: must use one kind of mount, 'persistent' or 'network'",
		}},
		{"no network mount beside a persistent one", "createPod", pod(`"mounts":{"persistent":{"size":10,"path":"/a"},"network":[]}`), nil},
		{"both mounts on a cluster", "createCluster", `{"name":"c","type":"RAY","compute":{"gpuTypeId":"x","gpuCountPerPod":8,"podCount":2},
			"mounts":{"persistent":{"size":10,"path":"/a"},"network":[{"volumeId":"v","path":"/b"}]}}`, []string{
			"$.mounts: must use one kind of mount, 'persistent' or 'network'",
		}},
		{"taking a mount away", "updatePod", `{"mounts":{"network":[]}}`, []string{"$.mounts.network: must not be empty because a mount cannot be removed"}},
		{"empty mounts change nothing", "updatePod", `{"mounts":{}}`, nil},
		{"host storage on a CPU pod", "createPod", pod(`"cpu":{"id":"c","vcpuCount":2},"mounts":{"persistent":{"size":10,"path":"/a"}}`), []string{
			"$.mounts.persistent: is not available for CPU pods",
		}},
		{"a network volume on a CPU pod", "createPod", pod(`"cpu":{"id":"c","vcpuCount":2},"mounts":{"network":[{"volumeId":"v","path":"/b"}]}`), nil},
		{"private network on a CPU pod", "createPod", pod(`"cpu":{"id":"c","vcpuCount":2},"globalNetworking":true`), []string{
			"$.globalNetworking: is not available for CPU pods",
		}},
		{"private network switched off on a CPU pod", "createPod", pod(`"cpu":{"id":"c","vcpuCount":2},"globalNetworking":false`), nil},

		{"ports", "createPod", pod(`"ports":["1/tcp","65535/http","22/tcp","22/http","70001/tcp"]`), nil},
		{"no ports", "updatePod", `{"ports":[]}`, nil},
		{"bad ports", "createPod", pod(`"ports":["22","22/","/tcp","22/udp","0/tcp","022/tcp","-1/tcp","22/TCP","1-9/tcp","22/tcp ","100000/tcp","99999999999999999999/tcp"]`), []string{
			"$.ports[0]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
			"$.ports[1]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
			"$.ports[2]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
			"$.ports[3]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
			"$.ports[4]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
			"$.ports[5]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
			"$.ports[6]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
			"$.ports[7]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
			"$.ports[8]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
			"$.ports[9]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
			"$.ports[10]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
			"$.ports[11]: must be a port and a protocol, '<number>/http' or '<number>/tcp'",
		}},
		{"ports out of range", "createPod", pod(`"ports":["65536/tcp","70001/http"]`), []string{
			"$.ports[0]: must have a port of at most 65535",
			"$.ports[1]: must use tcp to request equal ports inside and outside",
		}},
		{"a port twice", "createTemplate", `{"name":"t","image":"i","ports":["80/http","80/http"]}`, nil},
		{"environment names", "createPod", pod(`"env":{"":"1","A=B":"2","C":"=3"}`), []string{
			"$.env['']: the name of an environment variable must not be empty or contain '='",
			"$.env['A=B']: the name of an environment variable must not be empty or contain '='",
		}},
		{"identifiers", "createPod", pod(`"gpu":{"id":"NVIDIA A40\nNVIDIA H200"},"dataCenterIds":["EU-RO-1",""],"mounts":{"network":[{"volumeId":"","path":"/"}]}`), []string{
			"$.dataCenterIds[1]: must not be empty or contain control characters",
			"$.gpu.id: must not be empty or contain control characters",
			"$.mounts.network[0].volumeId: must not be empty or contain control characters",
		}},
		{"an empty template in a change", "updatePod", `{"templateId":""}`, []string{"$.templateId: must not be empty or contain control characters"}},
		{"an empty template of an endpoint", "updateEndpoint", `{"templateId":""}`, []string{"$.templateId: must not be empty or contain control characters"}},

		{"a million GPUs", "createPod", pod(`"gpu":{"id":"x","count":1000000}`), []string{"$.gpu.count: must be at most 1024"}},
		{"1024 GPUs", "createPod", pod(`"gpu":{"id":"x","count":1024}`), nil},
		{"pod bounds", "createPod", pod(`"disk":9999999,"gpu":{"id":"x","minRamPerGpu":65537,"minVcpuCountPerGpu":1025},"mounts":{"persistent":{"size":65537,"path":"/"}}`), []string{
			"$.disk: must be at most 65536",
			"$.gpu.minRamPerGpu: must be at most 65536",
			"$.gpu.minVcpuCountPerGpu: must be at most 1024",
			"$.mounts.persistent.size: must be at most 65536",
		}},
		{"cluster bounds", "createCluster", `{"name":"c","type":"RAY","compute":{"gpuTypeId":"x","gpuCountPerPod":1025,"podCount":2}}`, []string{
			"$.compute.gpuCountPerPod: must be at most 1024",
		}},
		{"endpoint bounds", "createEndpoint", gpuEndpoint(`"timeout":604800001,"workers":{"min":1001,"max":1001},"scaling":{"type":"REQUEST_COUNT","requestCount":100001}`), []string{
			"$.scaling.requestCount: must be at most 100000",
			"$.timeout: must be at most 604800000",
			"$.workers.max: must be at most 1000",
			"$.workers.min: must be at most 1000",
		}},
		{"endpoint CPU and delay bounds", "updateEndpoint", `{"cpu":[{"id":"x","vcpuCount":2048}],"scaling":{"type":"QUEUE_DELAY","queueDelay":86400.5},"timeout":-1}`, []string{
			"$.cpu[0].vcpuCount: must be at most 1024",
			"$.scaling.queueDelay: must be at most 86400",
			"$.timeout: must not be negative",
		}},

		{"neither on an endpoint", "createEndpoint", endpoint(``), []string{"$: must have exactly one of 'gpu' and 'cpu'"}},
		{"neither in a change", "updateEndpoint", `{"name":"n"}`, nil},
		{"both in a change", "updateEndpoint", `{"gpu":{"pools":["a"]},"cpu":[{"id":"x","vcpuCount":2}]}`, []string{"$: must not have both 'gpu' and 'cpu'"}},
		{"worker range", "createEndpoint", gpuEndpoint(`"workers":{"min":50,"max":3}`), []string{"$.workers.min: must be at most 'max', which is 3"}},
		{"worker range with the default", "createEndpoint", gpuEndpoint(`"workers":{"min":4}`), []string{"$.workers.min: must be at most 'max', which is 3"}},
		{"no workers at all", "createEndpoint", gpuEndpoint(`"workers":{"max":0}`), nil},
		{"worker range in a change", "updateEndpoint", `{"workers":{"min":5,"max":4}}`, []string{"$.workers.min: must be at most 'max', which is 4"}},
		{"half a worker range in a change", "updateEndpoint", `{"workers":{"min":5}}`, nil},
		{"idle timeout without meaning", "createEndpoint", gpuEndpoint(`"workers":{"idleTimeout":5}`), []string{
			"$.workers.idleTimeout: cannot be set for a QUEUE endpoint that scales by REQUEST_COUNT",
		}},
		{"idle timeout with delay", "createEndpoint", gpuEndpoint(`"workers":{"idleTimeout":5},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}`), nil},
		{"idle timeout of a load balancer", "createEndpoint", gpuEndpoint(`"type":"LOAD_BALANCER","workers":{"idleTimeout":5}`), nil},
		{"excluded twice", "createEndpoint", gpuEndpoint(`"gpu":{"pools":["a"],"excludedTypes":["NVIDIA L4"," NVIDIA L4"]}`), []string{
			"$.gpu.excludedTypes[1]: is a duplicate",
		}},
		{"a description of as many bytes as may be", "createSecret", `{"name":"a","value":"v","description":"` + strings.Repeat("é", 32767) + `x"}`, nil},
		{"a description of more bytes", "updateSecret", `{"description":"` + strings.Repeat("é", 32768) + `"}`, []string{
			"$.description: must have at most 65535 bytes in UTF-8",
		}},
		{"a value of more bytes", "createSecret", `{"name":"a","value":"` + strings.Repeat("é", 1<<23) + `"}`, []string{
			"$.value: must have at most 16777215 bytes in UTF-8",
		}},
		{"the same key twice", "updateSshKeys", `{"keys":["ssh-ed25519 AAAA a","ssh-rsa AAAA","ssh-ed25519 AAAA b"]}`, []string{
			"$.keys[2]: is a duplicate key",
		}},
		{"data center of a volume", "createNetworkVolume", `{"name":"v","dataCenter":"EU\u0007","size":10}`, []string{
			"$.dataCenter: must not be empty or contain control characters",
		}},
	}
	api := load(t)
	for _, tt := range tests {
		t.Run(tt.operation+"/"+tt.name, func(t *testing.T) {
			op, body := api.Operation(tt.operation), parse(t, tt.body)
			if vs := op.ValidateBody(body); len(vs) > 0 {
				t.Fatalf("the schema refuses the body already: %v", vs)
			}
			got := op.CheckRules(body)
			if diff := cmp.Diff(tt.want, lines(got)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			for _, v := range got {
				want := http.StatusBadRequest
				if v.Pointer == "/templateId" { // as for creates, by their schema
					want = http.StatusUnprocessableEntity
				}
				if v.Status != want {
					t.Errorf("%v has status %d, want %d", v, v.Status, want)
				}
			}
		})
	}
}

// Rules run after the schema, but a body that the schema refused must not bring
// them down.
func TestCheckRulesOnForeignShapes(t *testing.T) {
	shapes := []string{`null`, `[]`, `"x"`, `1`, `{}`}
	members := []string{"gpu", "cpu", "mounts", "env", "ports", "args", "cmd", "entrypoint", "workers", "scaling", "timeout", "keys", "dataCenterIds", "compute", "templateId"}
	values := []string{`null`, `true`, `1`, `-1.5e3`, `"x"`, `[]`, `[null,1,"x",{},[]]`, `{}`, `{"network":[1],"persistent":null,"id":1,"count":"x","vcpuCount":{},"min":[],"max":"x"}`}
	for _, m := range members {
		for _, v := range values {
			shapes = append(shapes, `{"`+m+`":`+v+`,"cmd":1}`)
		}
	}
	for _, op := range load(t).Operations() {
		for _, s := range shapes {
			op.CheckRules(parse(t, s))
			op.FillDefaults(parse(t, s))
		}
	}
}

// TestCanonicalBody: a size in the name of a flavor goes, and the given body stays as it
// was.
func TestCanonicalBody(t *testing.T) {
	for _, tc := range []struct{ body, want string }{
		{`{"cpu":{"id":"cpu5c-4-8","vcpuCount":4},"name":"a"}`, `{"cpu":{"id":"cpu5c","vcpuCount":4},"name":"a"}`},
		{
			`{"cpu":[{"id":"cpu5c","vcpuCount":2},{"id":"cpu3g-8-32","vcpuCount":8}]}`,
			`{"cpu":[{"id":"cpu5c","vcpuCount":2},{"id":"cpu3g","vcpuCount":8}]}`,
		},
		{`{"cpu":{"id":"cpu5c","vcpuCount":4}}`, `{"cpu":{"id":"cpu5c","vcpuCount":4}}`},
		{`{"gpu":{"id":"cpu5c-4-8"}}`, `{"gpu":{"id":"cpu5c-4-8"}}`},
		{`{"cpu":[1,{"id":2}]}`, `{"cpu":[1,{"id":2}]}`},
		{`[]`, `[]`},
	} {
		given := parse(t, tc.body)
		if diff := cmp.Diff(parse(t, tc.want), schema.CanonicalBody(given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.body, diff)
		}
		if diff := cmp.Diff(parse(t, tc.body), given); diff != "" {
			t.Errorf("%s was changed (-want +got):\n%s", tc.body, diff)
		}
	}
}
