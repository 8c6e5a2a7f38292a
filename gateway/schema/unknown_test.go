package schema_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

func TestForeign(t *testing.T) {
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	op := api.Operation("createPod")
	for name, want := range map[string]bool{
		"priority": true, "annotations": true, "maxRuntime": true, "idle_shutdown": true, "a": true,
		"gpu": false, "GPU": false, "gpus": false, "g-p_u": false, "gpu2": false, "gpuCount": false, "GPUCOUNT": false, "gpu_topology": false,
		"extraEnv": false, "workers": false, "password": false, "minRamPerGpu": false, "allowedCUDAVersions": false,
		"": false, "1a": false, "a b": false, "a.b": false, "a/b": false, "prior\u0131ty": false,
	} {
		if got := op.IsUnknownMember(name); got != want {
			t.Errorf("Foreign(%q) = %t, want %t", name, got, want)
		}
	}
	if api.Operation("deletePod").IsUnknownMember("priority") {
		t.Error("deletePod has a foreign member although it has no body")
	}
}
