package runs

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/test/platform"
)

// TestForeignEndpointsAreAbsent asks each operation of the run interface for another
// team's endpoint and for one that does not exist. Both have the same answer.
func TestForeignEndpointsAreAbsent(t *testing.T) {
	r := newRig(t, policies("isolation: {read: team}"), func(r *rig) { r.text = strings.Replace(r.text, "limits: {minute: 2}", "limits: {minute: 600}", 1) })
	theirs := r.endpoint(t)
	const nothing = "aaaaaaaaaaaaaa"
	for _, tt := range []struct{ method, path, body string }{
		{"POST", "/v2/<id>/run", `{"input":{}}`},
		{"POST", "/v2/<id>/runsync", `{"input":{}}`},
		{"GET", "/v2/<id>/status/j1", ""},
		{"GET", "/v2/<id>/stream/j1", ""},
		{"POST", "/v2/<id>/cancel/j1", ""},
		{"POST", "/v2/<id>/retry/j1", ""},
		{"POST", "/v2/<id>/purge-queue", ""},
		{"GET", "/v2/<id>/health", ""},
		{"GET", "/v2/<id>/requests", ""},
		{"GET", "/v2/<id>/openai/v1/models", ""},
		{"POST", "/v2/<id>/openai/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`},
	} {
		ask := func(id string) string {
			a := r.ask(t, tt.method, strings.Replace(tt.path, "<id>", id, 1), "key_tiny", tt.body)
			body, _, _ := strings.Cut(a.Body, `"decision":`)
			return strings.ReplaceAll(fmt.Sprintf("%d %s", a.Status, body), id, "<id>")
		}
		if foreign, absent := ask(theirs), ask(nothing); foreign != absent {
			t.Errorf("%s %s: of another team's: %s\nof what does not exist: %s\nwant the same", tt.method, tt.path, foreign, absent)
		}
	}
	r.want(t, 200, "GET", "/v2/"+theirs+"/health", "")
	for _, row := range operation.All() {
		if row.Kind == operation.KindJob && (len(row.References()) == 0 || row.References()[0].Kind != operation.KindEndpoint) {
			t.Errorf("%s: references = %v, want its endpoint first", row.ID, row.References())
		}
	}
}

// TestJobsHaveOwners: a job that a team has submitted on a public model exists for nobody else,
// and neither do the queue and the requests of all, nor does a job whose owner is not known.
func TestJobsHaveOwners(t *testing.T) {
	r := newRig(t, policies("isolation: {read: team}"), func(r *rig) {
		r.text = strings.Replace(r.text, "limits: {minute: 2}", "limits: {minute: 600}", 1)
		r.text = strings.Replace(r.text, "      - {id: key_tiny,", "      - {id: key_admin, team: tiny, sha256: SHA256(key_admin), roles: [admin]}\n      - {id: key_tiny,", 1)
	})
	const model, nothing = "/v2/p-image-t2i", "00000000-0000-0000-0000-000000000000"
	job := r.want(t, 200, "POST", model+"/run", `{"input":{"prompt":"x"}}`)["id"]
	done := r.want(t, 200, "POST", model+"/runsync?wait=300000", `{"input":{"prompt":"x"}}`)["id"]
	for _, tt := range []struct{ method, path string }{
		{"GET", "/status/<id>"}, {"GET", "/status-sync/<id>?wait=1000"}, {"GET", "/stream/<id>"}, {"POST", "/cancel/<id>"}, {"POST", "/retry/<id>"},
	} {
		for _, id := range []any{job, done} {
			ask := func(id string) string {
				before := len(r.platform.Calls())
				a := r.ask(t, tt.method, model+strings.Replace(tt.path, "<id>", id, 1), "key_tiny", "")
				body, _, _ := strings.Cut(a.Body, `"decision":`)
				return strings.ReplaceAll(fmt.Sprintf("%d %s %d calls", a.Status, body, len(r.platform.Calls())-before), id, "<id>")
			}
			if foreign, absent := ask(fmt.Sprint(id)), ask(nothing); foreign != absent || !strings.HasPrefix(foreign, "404") {
				t.Errorf("%s %s: of another team's: %s\nof what does not exist: %s\nwant the same 404", tt.method, tt.path, foreign, absent)
			}
		}
	}
	for _, tt := range []struct{ method, path string }{{"GET", "/requests"}, {"POST", "/purge-queue"}, {"GET", "/health"}} {
		asked := func(key string) bool {
			before := len(r.platform.Calls())
			a := r.ask(t, tt.method, model+tt.path, key, "")
			if a.Status != 404 { // the emulator's models have no queue
				t.Errorf("%s %s for %s: %d %s, want 404", tt.method, tt.path, key, a.Status, a.Body)
			}
			return slices.ContainsFunc(r.platform.Calls()[before:], func(c platform.Call) bool { return c.Path == model+tt.path })
		}
		if got, want := asked("key_tiny"), tt.path == "/health"; got != want || !asked("key_admin") {
			t.Errorf("%s %s of a model that others use reaches the platform: %t, want %t, and for an admin", tt.method, tt.path, got, want)
		}
	}
	r.want(t, 200, "GET", fmt.Sprintf("%s/status/%v", model, job), "")
	r.want(t, 200, "GET", fmt.Sprintf("%s/status/%v", model, done), "")
	if a := r.ask(t, "GET", fmt.Sprintf("%s/status/%v", model, job), "key_admin", ""); a.Status != 200 {
		t.Errorf("for an admin: %d %s, want 200", a.Status, a.Body)
	}
}

// TestAJobHasItsOwnerBeforeItsCallerHasItsID: an answer without a length is seen whole, too, and so has one when it leaves, where no
// price asks for that.
func TestAJobHasItsOwnerBeforeItsCallerHasItsID(t *testing.T) {
	r := newRig(t, policies("isolation: {read: team}"), upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"j1-e1","status":"IN_QUEUE"}`+strings.Repeat(" ", 16<<10)) // more than a server holds back to tell its length
	}))
	a := r.ask(t, "POST", "/v2/without-a-price/run", "key_research", `{"input":{"prompt":"x"}}`)
	if a.Status != http.StatusOK || a.Header.Get("Content-Length") == "" {
		t.Fatalf("%d %v, want an answer that was seen whole", a.Status, a.Header)
	}
}

// TestJobsOfAnEndpoint: the jobs on a team's endpoint are that team's, but for those that others
// submitted there.
func TestJobsOfAnEndpoint(t *testing.T) {
	r := newRig(t, policies("isolation: {read: team}"), func(r *rig) {
		r.text = strings.Replace(r.text, "      - {id: key_tiny,", "      - {id: key_admin, team: tiny, sha256: SHA256(key_admin), roles: [admin]}\n      - {id: key_tiny,", 1)
	})
	base := "/v2/" + r.endpoint(t)
	mine := r.want(t, 200, "POST", base+"/run", `{"input":{}}`)["id"]
	r.want(t, 200, "GET", fmt.Sprintf("%s/status/%v", base, mine), "")
	theirs := decoded(t, r.ask(t, "POST", base+"/run", "key_admin", `{"input":{}}`).Body)["id"]
	r.want(t, 404, "GET", fmt.Sprintf("%s/status/%v", base, theirs), "")
	r.want(t, 200, "GET", base+"/requests", "")
}
