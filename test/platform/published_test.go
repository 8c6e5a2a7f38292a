package platform

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPublishedFaults(t *testing.T) {
	const scaling = `,"scaling":{"type":"QUEUE_DELAY","queueDelay":4}`
	for _, tt := range []struct {
		operation, body string
		want            []string
	}{
		{"createPod", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":1,"minRamPerGpu":8},"cmd":["a"],"entrypoint":[]}`, nil},
		{"createPod", `{"name":"a","image":"i","bogus":1}`, []string{"$.bogus: not allowed"}},
		{"createTemplate", `{"name":"a","image":"i","cmd":[]}`, nil},
		{"createTemplate", `{"name":"a","image":"i","args":"{\"cmd\":[\"a\"]}"}`, nil},
		{"createEndpoint", `{"templateId":"t","gpu":{"pools":["ADA_24"]}` + scaling + `}`, nil},
		{"createEndpoint", `{"templateId":"t","gpu":{"pools":["ADA_24"]},"entrypoint":[]` + scaling + `}`, nil},
		{"createEndpoint", `{"templateId":"t"}`, []string{"$: missing properties: 'scaling'"}},
		{"updateEndpoint", `{"cmd":["a"]}`, nil},
		{"createCluster", `{"name":"c","type":"TRAINING","compute":{"gpuTypeId":"x","gpuCountPerPod":1,"podCount":2},"cmd":["a"],"registry":"r"}`, []string{"$.registry: not allowed"}},
		{"createCluster", `{"name":"c","type":"TRAINING","compute":{"gpuTypeId":"x","gpuCountPerPod":1,"podCount":2},"cmd":["a"],"templateId":"t"}`, nil},
		{"createSecret", `{"name":"a","value":"v","description":""}`, nil},
		{"createSecret", `{"name":"a b","value":"v"}`, []string{"$.name: does not match pattern '^[a-zA-Z_][a-zA-Z0-9_.\\\\-/]*$'"}},
		{"updateSecret", `{}`, []string{"$: minimum 1 properties allowed, but found 0 properties"}},
		{"createSandbox", `{"bogus":1}`, nil}, // no machine-readable description has sandboxes
		{"listPods", `{}`, nil},
	} {
		if diff := cmp.Diff(tt.want, PublishedFaults(tt.operation, []byte(tt.body))); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.operation, tt.body, diff)
		}
	}
}
