package schema_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

func TestValidateBody(t *testing.T) {
	tests := []struct {
		name, operation, body string
		want                  []string
	}{
		{"the smallest pod", "createPod", `{"name":"a","image":"i"}`, nil},
		{"a pod with everything", "createPod", `{"name":"a","image":"i","args":"x","cmd":["x"],"entrypoint":[],"cloud":"COMMUNITY",
			"gpu":{"id":"NVIDIA A40","count":2,"allowedCudaVersions":["12.8"],"minRamPerGpu":8,"minVcpuCountPerGpu":4},
			"dataCenterIds":["EU-RO-1"],"disk":20,"env":{"A":"1"},"globalNetworking":true,"ports":["22/tcp"],"registry":null,
			"mounts":{"network":[{"volumeId":"v","path":"/d"}]},"startJupyter":true,"startSsh":false}`, nil},
		{"a template stands in for the image", "createPod", `{"name":"a","templateId":"t"}`, nil},

		{"null", "createPod", `null`, []string{"$: must be an object"}},
		{"array", "createPod", `[]`, []string{"$: must be an object"}},
		{"string", "createPod", `"x"`, []string{"$: must be an object"}},
		{"empty object", "createPod", `{}`, []string{"$: missing property 'image'", "$: missing property 'name'"}},
		{"misspelt members", "createPod", `{"name":"a","image":"i","gpu":{"id":"x","cuont":1},"templateID":"t"}`, []string{
			"$: additional properties 'templateID' not allowed, did you mean 'templateId'?", "$.gpu: additional properties 'cuont' not allowed, did you mean 'count'?",
		}},
		{"unknown member", "createPod", `{"name":"a","image":"i","bogus":1}`, []string{"$: additional properties 'bogus' not allowed"}},
		{"two unknown members", "createPod", `{"name":"a","image":"i","z":1,"b":2}`, []string{
			"$: additional properties 'b' not allowed", "$: additional properties 'z' not allowed",
		}},
		{"names are case-sensitive", "createPod", `{"name":"a","image":"i","GPU":{"id":"x"},"Gpu":{"id":"x"}}`, []string{
			"$: additional properties 'GPU' not allowed, did you mean 'gpu'?", "$: additional properties 'Gpu' not allowed, did you mean 'gpu'?",
		}},
		{"one fault does not taint its siblings", "createPod", `{"name":"","image":"i","gpu":{"id":"x","count":1},"disk":20}`, []string{
			"$.name: must not be empty",
		}},
		{"a fault and an unknown member", "createPod", `{"name":"","image":"i","bogus":1}`, []string{
			"$: additional properties 'bogus' not allowed", "$.name: must not be empty",
		}},
		{"a fault inside gpu", "createPod", `{"name":"a","image":"i","gpu":{"id":"x","count":0}}`, []string{"$.gpu.count: must be at least 1"}},
		{"an unknown member inside gpu", "createPod", `{"name":"a","image":"i","gpu":{"id":"x","type":"y"}}`, []string{
			"$.gpu: additional properties 'type' not allowed",
		}},
		{"a missing member inside gpu", "createPod", `{"name":"a","image":"i","gpu":{}}`, []string{"$.gpu: missing property 'id'"}},
		{"faults in several places", "createPod", `{"image":7,"disk":0,"cloud":"PUBLIC","gpu":{"id":1,"count":"2"},"ports":"22/tcp","bogus":true}`, []string{
			"$: additional properties 'bogus' not allowed",
			"$: missing property 'name'",
			"$.cloud: must be one of 'SECURE', 'COMMUNITY'",
			"$.disk: must be at least 1",
			"$.gpu.count: must be an integer",
			"$.gpu.id: must be a string",
			"$.image: must be a string",
			"$.ports: must be an array",
		}},
		{"environment values are strings", "createPod", `{"name":"a","image":"i","env":{"A":1,"b c":null,"é":[]}}`, []string{
			"$.env.A: must be a string", "$.env['b c']: must be a string", "$.env['é']: must be a string",
		}},
		{"places with special characters", "createPod", `{"name":"a","image":"i","env":{"a/b~c%d":1,"'":2}}`, []string{
			`$.env['\'']: must be a string`, "$.env['a/b~c%d']: must be a string",
		}},
		{"elements", "createPod", `{"name":"a","image":"i","ports":["22/tcp",22,null]}`, []string{
			"$.ports[1]: must be a string", "$.ports[2]: must be a string",
		}},
		{"empty names", "createPod", `{"":1,"name":"a","env":{"":1},"ports":[{"":{}}]}`, []string{
			"$: a member's name must not be empty", "$.env: a member's name must not be empty", "$.ports[0]: a member's name must not be empty",
		}},
		{"pattern", "createPod", `{"name":"a","image":"i","gpu":{"id":"x","minCudaVersion":"12"}}`, []string{
			`$.gpu.minCudaVersion: must match the pattern ^\d+\.\d+$`,
		}},
		{"mount entries are complete", "createPod", `{"name":"a","image":"i","mounts":{"persistent":{"size":9},"network":[{}],"tape":{}}}`, []string{
			"$.mounts: additional properties 'tape' not allowed",
			"$.mounts.network[0]: missing property 'path'",
			"$.mounts.network[0]: missing property 'volumeId'",
			"$.mounts.persistent: missing property 'path'",
			"$.mounts.persistent.size: must be at least 10",
		}},
		{"too many network mounts", "createPod", `{"name":"a","image":"i","mounts":{"network":[{"volumeId":"v","path":"/a"},{"volumeId":"w","path":"/b"}]}}`, []string{
			"$.mounts.network: must have at most 1 elements",
		}},
		{"nullable", "createPod", `{"name":"a","image":"i","registry":5}`, []string{"$.registry: must be a string or null"}},
		{"not nullable", "createPod", `{"name":null,"image":"i","gpu":null,"startSsh":null}`, []string{
			"$.gpu: must be an object", "$.name: must be a string", "$.startSsh: must be true or false",
		}},

		{"integers in plain digits only", "createPod", `{"name":"a","image":"i","disk":1e1,"gpu":{"id":"x","count":1.0},"mounts":{"persistent":{"size":80e-1,"path":"/"}}}`, []string{
			"$.disk: must be an integer in plain digits",
			"$.gpu.count: must be an integer in plain digits",
			"$.mounts.persistent.size: must be an integer in plain digits",
		}},
		{"integers beyond 2^53", "createPod", `{"name":"a","image":"i","disk":9007199254740992}`, []string{
			"$.disk: must be an integer between -9007199254740991 and 9007199254740991",
		}},
		{"integers beyond uint64", "createPod", `{"name":"a","image":"i","disk":18446744073709551617}`, []string{
			"$.disk: must be an integer between -9007199254740991 and 9007199254740991",
		}},
		{"huge exponent", "createPod", `{"name":"a","image":"i","disk":1e400}`, []string{"$.disk: must be an integer in plain digits"}},
		{"fraction for an integer", "createPod", `{"name":"a","image":"i","disk":10.5}`, []string{"$.disk: must be an integer in plain digits"}},

		{"the smallest endpoint", "createEndpoint", endpoint(``), nil},
		{"fractions are numbers", "createEndpoint", endpoint(`"scaling":{"type":"QUEUE_DELAY","queueDelay":0.5}`), nil},
		{"numbers have no exponent", "createEndpoint", endpoint(`"scaling":{"type":"QUEUE_DELAY","queueDelay":5e0}`), []string{
			"$.scaling.queueDelay: must be a number with at most 6 decimals and no exponent",
		}},
		{"numbers have six decimals", "createEndpoint", endpoint(`"scaling":{"type":"QUEUE_DELAY","queueDelay":1.1234567}`), []string{
			"$.scaling.queueDelay: must be a number with at most 6 decimals and no exponent",
		}},
		{"minus zero", "createEndpoint", endpoint(`"workers":{"min":-0}`), []string{"$.workers.min: must be an integer in plain digits"}},
		{"a variant's own fault", "createEndpoint", endpoint(`"scaling":{"type":"QUEUE_DELAY","queueDelay":0.1,"requestCount":3}`), []string{
			"$.scaling: additional properties 'requestCount' not allowed", "$.scaling.queueDelay: must be at least 0.5",
		}},
		{"no variant", "createEndpoint", endpoint(`"scaling":{"queueDelay":1}`), []string{"$.scaling: missing property 'type'"}},
		{"unknown variant", "createEndpoint", endpoint(`"scaling":{"type":"CPU","queueDelay":1}`), []string{
			"$.scaling.type: must be one of 'QUEUE_DELAY', 'REQUEST_COUNT'",
		}},
		{"a variant that is no object", "createEndpoint", endpoint(`"scaling":[]`), []string{"$.scaling: must be an object"}},
		{"a variant whose tag is no string", "createEndpoint", endpoint(`"scaling":{"type":1}`), []string{
			"$.scaling.type: must be one of 'QUEUE_DELAY', 'REQUEST_COUNT'",
		}},
		{"load balancers scale by requests", "createEndpoint", endpoint(`"type":"LOAD_BALANCER","scaling":{"type":"QUEUE_DELAY","queueDelay":1}`), []string{
			"$.scaling.type: must be 'REQUEST_COUNT'",
		}},
		{"load balancer's own fault is told once", "createEndpoint", endpoint(`"type":"LOAD_BALANCER","scaling":{"type":"REQUEST_COUNT","requestCount":0}`), []string{
			"$.scaling.requestCount: must be at least 1",
		}},
		{"without a template", "createEndpoint", `{}`, []string{
			"$: missing property 'image'", "$: missing property 'name'", "$: missing property 'scaling'",
		}},
		{"a template stands in for name and type", "createEndpoint", `{"templateId":"t","scaling":{"type":"REQUEST_COUNT","requestCount":4},"gpu":{"pools":["ADA_24"]}}`, nil},
		{"the same CPU shape twice", "createEndpoint", endpoint(`"cpu":[{"id":"cpu5c","vcpuCount":4},{"id":"cpu5c","vcpuCount":4}]`), []string{
			"$.cpu: must not contain duplicate elements",
		}},
		{"memory is never sent", "createEndpoint", endpoint(`"cpu":[{"id":"cpu5c","vcpuCount":4,"memory":8}]`), []string{
			"$.cpu[0]: additional properties 'memory' not allowed",
		}},
		{"CUDA on a CPU shape", "createEndpoint", endpoint(`"cpu":[{"id":"cpu5c","vcpuCount":1,"minCudaVersion":"12.8"}]`), []string{
			"$.cpu[0]: additional properties 'minCudaVersion' not allowed", "$.cpu[0].vcpuCount: must be at least 2",
		}},
		{"no pools", "createEndpoint", endpoint(`"gpu":{"pools":[]}`), []string{"$.gpu.pools: must not be empty"}},
		{"endpoints have no mounts", "createEndpoint", endpoint(`"mounts":{},"startSsh":true`), []string{
			"$: additional properties 'mounts' not allowed", "$: additional properties 'startSsh' not allowed",
		}},

		{"an empty change of a pod", "updatePod", `{}`, nil},
		{"hardware cannot be changed", "updatePod", `{"gpu":{"id":"x"},"cloud":"SECURE"}`, []string{
			"$: additional properties 'cloud' not allowed", "$: additional properties 'gpu' not allowed",
		}},
		{"excluded types need pools", "updateEndpoint", `{"gpu":{"excludedTypes":["x"]}}`, []string{
			"$.gpu: missing property 'pools', which 'excludedTypes' requires",
		}},
		{"an empty version lifts the constraint", "updateEndpoint", `{"gpu":{"minCudaVersion":""}}`, nil},
		{"type is fixed", "updateEndpoint", `{"type":"QUEUE"}`, []string{"$: additional properties 'type' not allowed"}},
		{"action", "podAction", `{"action":"stop"}`, nil},
		{"unknown action", "podAction", `{"action":"reset"}`, []string{"$.action: must be one of 'start', 'stop', 'restart', 'terminate'"}},
		{"empty action", "podAction", `{}`, []string{"$: missing property 'action'"}},
		{"an empty change of a cluster", "updateCluster", `{}`, []string{"$: must not be empty"}},
		{"clusters have no registry", "createCluster", `{"name":"c","type":"RAY","compute":{"gpuTypeId":"x","gpuCountPerPod":8,"podCount":251},"registry":"r"}`, []string{
			"$: additional properties 'registry' not allowed", "$.compute.podCount: must be at most 250",
		}},
		{"templates have host storage only", "createTemplate", `{"name":"t","image":"i","mounts":{"network":[]}}`, []string{
			"$.mounts: additional properties 'network' not allowed",
		}},
		{"volume size", "createNetworkVolume", `{"name":"v","dataCenter":"EU-RO-1","size":5000}`, []string{"$.size: must be at most 4096"}},
		{"keys", "updateSshKeys", `{"keys":["ssh-ed25519 AAAA me@home","-----BEGIN","ssh-rsa AAAA\nssh-rsa BBBB"]}`, []string{
			`$.keys[1]: must match the pattern ^(ssh|ecdsa|sk)-[^\s]+ [^\s]+([ \t][^\n\r]*)?$`,
			`$.keys[2]: must match the pattern ^(ssh|ecdsa|sk)-[^\s]+ [^\s]+([ \t][^\n\r]*)?$`,
		}},
		{"registry", "createRegistry", `{"name":"r","username":"","password":""}`, []string{
			"$.password: must not be empty", "$.username: must not be empty",
		}},
		{"secret", "createSecret", `{"name":"hf/token-1.x_","value":"v"}`, nil},
		{"a secret's name and value", "createSecret", `{"name":"1","value":"","createdAt":"x"}`, []string{
			"$: additional properties 'createdAt' not allowed", `$.name: must match the pattern ^[a-zA-Z_][a-zA-Z0-9_.\-/]*$`, "$.value: must not be empty",
		}},
		{"a long name", "createSecret", `{"name":"` + strings.Repeat("n", 192) + `","value":"v"}`, []string{"$.name: must have at most 191 characters"}},
		{"a name with a line break", "createSecret", `{"name":"n\n","value":"v"}`, []string{`$.name: must match the pattern ^[a-zA-Z_][a-zA-Z0-9_.\-/]*$`}},
		{"an empty change of a secret", "updateSecret", `{}`, []string{"$: must not be empty"}},
		{"a secret's name stays", "updateSecret", `{"name":"n","value":"v"}`, []string{"$: additional properties 'name' not allowed"}},
		{"a long registry", "createRegistry", `{"name":"` + strings.Repeat("n", 192) + `","username":"` + strings.Repeat("é", 192) + `","password":"` + strings.Repeat("p", 16385) + `"}`, []string{
			"$.name: must have at most 191 characters", "$.password: must have at most 16384 characters", "$.username: must have at most 191 characters",
		}},
		{"the longest registry", "createRegistry", `{"name":"` + strings.Repeat("é", 191) + `","username":"u","password":"` + strings.Repeat("p", 16384) + `"}`, nil},
		{"delegation", "createDelegation", `{"resource":"arn:aws:ecr:eu-west-1:1:repository/x","name":null}`, nil},
		{"no body wanted", "getPod", `{}`, []string{"$: operation does not accept a body"}},
		{"no body wanted for an action without one", "deletePod", `{"action":"start"}`, []string{"$: operation does not accept a body"}},
	}
	api := load(t)
	for _, tt := range tests {
		t.Run(tt.operation+"/"+tt.name, func(t *testing.T) {
			got := lines(api.Operation(tt.operation).ValidateBody(parse(t, tt.body)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// endpoint returns a valid create request with some members replaced or added.
func endpoint(members string) string {
	defaults := []string{
		`"name":"e"`, `"image":"i"`, `"type":"QUEUE"`, `"scaling":{"type":"REQUEST_COUNT","requestCount":4}`,
	}
	all := []string{}
	for _, d := range defaults {
		name, _, _ := strings.Cut(d, ":")
		if !strings.HasPrefix(members, name) && !strings.Contains(members, ","+name+":") {
			all = append(all, d)
		}
	}
	if members != "" {
		all = append(all, members)
	}
	return "{" + strings.Join(all, ",") + "}"
}

func TestViolationFields(t *testing.T) {
	got := operation(t, "createPod").ValidateBody(parse(t, `{"name":"a","image":"i","env":{"a/b~c":1},"gpu":{"id":"x","count":0},"ports":[1]}`))
	want := []schema.Violation{
		{Pointer: "/env/a~1b~0c", Location: "$.env['a/b~c']", Keyword: "type", Message: "must be a string", Status: http.StatusUnprocessableEntity},
		{Pointer: "/gpu/count", Location: "$.gpu.count", Keyword: "minimum", Message: "must be at least 1", Status: http.StatusUnprocessableEntity},
		{Pointer: "/ports/0", Location: "$.ports[0]", Keyword: "type", Message: "must be a string", Status: http.StatusUnprocessableEntity},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
