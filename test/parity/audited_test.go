package parity

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/audit"
)

// audited writes the audit log to a file.
func audited(path string) option {
	return func(d *door) { d.text = "audit: {file: {path: " + path + "}}\n" + d.text }
}

// auditLine is what of a line concerns the tests.
type auditLine struct {
	Phase, Operation, Verb, Key, Who, Dialect, Carried, Name, Query string
	Resource                                                        string
	Status                                                          int
	PerHour                                                         json.Number `json:"per_hour"`
}

// readAudit verifies the log and returns its lines, but those of configurations.
func readAudit(t *testing.T, path string) (all []auditLine) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := new(audit.Chain)
	if err := c.Verify("audit.log", strings.NewReader(string(text)), func(string) {}); err != nil {
		t.Error(err)
	}
	if open := c.Unfinished(); len(open) > 0 {
		t.Errorf("%v have no result", open)
	}
	for line := range strings.Lines(string(text)) {
		var l auditLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Phase != "loaded" {
			all = append(all, l)
		}
	}
	return all
}

// Whoever changes something is recorded before and after, in each dialect and by the
// admin listener; who reads, or is refused, is not.
func TestChangesAreAudited(t *testing.T) {
	for _, name := range []string{"http", "envoy"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			d := openDoor(t, name, budgeted("{per_hour: 1.50}"), audited(path))
			id := d.rented(t, podL4)
			for _, r := range []struct {
				method, target, body string
				status               int
			}{
				{"GET", "/v2/pods/" + id, "", 200},
				{"POST", "/v2/pods", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"},"bogus":1}`, 422},
				{"POST", "/v2/pods", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4","count":4}}`, 403},
				{"POST", "/v1/pods/" + id + "/stop", "", 200},
				{"POST", "/graphql", `{"query":"mutation { podTerminate(input: {podId: \"` + id + `\"}) }"}`, 200},
				{"DELETE", "/v2/pods/" + id, "", 404},
			} {
				if a := d.ask(t, request(r.method, r.target, "key_research", r.body)); a.Status != r.status {
					t.Fatalf("%s %s: %d %s, want %d", r.method, r.target, a.Status, a.Body, r.status)
				}
			}
			d.reconcile(t)
			got := readAudit(t, path)
			change := func(l auditLine, carried string, status int) []auditLine {
				result := auditLine{Phase: "result", Carried: carried, Status: status}
				l.Phase, l.Key = "intent", "key_research"
				return []auditLine{l, result}
			}
			var want []auditLine
			want = append(want, change(auditLine{Operation: "createPod", Verb: "create", Dialect: "v2", Name: "a", PerHour: "0.43274"}, "answered", 201)...)
			want[1].Resource = id
			want = append(want, change(auditLine{Operation: "podAction", Verb: "stop", Dialect: "v1", Resource: id}, "answered", 200)...)
			want[3].Resource = id
			want = append(want, change(auditLine{Operation: "deletePod", Verb: "delete", Dialect: "graphql", Resource: id}, "answered", 204)...)
			want = append(want, change(auditLine{Operation: "deletePod", Verb: "delete", Dialect: "v2", Resource: id}, "answered", 404)...)
			want = append(want, change(auditLine{Operation: "POST /admin/spend/reconcile", Query: "org=acme"}, "", 200)...)
			want[8].Who, want[8].Key = "unauthenticated", ""
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), canary) {
				t.Errorf("a key is in the audit log:\n%s", text)
			}
		})
	}
}

// A change that cannot be recorded is not made: a full disk stops changes, and not reads.
func TestWhatCannotBeAuditedIsNotDone(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no device that is always full")
	}
	eachDoor(t, func(t *testing.T, d *door) {
		for _, r := range []struct {
			method, target, body string
			status               int
		}{
			{"GET", "/v2/pods", "", 200},
			{"POST", "/v2/pods", podL4, 503},
			{"POST", "/v1/pods", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`, 503},
			{"DELETE", "/v2/templates/any", "", 503},
		} {
			if a := d.ask(t, request(r.method, r.target, "key_research", r.body)); a.Status != r.status || r.status == 503 && !strings.Contains(a.Body, "the audit log cannot be written") {
				t.Errorf("%s %s: %d %s, want %d", r.method, r.target, a.Status, a.Body, r.status)
			}
		}
		a := d.ask(t, request("POST", "/graphql", "key_research",
			`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"d\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", cloudType: SECURE}) { id } }"}`))
		if !strings.Contains(a.Body, `"status":503`) {
			t.Errorf("GraphQL: %d %s, want a refusal", a.Status, a.Body)
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/admin/limits/reset?org=acme", http.NoBody)
		r.Host = "127.0.0.1"
		d.gateway.AdminHandler().ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("reset: %d %s, want 503", w.Code, w.Body)
		}
		for _, c := range d.platform.Calls() {
			if c.Method != http.MethodGet {
				t.Errorf("%s %s has reached the platform", c.Method, c.Path)
			}
		}
		d.holds(t, 0, 0)
	}, budgeted("{per_hour: 1.50}"), audited("/dev/full"))
}

// Stops by the gateway itself are audited, too.
func TestStopsAreAudited(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	d := openDoor(t, "http", budgeted("{per_day: 2}, over: {stop: newest, notice: 10m}"), audited(path))
	id := d.rented(t, podL4)
	for _, wait := range []time.Duration{0, 5 * time.Hour, 10 * time.Minute} {
		d.advance(wait)
		d.reconcile(t)
	}
	var got []auditLine
	lines := readAudit(t, path)
	for i, l := range lines {
		if l.Who == "gateway" {
			got = append(got, l, lines[i+1])
		}
	}
	want := []auditLine{
		{Phase: "intent", Who: "gateway", Operation: "podAction", Verb: "stop", Resource: id}, {Phase: "result", Resource: id, Carried: "answered"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines of the gateway's own (-want +got):\n%s", diff)
	}
}
