package platform

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const secretsPath = "/v2/account/secrets"

func TestSecrets(t *testing.T) {
	r := newRig(t, Options{Strict: true})
	made := r.want(201, "POST", secretsPath, `{"name":"hf","value":"v1","description":"d"}`)
	id, at := made.text("id"), "2026-06-01T12:00:00Z"
	want := map[string]any{"id": id, "name": "hf", "description": "d", "createdAt": at, "valueLastUpdatedAt": at}
	if diff := cmp.Diff(want, made.body); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	for _, name := range []string{"HF", "hf"} {
		r.want(409, "POST", secretsPath, `{"name":"`+name+`","value":"v"}`)
	}
	for query, wantIDs := range map[string][]any{"": {id}, "?name=hf": {id}, "?name=Hf": {id}, "?name=h": {}, "?name=": {}} {
		got := []any{}
		list := r.want(200, "GET", secretsPath+query, "")
		items, _ := list.at("secrets").([]any)
		for _, item := range items {
			got = append(got, item.(map[string]any)["id"])
		}
		if diff := cmp.Diff(wantIDs, got); diff != "" || list.at("pagination") != nil {
			t.Errorf("%q: got %s", query, list.raw)
		}
	}

	r.Clock().Advance(time.Hour)
	rotated := r.want(200, "PATCH", secretsPath+"/"+id, `{"value":"v2"}`)
	if rotated.text("createdAt") != at || rotated.text("valueLastUpdatedAt") != "2026-06-01T13:00:00Z" || rotated.text("description") != "d" {
		t.Errorf("rotated: got %s", rotated.raw)
	}
	r.Clock().Advance(time.Hour)
	cleared := r.want(200, "PATCH", secretsPath+"/"+id, `{"description":""}`)
	if cleared.at("description") != nil || cleared.text("valueLastUpdatedAt") != "2026-06-01T13:00:00Z" {
		t.Errorf("cleared: got %s", cleared.raw)
	}
	r.want(200, "GET", secretsPath+"/"+id, "")
	r.want(204, "DELETE", secretsPath+"/"+id, "")
	for _, method := range []string{"GET", "DELETE"} {
		r.want(404, method, secretsPath+"/"+id, "")
	}
	r.want(404, "PATCH", secretsPath+"/"+id, `{"value":"v"}`)
}

func TestSecretBodies(t *testing.T) {
	r := newRig(t, Options{})
	long := strings.Repeat("n", 191)
	created := func(members string) int { return r.call("POST", secretsPath, "{"+members+"}").status }
	for _, tt := range []struct {
		body string
		want int
	}{
		{`"name":"a","value":"v"`, 201},
		{`"name":"_a.b-c/d9","value":"v"`, 201},
		{`"name":"` + long + `","value":"v"`, 201},
		{`"name":"` + long + `n","value":"v"`, 422},
		{`"name":"","value":"v"`, 422},
		{`"name":"9a","value":"v"`, 422},
		{`"name":"a b","value":"v"`, 422},
		{`"name":"ä","value":"v"`, 422},
		{`"name":"b","value":""`, 422},
		{`"name":"b"`, 422},
		{`"value":"v"`, 422},
		{`"name":"b","value":"v","bogus":1`, 422},
		{`"name":"b","value":1`, 422},
		{`"name":"RunPod_x","value":"v"`, 400},
		{`"name":"d1","value":"v","description":"` + strings.Repeat("d", 65_535) + `"`, 201},
		{`"name":"d2","value":"v","description":"` + strings.Repeat("d", 65_536) + `"`, 422},
		{`"name":"d3","value":"v","description":"` + strings.Repeat("ä", 32_768) + `"`, 422},
	} {
		if got := created(tt.body); got != tt.want {
			t.Errorf("create {%.60s}: got %d, want %d", tt.body, got, tt.want)
		}
	}
	id := r.want(201, "POST", secretsPath, `{"name":"p","value":"v"}`).text("id")
	for body, want := range map[string]int{
		`{}`: 422, `{"name":"q"}`: 422, `{"value":""}`: 422, `{"value":"w","name":"q"}`: 422, `{"description":null}`: 422, `[]`: 422, `{"value":"w"}`: 200,
	} {
		r.want(want, "PATCH", secretsPath+"/"+id, body)
	}
}

// A change of both members is not atomic: an error can hide a new value.
func TestSecretHalfChanged(t *testing.T) {
	r := newRig(t, Options{})
	path := secretsPath + "/" + r.want(201, "POST", secretsPath, `{"name":"hf","value":"old","description":"old"}`).text("id")
	pod := r.newPod(`{"name":"a","image":"i","env":{"A":"{{ RUNPOD_SECRET_hf }}"},"gpu":{"id":"NVIDIA L4"}}`)
	r.Clock().Advance(time.Minute)
	r.AddFault(Fault{Kind: FaultHalf, Operation: "updateSecret", Status: 503, Times: 1})
	r.want(503, "PATCH", path, `{"value":"new","description":"new"}`)
	got := r.want(200, "GET", path, "")
	if got.text("description") != "old" || got.text("valueLastUpdatedAt") != "2026-06-01T12:01:00Z" {
		t.Errorf("after a half change: got %s", got.raw)
	}
	r.want(200, "POST", "/v2/pods/"+pod+"/action", `{"action":"restart"}`)
	r.boots(pod, map[string]string{"A": "new"})
	r.want(200, "PATCH", path, `{"value":"new","description":"new"}`)
	for _, f := range []Fault{{Kind: FaultHalf}, {Kind: FaultHalf, Operation: "createSecret"}} {
		if err := f.Validate(); err == nil {
			t.Errorf("%+v: want a fault, only updateSecret has halves", f)
		}
	}
}

// boots fails the test unless a container has the environment.
func (r *rig) boots(id string, want map[string]string) {
	r.t.Helper()
	got, err := r.Environment(id)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		r.t.Errorf("environment of %s: %v (-want +got):\n%s", id, err, diff)
	}
}

// Placeholders are resolved when a container boots, and keep what they had until it boots
// again.
func TestPlaceholders(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{{ID: "a", Key: DefaultKey}, {ID: "b", Key: "b"}}})
	r.as("b").want(201, "POST", secretsPath, `{"name":"foreign","value":"stolen"}`)
	path := secretsPath + "/" + r.want(201, "POST", secretsPath, `{"name":"hf","value":"v1"}`).text("id")
	r.want(201, "POST", secretsPath, `{"name":"a.b-c/d","value":"{{ RUNPOD_SECRET_hf }}"}`)
	env := `"env":{"A":"{{ RUNPOD_SECRET_hf }}","B":"x{{RUNPOD_SECRET_HF}}y{{ runpod }}{{","C":"{{ RUNPOD_SECRET_foreign }}","D":"{{ RUNPOD_SECRET_a.b-c/d }}"}`
	with := func(value string) map[string]string {
		return map[string]string{"A": value, "B": "x" + value + "y{{ runpod }}{{", "C": "", "D": "{{ RUNPOD_SECRET_hf }}"}
	}
	template := r.want(201, "POST", "/v2/templates", `{"name":"t","image":"i",`+env+`,"startJupyter":false}`).text("id")
	pod := r.want(201, "POST", "/v2/pods", `{"name":"p","templateId":"`+template+`","startJupyter":false,"gpu":{"id":"NVIDIA L4"}}`)
	sandbox := strings.TrimPrefix(r.newSandbox(`{"imageName":"i",`+env+`}`), sandboxesPath+"/")
	endpoint := r.newEndpoint(`{"name":"e","image":"i","type":"QUEUE","gpu":{"pools":["ADA_24"]},"workers":{"min":1},"scaling":{"type":"QUEUE_DELAY","queueDelay":1},` + env + `}`)
	worker := r.want(200, "GET", "/v2/serverless/"+endpoint+"/workers", "").text("workers.0.id")
	containers := []string{pod.text("id"), sandbox, worker}
	for _, id := range containers {
		r.boots(id, with("v1"))
	}
	if pod.text("env.A") != "{{ RUNPOD_SECRET_hf }}" {
		t.Errorf("the record of the pod: got %s", pod.raw)
	}
	r.Clock().Advance(time.Minute)
	r.want(200, "PATCH", path, `{"value":"v2"}`)
	for _, id := range containers {
		r.boots(id, with("v1"))
	}
	r.want(200, "POST", "/v2/pods/"+pod.text("id")+"/action", `{"action":"restart"}`)
	r.boots(pod.text("id"), with("v2"))
	r.want(200, "PATCH", "/v2/serverless/"+endpoint, `{"image":"i:2"}`)
	r.boots(r.want(200, "GET", "/v2/serverless/"+endpoint+"/workers", "").text("workers.0.id"), with("v2"))
	r.want(204, "DELETE", path, "")
	r.boots(pod.text("id"), with("v2"))
	r.want(200, "POST", "/v2/pods/"+pod.text("id")+"/action", `{"action":"stop"}`)
	r.want(200, "POST", "/v2/pods/"+pod.text("id")+"/action", `{"action":"start"}`)
	r.boots(pod.text("id"), with(""))
	if _, err := r.Environment("nope"); err == nil {
		t.Error("the environment of nothing: want an error")
	}
}
