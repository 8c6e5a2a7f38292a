package envoy

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Approvals by ext_authz: a grant is for one call, of its key and as it was asked for, and
// is used up by the verdict.
func TestApprovalsByExtAuthz(t *testing.T) {
	w := authorized(t, func(map[string]any) {})
	create := func(body string) (answer, int) {
		t.Helper()
		var a answer
		calls := w.sent(func() { a = w.send(t, request("POST", "/v2/pods", "key_asking", body)) })
		return a, len(calls)
	}
	a, sent := create(pod4090)
	id := regexp.MustCompile(`ap-[0-9A-Z]{26}`).FindString(a.Body)
	if a.Status != http.StatusForbidden || id == "" || sent > 0 {
		t.Fatalf("%d %s, %d calls, want 403 that says how to have it approved", a.Status, a.Body, sent)
	}
	answered := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/admin/approvals/grant?"+url.Values{"org": {"asking"}, "id": {id}, "by": {"ada"}}.Encode(), http.NoBody)
	r.Host = "127.0.0.1"
	if w.gateway.AdminHandler().ServeHTTP(answered, r); answered.Code != http.StatusOK {
		t.Fatalf("grant: %d %s", answered.Code, answered.Body)
	}
	for _, step := range []struct {
		name, body   string
		status, sent int
	}{
		{"another call", strings.Replace(pod4090, "{", `{"disk":21,`, 1), 403, 0},
		{"the call", pod4090, 201, 1},
		{"the call once more", pod4090, 403, 0},
	} {
		if a, sent := create(step.body); a.Status != step.status || sent != step.sent {
			t.Errorf("%s: %d %s, %d calls; want %d and %d", step.name, a.Status, a.Body, sent, step.status, step.sent)
		}
	}
}

// Where an audit log is kept, changes by ext_authz are refused before they are judged, in
// every form, and leave no line; reads pass.
func TestAuditByExtAuthz(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	w := authorized(t, func(map[string]any) {}, func(w *way) { w.configuration = "audit: {file: {path: " + file + "}}\n" + w.configuration })
	for _, raw := range []string{
		request("POST", "/v2/pods", "key_research", pod4090),
		request("POST", "/v2/pods", "key_research", podH100), // which policies refuse
		request("PATCH", "/v2/pods/nope1234", "key_research", `{"name":"a"}`),
		request("POST", "/v2/pods/nope1234/action", "key_research", `{"action":"stop"}`),
		request("DELETE", "/v2/pods/nope1234", "key_research", ""),
	} {
		calls := w.sent(func() {
			if a := w.send(t, raw); a.Status != http.StatusMisdirectedRequest || !strings.Contains(a.Body, "audit log") {
				t.Errorf("%s: %d %s, want 421 for the audit log", raw[:20], a.Status, a.Body)
			}
		})
		if len(calls) > 0 {
			t.Errorf("%s reached the platform: %+v", raw[:20], calls)
		}
	}
	calls := w.sent(func() {
		if a := w.send(t, request("GET", "/v2/pods", "key_research", "")); a.Status != http.StatusOK {
			t.Errorf("a read: %d %s", a.Status, a.Body)
		}
	})
	if len(calls) != 1 {
		t.Errorf("%d calls for a read, want 1", len(calls))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "createPod") || strings.Contains(string(text), "key_research") {
		t.Errorf("the audit log has lines of calls that were not sent:\n%s", text)
	}
}
