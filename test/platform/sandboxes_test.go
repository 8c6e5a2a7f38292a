package platform

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const sandboxesPath = "/v2/sandboxes"

func TestSandboxLife(t *testing.T) {
	r := newRig(t, Options{Strict: true})
	made := r.want(201, "POST", sandboxesPath, `{"imageName":"alpine:3","labels":{"a":"1"}}`)
	id, at := made.text("id"), "2026-06-01T12:00:00Z"
	want := map[string]any{
		"id": id, "name": "sandbox-" + id, "state": "CREATING", "templateId": nil, "imageName": "alpine:3", "cpuFlavorId": "cpu3c",
		"idleTimeoutSeconds": 600.0, "maxLifetimeSeconds": 3600.0, "lastActivityAt": at, "idleExpiresAt": "2026-06-01T12:10:00Z",
		"expiresAt": "2026-06-01T13:00:00Z", "createdAt": at, "updatedAt": at, "labels": map[string]any{"a": "1"},
		"terminationReason": nil, "terminatedAt": nil,
	}
	if diff := cmp.Diff(want, made.body); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	r.Clock().Advance(2 * time.Second)
	got := r.want(200, "GET", sandboxesPath+"/"+id, "")
	want["state"], want["updatedAt"] = "RUNNING", "2026-06-01T12:00:02Z"
	want["compute"] = map[string]any{"vcpuCount": 2.0, "memoryInGb": 4.0, "containerDiskInGb": 10.0, "costPerHr": 0.026}
	if diff := cmp.Diff(want, got.body); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	r.want(409, "POST", sandboxesPath+"/"+id+"/exec", `{"command":["echo","a"]}`)
	r.Clock().Advance(2 * time.Second)
	ran := r.want(200, "POST", sandboxesPath+"/"+id+"/exec", `{"command":["echo","$HOME","b"]}`)
	if ran.text("output") != "$HOME b\n" || ran.at("error") != nil {
		t.Errorf("exec: got %s", ran.raw)
	}
	r.want(204, "DELETE", sandboxesPath+"/"+id, "")
	r.want(204, "DELETE", sandboxesPath+"/"+id, "")
}
