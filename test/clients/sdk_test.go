package clients

import "testing"

// sdks are the oldest version whose package has the pod calls, some from between,
// and the newest.
var sdks = []string{"0.10.0", "1.2.6", "1.6.2", "1.7.13", "1.12.0"}

// The calls of the Python SDK for pods, templates, endpoints and registries.
func TestPythonSDK(t *testing.T) {
	t.Parallel()
	for _, version := range sdks {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			python := installed(t, "runpod-"+version+"/bin/python")
			drive[report](t, newStack(t, standing()), python, "sdk.py").check(t, "sdk-"+version+".json")
		})
	}
}
