package v1

import (
	"context"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/test/translate/storetest"
	"github.com/tollgate-dev/tollgate/translate"
)

// echo is a platform that makes exactly the pod it is asked for and tells it
// again.
type echo struct{ pod map[string]any }

func (e *echo) Call(_ context.Context, r *translate.Request) (*translate.Response, error) {
	switch r.Operation {
	case "createPod":
		e.pod = map[string]any{"mounts": map[string]any{}, "env": map[string]any{}}
		maps.Copy(e.pod, copied(r.Body).(map[string]any))
		e.pod["id"], e.pod["status"], e.pod["locked"] = "p1", "RUNNING", false
		return &translate.Response{Status: 201, Body: copied(e.pod)}, nil
	case "updatePod":
		maps.Copy(e.pod, copied(r.Body).(map[string]any))
		return &translate.Response{Status: 200, Body: copied(e.pod)}, nil
	case "getPod":
		return &translate.Response{Status: 200, Body: copied(e.pod)}, nil
	case "getNetworkVolume":
		return &translate.Response{Status: 200, Body: map[string]any{"id": r.Params["id"], "dataCenter": "EU-RO-1"}}, nil
	case "listGpuTypes":
		return &translate.Response{Status: 200, Body: fixture("gpus")}, nil
	}
	return &translate.Response{Status: 404}, nil
}

// kept are the fields declarative clients compare after a create.
var kept = []string{
	"name", "imageName", "ports", "env", "dockerEntrypoint", "dockerStartCmd", "containerDiskInGb", "volumeMountPath",
	"containerRegistryAuthId", "gpuCount", "locked", "networkVolumeId",
}

// TestPodsReadBackAsTheyWereMade: v1 to v2 to v1 keeps what clients compare, in
// the answer to the create and in every read after it.
func TestPodsReadBackAsTheyWereMade(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		api, err := New(DefaultConfig(), translate.Deps{Store: storetest.NewMemoryStore((&clock{t: dayZero}).now)})
		if err != nil {
			rt.Fatal(err)
		}
		body := drawBody(rt, podCreateForm)
		maps.Copy(body, map[string]any{"imageName": "img:1", "gpuTypeIds": []any{"NVIDIA L4"}, "computeType": "GPU"})
		for _, name := range []string{"templateId", "interruptible", "dockerArgs", "countryCodes", "dataCenterIds", "allowedCudaVersions", "minCudaVersion"} {
			delete(body, name)
		}
		platform := &echo{}
		in := &translate.Incoming{Body: copied(body), HasBody: true, Account: "acme", Params: map[string]string{"podId": "p1"}}
		made := api.Serve(t.Context(), "createPod", in, platform)
		if made.Status != 201 {
			rt.Fatalf("create: %d %s\nfrom %s", made.Status, made.Body, indent(body))
		}
		read := api.Serve(t.Context(), "getPod", in, platform)
		want := expected(rt, body)
		for name, out := range map[string]*translate.Outgoing{"create": made, "read": read} {
			have := map[string]any{}
			for member := range want {
				have[member] = translate.At(mustJSON(string(out.Body)), member)
			}
			if diff := cmp.Diff(copied(want), copied(have)); diff != "" {
				rt.Errorf("%s (-sent +read):\n%s", name, diff)
			}
		}
	})
}

// expected returns the values that a v1 client expects to read back.
func expected(t *rapid.T, body map[string]any) map[string]any {
	want := map[string]any{}
	for _, name := range kept {
		value := body[name]
		if value == nil || value == "" {
			continue
		}
		switch name {
		case "containerDiskInGb":
			if translate.Whole(value) == 0 {
				continue
			}
		case "volumeMountPath":
			if n := body["volumeInGb"]; n != nil && translate.Whole(n) == 0 && body["networkVolumeId"] != "v1" {
				continue // without a volume there is no path
			}
		case "env":
			env, err := translate.Env(value)
			if err != nil {
				t.Fatal(err)
			}
			value = translate.EnvObject(env)
		case "ports":
			list, err := translate.Ports(value)
			if err != nil {
				t.Fatal(err)
			}
			value = translate.List(list)
		}
		want[name] = value
	}
	return want
}
