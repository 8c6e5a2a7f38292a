package schema_test

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzBody sends every body to every operation: nothing panics, refusals have a place and
// a message, and a body that passes still passes with its defaults.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		pod(``), endpoint(``), gpuEndpoint(`"workers":{"min":1}`), `{"action":"stop"}`, `{"keys":["ssh-rsa AAAA"]}`, `null`, `[]`,
		`{"name":"c","type":"RAY","compute":{"gpuTypeId":"x","gpuCountPerPod":8,"podCount":2}}`, `{"name":"v","dataCenter":"d","size":10}`,
		`{"gpu":{"excludedTypes":["x"],"minCudaVersion":""},"scaling":{"type":"QUEUE_DELAY","queueDelay":0.5}}`,
		pod(`"args":"{\"cmd\":[\"a\"]}","cmd":["a"],"ports":["22/tcp"],"mounts":{"network":[{"volumeId":"v","path":"/"}]}`),
	} {
		f.Add([]byte(seed))
	}
	ops := load(f).Operations()
	f.Fuzz(func(t *testing.T, data []byte) {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var doc any
		if len(data) > 4096 || d.Decode(&doc) != nil {
			return
		}
		for _, op := range ops {
			vs := op.ValidateBody(doc)
			for _, v := range append(vs, op.CheckRules(doc)...) {
				if v.Location == "" || v.Message == "" || v.Keyword == "" || v.Keyword == "internal" || v.Keyword == "schema" || v.Status/100 != 4 {
					t.Fatalf("%s: %s: bad violation %+v", op.ID, data, v)
				}
			}
			if len(vs) > 0 {
				continue
			}
			if again := op.ValidateBody(op.FillDefaults(doc)); len(again) > 0 {
				t.Fatalf("%s: %s is valid, and with its defaults it is not: %v", op.ID, data, again)
			}
		}
	})
}
