package runs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/operation"
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
		if row.Kind == operation.KindJob && len(row.References()) != 1 {
			t.Errorf("%s: references = %v, want its endpoint", row.ID, row.References())
		}
	}
}
