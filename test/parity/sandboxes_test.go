package parity

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

const sandboxBody = `{"name":"s","imageName":"img:1","labels":{"job":"a","step":"1"}}`

// sandbox makes a sandbox and waits until its container runs.
func (d *door) sandbox(t *testing.T, key, body string) (path string) {
	t.Helper()
	a := d.ask(t, request("POST", "/v2/sandboxes", key, body))
	if a.Status != 201 {
		t.Fatalf("create: %d %s, want 201", a.Status, a.Body)
	}
	d.advance(20 * time.Second)
	return "/v2/sandboxes/" + fmt.Sprint(field(t, a.Body, "id"))
}

// A sandbox from its creation to its end, and what each side sees of its labels.
func TestSandboxes(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		path := d.sandbox(t, "key_research", sandboxBody)
		sent, _ := d.lastBody(t, "createSandbox")["labels"].(map[string]any)
		if len(sent) != 5 || sent["job"] != "a" || sent[operation.KeyLabel] != "key_research" || sent[operation.TeamLabel] != "research" || sent[operation.CallLabel] == "" {
			t.Errorf("labels sent: %v, want the caller's and the gateway's", sent)
		}
		if other := d.sandbox(t, "key_research", `{"imageName":"img:2"}`); other == path {
			t.Errorf("two sandboxes are called %s", path)
		}
		for target, want := range map[string]int{
			path: 1, "/v2/sandboxes": 2, "/v2/sandboxes?labels=job%3Da&labels=step%3D1&state=RUNNING": 1,
			"/v2/sandboxes?labels=job%3Da&labels=step%3D2": 0, "/v2/sandboxes?state=FAILED": 0,
		} {
			a := d.ask(t, request("GET", target, "key_research", ""))
			if a.Status != 200 || strings.Count(a.Body, `"imageName"`) != want || strings.Contains(a.Body, "tollgate-") {
				t.Errorf("%s: %d %s, want 200 with %d records and without the gateway's labels", target, a.Status, a.Body, want)
			}
		}
		if a := d.ask(t, request("POST", path+"/exec", "key_research", `{"command":["echo","a","<&>"]}`)); a.Status != 200 || field(t, a.Body, "output") != "a <&>\n" {
			t.Errorf("exec: %d %s, want its output", a.Status, a.Body)
		}
		lines, stop := d.stream(t, path+"/logs?tail=5", "key_research")
		if line := <-lines; !strings.HasPrefix(line, "id: ") {
			t.Errorf("first line = %q, want an event id", line)
		}
		stop()
		for range 2 {
			if a := d.ask(t, request("DELETE", path, "key_research", "")); a.Status != 204 {
				t.Errorf("delete: %d %s, want 204 each time", a.Status, a.Body)
			}
		}
		if a := d.ask(t, request("POST", path+"/exec", "key_research", `{"command":["echo"]}`)); a.Status != 409 {
			t.Errorf("exec after the end: %d %s, want 409", a.Status, a.Body)
		}
		if a := d.ask(t, request("GET", "/v2/sandboxes?state=TERMINATED", "key_research", "")); a.Status != 200 || strings.Count(a.Body, `"imageName"`) != 1 {
			t.Errorf("those that have ended: %d %s, want one", a.Status, a.Body)
		}
	})
}

// What is wrong with a call is said with its place, and nothing of it leaves.
func TestSandboxesThatAreRefused(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		path := d.sandbox(t, "key_research", sandboxBody)
		before := len(d.platform.Calls())
		for call, want := range map[[3]string]string{
			{"POST", "/v2/sandboxes", `{}`}:                                               "400 exactly one of 'imageName' and 'templateId'",
			{"POST", "/v2/sandboxes", `{"imageName":"i","image":"i"}`}:                    "400 'image' not allowed",
			{"POST", "/v2/sandboxes", `{"imageName":"i","vcpuCount":0,"x":1}`}:            "422 $.vcpuCount: must be at least 1",
			{"POST", "/v2/sandboxes", `{"imageName":"i","maxLifetimeSeconds":86401}`}:     "400 $.maxLifetimeSeconds: must be at most 86400",
			{"POST", "/v2/sandboxes", `{"imageName":"i","egressMode":"DENY_ALL"}`}:        "400 $.egressMode: is not available",
			{"POST", "/v2/sandboxes", `{"imageName":"i","labels":{"tollgate-call":"x"}}`}: "400 $.labels: labels whose keys begin with tollgate-",
			{"POST", "/v2/sandboxes", `{"imageName":"i","labels":{"tollgate-":"x"}}`}:     "400 $.labels: labels whose keys begin with tollgate-",
			{"GET", "/v2/sandboxes?labels=a%3Db&labels=tollgate-key%3Dann", ""}:           "400 query.labels: labels whose keys begin with tollgate-",
			{"GET", "/v2/sandboxes?labels=a", ""}:                                         "422 query.labels[0]",
			{"GET", "/v2/sandboxes?state=RUNNING&state=FAILED", ""}:                       "400 query.state: must not be sent more than once",
			{"POST", path + "/exec", `{"command":[]}`}:                                    "422 $.command: must not be empty",
			{"POST", path + "/exec", `{"command":"ls"}`}:                                  "422 $.command: must be an array",
			{"POST", path + "/exec", `{"command":["printenv","key_research"]}`}:           "422 contains a gateway key",
			{"PATCH", path, `{"name":"b"}`}:                                               "405 ",
			{"POST", "/v2/sandboxes", `{"templateId":"` + nothing + `"}`}:                 "422 $.templateId: no template has this id",
			{"POST", "/v2/sandboxes", `{"templateId":"../x"}`}:                            "422 $.templateId: no template has this id",
			{"POST", "/v2/sandboxes", `{"imageName":"i","labels":{"a":"key_research"}}`}:  "422 contains a gateway key",
		} {
			a := d.ask(t, request(call[0], call[1], "key_research", call[2]))
			status, text, _ := strings.Cut(want, " ")
			if fmt.Sprint(a.Status) != status || !strings.Contains(a.Body, text) {
				t.Errorf("%v: %d %s, want %s", call, a.Status, a.Body, want)
			}
		}
		for _, c := range d.platform.Calls()[before:] {
			if c.Path != "/v2/templates/"+nothing {
				t.Errorf("the platform was asked %s %s", c.Method, c.Path)
			}
		}
	})
}

// A template supplies image and environment, as they were judged. What it has beside them, a sandbox cannot have.
func TestSandboxesOfTemplates(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		of := func(template string) (a answer) {
			id, _ := d.asPlatform(t, "POST", "/v2/templates", template)["id"].(string)
			return d.ask(t, request("POST", "/v2/sandboxes", "key_research", `{"templateId":"`+id+`","env":{"B":"2"}}`))
		}
		if a := of(`{"name":"t","image":"img:7","env":{"A":"1","B":"1"}}`); a.Status != 201 || field(t, a.Body, "imageName") != "img:7" {
			t.Errorf("%d %s, want the template's image", a.Status, a.Body)
		}
		sent := d.lastBody(t, "createSandbox")
		env, _ := sent["env"].(map[string]any)
		if sent["templateId"] != nil || len(env) != 2 || env["A"] != "1" || env["B"] != "2" {
			t.Errorf("sent: %v, want image and environment in the template's place", sent)
		}
		registry := fmt.Sprint(d.asPlatform(t, "POST", "/v2/registries", bodies["createRegistry"])["id"])
		for _, more := range []string{`"args":"python a.py"`, `"registry":"` + registry + `"`} {
			if a := of(`{"name":"u","image":"img:7",` + more + `}`); a.Status != 400 || !strings.Contains(a.Body, "$.templateId: the template has a command") {
				t.Errorf("%s: %d %s, want 400", more, a.Status, a.Body)
			}
		}
	})
}

// The owner of a sandbox that has ended is told by its labels: its own team reads and ends it as before, and others never do.
func TestEndedSandboxesHaveOwners(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		path := d.sandbox(t, "key_research", sandboxBody)
		for _, end := range []func(){
			func() {},
			func() { d.ask(t, request("DELETE", path, "key_research", "")) },
			func() { d.forget() },
		} {
			end()
			for _, target := range []string{path, path + "/exec"} {
				method, body := "GET", ""
				if target != path {
					method, body = "POST", `{"command":["echo"]}`
				}
				if a := d.ask(t, request(method, target, "key_other", body)); a.Status != 404 {
					t.Errorf("another team, %s %s: %d %s, want 404", method, target, a.Status, a.Body)
				}
			}
			if a := d.ask(t, request("GET", path, "key_research", "")); a.Status != 200 {
				t.Errorf("its owner: %d %s, want 200", a.Status, a.Body)
			}
		}
		id := strings.TrimPrefix(path, "/v2/sandboxes/")
		for key, want := range map[string]bool{"key_research": true, "key_other": false} {
			if a := d.ask(t, request("GET", "/v2/sandboxes?state=TERMINATED", key, "")); a.Status != 200 || strings.Contains(a.Body, id) != want {
				t.Errorf("list of %s: %d %s, want 200, with it: %t", key, a.Status, a.Body, want)
			}
		}
		if a := d.ask(t, request("DELETE", path, "key_research", "")); a.Status != 204 {
			t.Errorf("delete again: %d %s, want 204", a.Status, a.Body)
		}
	}, apart("{read: team, unowned: admins, exempt: [viewer]}"))
}

// A command is sent once, whatever becomes of its answer, and is in no record.
func TestExecIsSentOnceAndNotRecorded(t *testing.T) {
	t.Parallel()
	var execs atomic.Int64
	loses := inFront(t, func(w http.ResponseWriter, r *http.Request, proxy http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/exec") && execs.Add(1) > 1 {
			cut(w)
		}
		proxy.ServeHTTP(w, r)
	})
	const word = "wordOfTheCommand"
	eachDoor(t, func(t *testing.T, d *door) {
		execs.Store(0)
		path := d.sandbox(t, "key_platform", sandboxBody)
		for i, want := range []int{200, 502} {
			body := fmt.Sprintf(`{"command":["echo","%s%d"]}`, word, i)
			if a := d.ask(t, request("POST", path+"/exec", "key_platform", body, "Idempotency-Key: k")); a.Status/100 != want/100 {
				t.Errorf("exec: %d %s, want %d", a.Status, a.Body, want)
			}
		}
		if a := d.ask(t, request("POST", path+"/exec", "key_tiny", `{"command":["echo","`+word+`"]}`)); a.Status != 403 {
			t.Errorf("a role without sandbox:exec: %d %s, want 403", a.Status, a.Body)
		}
		exec := func(i int) answer {
			return d.ask(t, request("POST", path+"/exec", "key_research", fmt.Sprintf(`{"command":["echo","%s%d"]}`, word, i)))
		}
		id := refusedWith(t, exec(3), 403)
		seen := []string{d.page(t, "/admin/approvals?org=acme"), d.page(t, "/ui/approvals?org=acme")}
		if code := d.grants(t, "grant", "acme", id); code != 200 {
			t.Fatalf("grant: %d", code)
		}
		if other := refusedWith(t, exec(4), 403); other == id {
			t.Error("another command is what was granted")
		}
		if n := execs.Load(); n != 2 {
			t.Errorf("%d commands were sent, want 2", n)
		}
		if a := exec(3); a.Status == 403 || execs.Load() != 3 {
			t.Errorf("what was granted: %d %s, want it sent", a.Status, a.Body)
		}
		seen = append(seen, d.logs.String(), d.page(t, "/admin/approvals?org=acme"), d.page(t, "/admin/decisions?org=acme"), d.page(t, "/ui/requests?org=acme"))
		for _, key := range d.redis.Keys() {
			if text, err := d.redis.Get(key); err == nil {
				seen = append(seen, text)
			} else if fields, err := d.redis.HKeys(key); err == nil {
				for _, f := range fields {
					seen = append(seen, d.redis.HGet(key, f))
				}
			}
		}
		if i := slices.IndexFunc(seen, func(text string) bool { return strings.Contains(text, word) }); i >= 0 {
			t.Errorf("a command is in %s", seen[i])
		}
	}, under("- {policy: operations, roles: [operator], approvable: true, params: {deny: [execSandbox]}}"), loses, func(d *door) {
		d.text = strings.Replace(d.text, "SHA256(key_tiny), roles: [operator]", "SHA256(key_tiny), roles: [viewer]", 1)
	})
}

// A platform without sandboxes lists none, and is no platform in trouble.
func TestAPlatformWithoutSandboxes(t *testing.T) {
	t.Parallel()
	without := inFront(t, func(w http.ResponseWriter, r *http.Request, proxy http.Handler) {
		if strings.HasPrefix(r.URL.Path, "/v2/sandboxes") {
			said(404)(w)
			return
		}
		proxy.ServeHTTP(w, r)
	})
	eachDoor(t, func(t *testing.T, d *door) {
		if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 201 {
			t.Errorf("a pod under a budget: %d %s, want 201", a.Status, a.Body)
		}
		if a := d.ask(t, request("GET", "/v2/sandboxes", "key_research", "")); a.Status != 404 {
			t.Errorf("the list: %d %s, want the platform's 404", a.Status, a.Body)
		}
	}, budgeted("{per_hour: 10}"), without)
}
