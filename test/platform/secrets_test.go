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
