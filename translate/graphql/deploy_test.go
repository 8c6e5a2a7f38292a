package graphql_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql"
)

const noInstances = "There are no longer any instances available with the requested specifications. Please refresh and try again."

const deployed = `mutation($input: PodFindAndDeployOnDemandInput) { podFindAndDeployOnDemand(input: $input) { id desiredStatus machine { podHostId } runtime { uptimeInSeconds } } }`

// clouds tells the clouds of the create calls, in order.
func clouds(v2 *script) []string {
	var out []string
	for _, r := range v2.calls {
		if r.Operation == "createPod" {
			out = append(out, translate.Text(r.Body, "gpu", "id")+" "+translate.Text(r.Body, "cloud"))
		}
	}
	return out
}

func TestDeployCandidates(t *testing.T) {
	const lack = `{"status":400,"title":"Bad Request","detail":"There are no instances currently available"}`
	const input = `"gpuTypeId":"NVIDIA GeForce RTX 4090","imageName":"org/pytorch:2.1","name":"train"`
	tests := []struct {
		name, v2, input string
		want            []string // create calls
		message, code   string   // of the error, "" for success
		status          int
	}{
		{
			name:  "ALL falls back to the other cloud",
			v2:    "listGpuTypes 200 @gpus\ncreatePod 400 " + lack + "\ncreatePod 201 @created",
			input: input + `,"cloudType":"ALL"`,
			want:  []string{"NVIDIA GeForce RTX 4090 COMMUNITY", "NVIDIA GeForce RTX 4090 SECURE"},
		},
		{
			name:  "no cloud means ALL",
			v2:    "listGpuTypes 200 @gpus\ncreatePod 201 @created",
			input: input,
			want:  []string{"NVIDIA GeForce RTX 4090 COMMUNITY"},
		},
		{
			name:  "SECURE stays secure",
			v2:    "listGpuTypes 200 @gpus\ncreatePod 400 " + lack,
			input: input + `,"cloudType":"SECURE"`,
			want:  []string{"NVIDIA GeForce RTX 4090 SECURE"}, message: noInstances, code: "NO_CAPACITY",
		},
		{
			name:  "a data center means SECURE",
			v2:    "listGpuTypes 200 @gpus\ncreatePod 400 " + lack,
			input: input + `,"cloudType":"ALL","dataCenterId":"EU-RO-1"`,
			want:  []string{"NVIDIA GeForce RTX 4090 SECURE"}, message: noInstances, code: "NO_CAPACITY",
		},
		{
			name:  "a type only one cloud carries",
			v2:    "listGpuTypes 200 @gpus\ncreatePod 400 " + lack,
			input: `"gpuTypeId":"NVIDIA L4","imageName":"i"`,
			want:  []string{"NVIDIA L4 SECURE"}, message: noInstances, code: "NO_CAPACITY",
		},
		{
			name:  "several types in the given order",
			v2:    "listGpuTypes 200 @gpus\ncreatePod 400 " + lack + "\ncreatePod 400 " + lack + "\ncreatePod 201 @created",
			input: `"gpuTypeId":"NVIDIA L4","gpuTypeIdList":["NVIDIA GeForce RTX 4090","NVIDIA L4"],"imageName":"i"`,
			want:  []string{"NVIDIA L4 SECURE", "NVIDIA GeForce RTX 4090 COMMUNITY", "NVIDIA GeForce RTX 4090 SECURE"},
		},
		{
			name:  "402 stops",
			v2:    "listGpuTypes 200 @gpus\ncreatePod 402 {}",
			input: input,
			want:  []string{"NVIDIA GeForce RTX 4090 COMMUNITY"}, code: "INSUFFICIENT_FUNDS",
			message: "Your account balance is too low to rent a pod. Please add funds to your account.",
		},
		{
			name:  "403 tries the next, a policy may allow it",
			v2:    "listGpuTypes 200 @gpus\ncreatePod 403 {\"detail\":\"too dear\"}\ncreatePod 201 @created",
			input: input,
			want:  []string{"NVIDIA GeForce RTX 4090 COMMUNITY", "NVIDIA GeForce RTX 4090 SECURE"},
		},
		{
			name:  "403 everywhere",
			v2:    `listGpuTypes 200 @gpus` + "\n" + `createPod 403 {"title":"Forbidden","detail":"GPU is not allowed","decision":"d-1","policies":["gpu_allow_list"]}`,
			input: input,
			want:  []string{"NVIDIA GeForce RTX 4090 COMMUNITY", "NVIDIA GeForce RTX 4090 SECURE"},
			code:  "FORBIDDEN", message: "Forbidden: GPU is not allowed",
		},
		{
			name:  "422 stops and names the violation",
			v2:    "listGpuTypes 200 @gpus\n" + `createPod 422 {"detail":"Request validation failed.","errors":["$.disk: must be >= 1"]}`,
			input: input,
			want:  []string{"NVIDIA GeForce RTX 4090 COMMUNITY"},
			code:  "BAD_USER_INPUT", message: "Request validation failed.: containerDiskInGb: must be >= 1",
		},
		{
			name:  "429 waits and repeats the candidate",
			v2:    "listGpuTypes 200 @gpus\ncreatePod 429 {}\ncreatePod 201 @created",
			input: input,
			want:  []string{"NVIDIA GeForce RTX 4090 COMMUNITY", "NVIDIA GeForce RTX 4090 COMMUNITY"},
		},
		{
			name:  "an unreadable catalog leaves the order",
			v2:    "listGpuTypes 403 {}\ncreatePod 400 " + lack + "\ncreatePod 201 @created",
			input: input,
			want:  []string{"NVIDIA GeForce RTX 4090 SECURE", "NVIDIA GeForce RTX 4090 COMMUNITY"},
		},
		{
			name:  "deployCost leaves dear clouds out",
			v2:    "listGpuTypes 200 @gpus\ncreatePod 400 " + lack,
			input: input + `,"deployCost":0.5`,
			want:  []string{"NVIDIA GeForce RTX 4090 COMMUNITY"}, message: noInstances, code: "NO_CAPACITY",
		},
		{
			name:    "deployCost below every price",
			v2:      "listGpuTypes 200 @gpus\ncreatePod 201 @created",
			input:   input + `,"deployCost":0.1`,
			message: noInstances, code: "NO_CAPACITY",
		},
		{
			name:    "an unknown GPU type",
			v2:      "listGpuTypes 200 @gpus\ncreatePod 201 @created",
			input:   `"gpuTypeId":"NVIDIA GTX 1","imageName":"i"`,
			message: "GPU type not found: NVIDIA GTX 1 is not in the catalog", code: "BAD_USER_INPUT",
		},
		{
			name:    "a GPU type by a short name",
			v2:      "listGpuTypes 200 @gpus\ncreatePod 201 @created",
			input:   `"gpuTypeId":"L4","imageName":"i"`,
			message: "GPU type not found: L4 is not in the catalog; did you mean NVIDIA L4?", code: "BAD_USER_INPUT",
		},
		{name: "no GPU type", input: `"imageName":"i"`, message: "gpuTypeId is required", code: "BAD_USER_INPUT"},
		{name: "no image", input: `"gpuTypeId":"g"`, message: "imageName is required", code: "BAD_USER_INPUT"},
		{name: "a stop time in the past", input: input + `,"stopAfter":"2026-10-01T12:00:00Z"`, message: "stopAfter: must be in the future", code: "BAD_USER_INPUT"},
		{name: "no stop time", input: input + `,"terminateAfter":"tomorrow"`, message: "terminateAfter: expected a time like 2026-12-01T18:00:00Z", code: "BAD_USER_INPUT"},
		{name: "an encrypted volume", input: input + `,"volumeKey":"k"`, message: "volumeKey: encrypted volumes are not available", code: "BAD_USER_INPUT"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v2 := newScript(t, tt.v2)
			out := newRig(t).ask(t, v2, deployed, `{"input":{`+tt.input+`}}`)
			if diff := cmp.Diff(tt.want, clouds(v2)); diff != "" {
				t.Errorf("create calls (-want +got):\n%s", diff)
			}
			if out.Status != 200 {
				t.Errorf("status %d, want 200: %s", out.Status, out.Body)
			}
			a := read(t, out)
			if tt.message == "" {
				want := map[string]any{"podFindAndDeployOnDemand": map[string]any{
					"id": "p0d1abcd", "desiredStatus": "RUNNING", "machine": map[string]any{"podHostId": nil}, "runtime": nil,
				}}
				if diff := cmp.Diff(want, a.Data); diff != "" || strings.Contains(string(out.Body), `"errors"`) {
					t.Errorf("data (-want +got):\n%s\n%s", diff, out.Body)
				}
				return
			}
			if len(a.Errors) != 1 {
				t.Fatalf("got %s, want one error", out.Body)
			}
			e := a.Errors[0]
			if e.Message != tt.message || e.Extensions["code"] != tt.code {
				t.Errorf("got %q %v, want %q %s", e.Message, e.Extensions, tt.message, tt.code)
			}
			if diff := cmp.Diff([]any{"podFindAndDeployOnDemand"}, e.Path); diff != "" {
				t.Errorf("path (-want +got):\n%s", diff)
			}
			if v, there := a.Data["podFindAndDeployOnDemand"]; v != nil || !there {
				t.Errorf("data %v, want null", a.Data)
			}
		})
	}
}

// A shortage may be one only because time ran out: a request that comes late to
// its last candidates must not begin another.
func TestDeployBudget(t *testing.T) {
	r := newRig(t, func(c *graphql.Config) { c.CreateBudget = 2 * time.Second })
	v2 := newScript(t, "listGpuTypes 200 @gpus\ncreatePod 429 {}")
	out := r.ask(t, v2, deployed, `{"input":{"gpuTypeId":"NVIDIA L4","imageName":"i"}}`)
	if out.Status != 429 || out.Header.Get("Retry-After") != "1" {
		t.Errorf("got %d Retry-After %q, want 429 and 1", out.Status, out.Header.Get("Retry-After"))
	}
	if got := len(clouds(v2)); got != 2 {
		t.Errorf("%d creates, want 2 within two seconds", got)
	}
}

func TestPolicyRefusalCarriesDecision(t *testing.T) {
	v2 := newScript(t, "listGpuTypes 200 @gpus\n"+
		`createPod 403 {"title":"Forbidden","detail":"gpu is not on the allow-list","decision":"01J","policies":["gpu_allow_list","max_gpus"],"errors":["$.gpu.id: not allowed"]}`)
	out := newRig(t).ask(t, v2, deployed, `{"input":{"gpuTypeId":"NVIDIA L4","imageName":"i"}}`)
	a := read(t, out)
	want := map[string]any{
		"code": "FORBIDDEN", "status": 403.0, "policy": "gpu_allow_list, max_gpus", "decision": "01J",
		"errors": []any{"gpuTypeId: not allowed"},
	}
	if diff := cmp.Diff(want, a.Errors[0].Extensions); diff != "" || out.Status != 200 {
		t.Errorf("status %d, extensions (-want +got):\n%s", out.Status, diff)
	}
}
