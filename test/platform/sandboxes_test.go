package platform

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const sandboxesPath = "/v2/sandboxes"

const plainSandbox = `{"imageName":"alpine:3"}`

func (r *rig) newSandbox(body string) (path string) {
	r.t.Helper()
	return sandboxesPath + "/" + r.want(201, "POST", sandboxesPath, body).text("id")
}

func (r *rig) exec(path string) answer {
	r.t.Helper()
	return r.want(200, "POST", path+"/exec", `{"command":["true"]}`)
}

func TestSandboxLife(t *testing.T) {
	r := newRig(t, Options{Strict: true})
	made := r.want(201, "POST", sandboxesPath, `{"imageName":"alpine:3","labels":{"a":"1"}}`)
	id, at := made.text("id"), "2026-06-01T12:00:00Z"
	path := sandboxesPath + "/" + id
	want := map[string]any{
		"id": id, "name": "sandbox-" + id, "state": "CREATING", "templateId": nil, "imageName": "alpine:3", "cpuFlavorId": "cpu3c",
		"idleTimeoutSeconds": 600.0, "maxLifetimeSeconds": 3600.0, "lastActivityAt": at, "idleExpiresAt": "2026-06-01T12:10:00Z",
		"expiresAt": "2026-06-01T13:00:00Z", "createdAt": at, "updatedAt": at, "labels": map[string]any{"a": "1"},
		"terminationReason": nil, "terminatedAt": nil,
	}
	same := func(got answer) {
		t.Helper()
		if diff := cmp.Diff(want, got.body); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
	}
	same(made)
	r.want(409, "POST", path+"/exec", `{"command":["true"]}`)
	r.Clock().Advance(2 * time.Second)
	want["state"], want["updatedAt"] = "RUNNING", "2026-06-01T12:00:02Z"
	want["compute"] = map[string]any{"vcpuCount": 2.0, "memoryInGb": 4.0, "containerDiskInGb": 10.0, "costPerHr": 0.026}
	same(r.want(200, "GET", path, ""))
	r.want(409, "POST", path+"/exec", `{"command":["true"]}`) // the container is not up yet
	r.want(409, "GET", path+"/logs", "")
	r.Clock().Advance(2 * time.Second)
	r.exec(path)
	want["lastActivityAt"], want["updatedAt"], want["idleExpiresAt"] = "2026-06-01T12:00:04Z", "2026-06-01T12:00:04Z", "2026-06-01T12:10:04Z"
	same(r.want(200, "GET", path, ""))

	r.Clock().Advance(56 * time.Second)
	for range 2 {
		if got := r.want(204, "DELETE", path, ""); got.raw != "" {
			t.Errorf("DELETE: got a body %q", got.raw)
		}
	}
	delete(want, "compute")
	want["state"], want["updatedAt"], want["terminatedAt"], want["terminationReason"] = "TERMINATED", "2026-06-01T12:01:00Z", "2026-06-01T12:01:00Z", "DELETED"
	r.Clock().Advance(time.Hour)
	same(r.want(200, "GET", path, ""))
	r.want(409, "POST", path+"/exec", `{"command":["true"]}`)
	r.want(409, "GET", path+"/logs", "")
	r.want(405, "PATCH", path, `{}`)
	for _, call := range [][3]string{{"GET", "", ""}, {"DELETE", "", ""}, {"GET", "/logs", ""}, {"POST", "/exec", `{"command":["true"]}`}} {
		r.want(404, call[0], sandboxesPath+"/nope"+call[1], call[2])
	}
}

func TestSandboxRefusals(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{{ID: "a", Key: DefaultKey, Balance: 0.02}, {ID: "b", Key: "b"}}})
	rich := r.as("b")
	for _, tt := range []struct {
		status int
		body   string
	}{
		{400, `{}`},
		{400, `{"imageName":"i","templateId":"tplubuntu1"}`},
		{400, `{"imageName":"i","image":"i"}`},
		{400, `{"imageName":"i","vcpuCount":0,"bogus":1}`},
		{400, `{"imageName":"i","egressMode":"DENY_ALL"}`},
		{400, `{"imageName":`},
		{422, `[]`},
		{422, `{"imageName":1}`},
		{422, `{"imageName":"i","vcpuCount":0}`},
		{422, `{"imageName":"i","vcpuCount":1.5}`},
		{422, `{"imageName":"i","memoryInGb":0}`},
		{422, `{"imageName":"i","env":{"A":1}}`},
		{422, `{"imageName":"i","labels":{"A":null}}`},
		{422, `{"imageName":"i","idleTimeoutSeconds":0}`},
		{422, `{"imageName":"i","maxLifetimeSeconds":"1h"}`},
		{422, `{"templateId":"nope"}`},
		{422, `{"imageName":"i","cpuFlavorId":"cpu9z"}`},
		{422, `{"imageName":"i","dataCenterId":"XX"}`},
	} {
		rich.want(tt.status, "POST", sandboxesPath, tt.body)
	}
	r.want(402, "POST", sandboxesPath, plainSandbox)
	for _, state := range []string{"", "?state=CREATING", "?state=FAILED", "?state=TERMINATED"} {
		if raw := rich.want(200, "GET", sandboxesPath+state, "").raw; raw != `{"sandboxes":[]}` {
			t.Errorf("a refused sandbox is listed: %s", raw)
		}
	}
	path := rich.newSandbox(`{"templateId":"tplubuntu1","vcpuCount":1,"memoryInGb":3,"name":"n","dataCenterId":"EU-RO-1"}`)
	r.want(404, "GET", path, "") // of another account
	rich.Clock().Advance(4 * time.Second)
	got := rich.want(200, "GET", path, "")
	if got.text("imageName") != "registry.platform.test/ubuntu:24.04" || got.text("templateId") != "tplubuntu1" || got.text("name") != "n" ||
		got.at("compute.vcpuCount") != 1.0 || got.at("compute.memoryInGb") != 3.0 {
		t.Errorf("got %s", got.raw)
	}
	for body, status := range map[string]int{
		`{"command":[]}`: 422, `{}`: 422, `{"command":"ls"}`: 422, `{"command":["ls",1]}`: 422, `{"command":["ls"],"tty":true}`: 422, `x`: 400,
	} {
		rich.want(status, "POST", path+"/exec", body)
	}
}

// Each clock above its maximum is clamped, silently; the platform's own maximum holds for
// every account.
func TestSandboxClamps(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{
		{ID: "a", Key: DefaultKey},
		{ID: "b", Key: "b", MaxSandboxIdle: 300, MaxSandboxLifetime: 1800},
		{ID: "c", Key: "c", MaxSandboxIdle: 9000, MaxSandboxLifetime: 100_000},
	}})
	for _, tt := range []struct {
		key, body      string
		idle, lifetime float64
	}{
		{DefaultKey, ``, 600, 3600},
		{DefaultKey, `,"idleTimeoutSeconds":7200,"maxLifetimeSeconds":86400`, 7200, 86400},
		{DefaultKey, `,"idleTimeoutSeconds":7201,"maxLifetimeSeconds":86401`, 7200, 86400},
		{DefaultKey, `,"idleTimeoutSeconds":1,"maxLifetimeSeconds":1`, 1, 1},
		{"b", ``, 300, 1800},
		{"b", `,"idleTimeoutSeconds":301,"maxLifetimeSeconds":1801`, 300, 1800},
		{"b", `,"idleTimeoutSeconds":10,"maxLifetimeSeconds":20`, 10, 20},
		{"c", `,"idleTimeoutSeconds":9000,"maxLifetimeSeconds":100000`, 7200, 86400},
	} {
		got := r.as(tt.key).want(201, "POST", sandboxesPath, `{"imageName":"i"`+tt.body+`}`)
		if got.at("idleTimeoutSeconds") != tt.idle || got.at("maxLifetimeSeconds") != tt.lifetime {
			t.Errorf("%s %s: got %v and %v, want %v and %v", tt.key, tt.body, got.at("idleTimeoutSeconds"), got.at("maxLifetimeSeconds"), tt.idle, tt.lifetime)
		}
	}
}

// cents compares amounts of money to a cent.
func cents(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Round(100*got) != math.Round(100*want) || math.Abs(got-want) > 0.005 {
		t.Errorf("%s: got %v USD, want %v", what, got, want)
	}
}

// A sandbox is billed by the second from its creation to its end, by a rate that no catalog
// has. The sample of the platform's pages is 0.026 USD per hour for 2 vCPU with 4 GB.
func TestSandboxBills(t *testing.T) {
	const sample = 0.026
	tests := []struct {
		name, body string
		until      func(r *rig, path string)
		reason     string
		seconds    float64
	}{
		{"idle", `"idleTimeoutSeconds":900`, func(*rig, string) {}, "IDLE_TIMEOUT", 900},
		{"idle after a command", `"idleTimeoutSeconds":900`, func(r *rig, path string) {
			r.Clock().Advance(800 * time.Second)
			r.exec(path)
		}, "IDLE_TIMEOUT", 1700},
		{"lifetime", `"idleTimeoutSeconds":900`, func(r *rig, path string) {
			for range 4 {
				r.Clock().Advance(890 * time.Second)
				r.exec(path)
			}
		}, "MAX_LIFETIME", 3600},
		{"a day", `"idleTimeoutSeconds":7200,"maxLifetimeSeconds":86400`, func(r *rig, path string) {
			for range 12 {
				r.Clock().Advance(7199 * time.Second)
				r.exec(path)
			}
		}, "MAX_LIFETIME", 86400},
		{"a look is no activity", `"idleTimeoutSeconds":900`, func(r *rig, path string) {
			r.Clock().Advance(800 * time.Second)
			r.want(200, "GET", path, "")
		}, "IDLE_TIMEOUT", 900},
		{"deleted", `"idleTimeoutSeconds":7200`, func(r *rig, path string) {
			r.Clock().Advance(2500 * time.Second)
			r.want(204, "DELETE", path, "")
			r.Clock().Advance(time.Minute)
			r.want(204, "DELETE", path, "")
		}, "DELETED", 2500},
		{"deleted while CREATING", `"name":"short"`, func(r *rig, path string) {
			r.Clock().Advance(time.Second)
			r.want(204, "DELETE", path, "")
		}, "DELETED", 1},
		{"failed", `"idleTimeoutSeconds":7200`, func(r *rig, path string) {
			r.Clock().Advance(1200 * time.Second)
			if err := r.SetSandboxState(strings.TrimPrefix(path, sandboxesPath+"/"), "FAILED"); err != nil {
				r.t.Fatal(err)
			}
		}, "FAILED", 1200},
		{"ended by the platform", `"idleTimeoutSeconds":7200`, func(r *rig, path string) {
			r.Clock().Advance(1200 * time.Second)
			if err := r.SetSandboxState(strings.TrimPrefix(path, sandboxesPath+"/"), "TERMINATED"); err != nil {
				r.t.Fatal(err)
			}
		}, "PLATFORM", 1200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, Options{})
			path := r.newSandbox(`{"imageName":"i",` + tt.body + `}`)
			tt.until(r, path)
			r.Clock().Advance(48 * time.Hour)
			got := r.want(200, "GET", path, "")
			ended := start().Add(time.Duration(tt.seconds) * time.Second).Format(time.RFC3339)
			if got.text("terminationReason") != tt.reason || got.text("terminatedAt") != ended {
				t.Errorf("got %s at %s, want %s at %s", got.text("terminationReason"), got.text("terminatedAt"), tt.reason, ended)
			}
			left, perHour, _ := r.Balance("default")
			cents(t, "the balance fell by", DefaultBalance-left, sample*tt.seconds/3600)
			bills := r.SandboxBills()
			if len(bills) != 1 || math.Abs(bills[0].Total-sample*tt.seconds/3600) > 1e-9 || bills[0].Account != "default" || perHour != 0 {
				t.Errorf("bills: got %+v, want %v USD; %v per hour", bills, sample*tt.seconds/3600, perHour)
			}
			if listed := r.want(200, "GET", "/v2/billing", ""); listed.at("metadata.totals.totalAmount") != 0.0 {
				t.Errorf("a billing list has the sandbox: %s", listed.raw)
			}
		})
	}
}

// A day of sandboxes of several sizes, at work and idle, agrees with the balance.
func TestSandboxDay(t *testing.T) {
	r := newRig(t, Options{})
	want := 0.0
	for i := range 200 {
		vcpu, memory := 1+i%4, 2+i%7
		r.newSandbox(`{"imageName":"i","idleTimeoutSeconds":` + []string{"60", "600", "3000"}[i%3] +
			`,"vcpuCount":` + string(rune('0'+vcpu)) + `,"memoryInGb":` + string(rune('0'+memory)) + `}`)
		want += (0.009*float64(vcpu) + 0.002*float64(memory)) * []float64{60, 600, 3000}[i%3] / 3600
		r.Clock().Advance(7 * time.Minute)
	}
	r.Clock().Advance(time.Hour)
	left, _, _ := r.Balance("default")
	cents(t, "a day", DefaultBalance-left, want)
	billed := 0.0
	for _, b := range r.SandboxBills() {
		billed += b.Total
	}
	cents(t, "the bills of a day", billed, want)
}

// When the money is gone, a sandbox ends and costs nothing more.
func TestSandboxWithoutMoney(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{{ID: "a", Key: DefaultKey, Balance: 0.026}}})
	path := r.newSandbox(`{"imageName":"i","idleTimeoutSeconds":7200,"maxLifetimeSeconds":86400}`)
	r.Clock().Advance(2 * time.Hour)
	if got := r.want(200, "GET", path, ""); got.text("state") != "TERMINATED" || got.text("terminatedAt") != "2026-06-01T13:00:00Z" {
		t.Errorf("got %s", got.raw)
	}
	if left, perHour, _ := r.Balance("a"); left != 0 || perHour != 0 {
		t.Errorf("got %v left and %v per hour, want nothing", left, perHour)
	}
}

func TestSandboxList(t *testing.T) {
	r := newRig(t, Options{Strict: true})
	name := func(path string) string { return strings.TrimPrefix(path, sandboxesPath+"/") }
	first := name(r.newSandbox(`{"imageName":"i","labels":{"team":"a","run":"x=1"}}`))
	failed := name(r.newSandbox(`{"imageName":"i","labels":{"team":"a"}}`))
	gone := name(r.newSandbox(`{"imageName":"i","labels":{"team":"a"}}`))
	r.Clock().Advance(5 * time.Second)
	last := name(r.newSandbox(`{"imageName":"i","labels":{"team":"b"}}`))
	r.want(204, "DELETE", sandboxesPath+"/"+gone, "")
	if err := r.SetSandboxState(failed, "FAILED"); err != nil {
		t.Fatal(err)
	}
	r.want(204, "DELETE", sandboxesPath+"/"+failed, "")
	for query, want := range map[string][]string{
		"":                                      {first, last},
		"?state=RUNNING":                        {first},
		"?state=CREATING":                       {last},
		"?state=TERMINATED":                     {gone},
		"?state=FAILED":                         {failed},
		"?labels=team%3Da":                      {first},
		"?labels=team%3Da&labels=run%3Dx%3D1":   {first},
		"?labels=team%3Da&labels=run%3Dx":       nil,
		"?labels=team%3Da&labels=team%3Db":      nil,
		"?labels=team%3Da,run%3Dx%3D1":          nil,
		"?labels=team%3D":                       nil,
		"?state=TERMINATED&labels=team%3Da":     {gone},
		"?state=TERMINATED&labels=team%3Db":     nil,
		"?labels=team%3Db&state=CREATING":       {last},
		"?labels=Team%3Db":                      nil,
		"?state=RUNNING&labels=run%3Dx%3D1":     {first},
		"?state=RUNNING&labels=run%3Dx%3D1%3D":  nil,
		"?labels=run%3Dx%3D1&labels=team%3Da":   {first},
		"?labels=run%3Dx%3D1&labels=run%3Dx%3D": nil,
	} {
		got := r.want(200, "GET", sandboxesPath+query, "")
		var ids []string
		items, _ := got.at("sandboxes").([]any)
		for _, item := range items {
			ids = append(ids, item.(map[string]any)["id"].(string))
		}
		if diff := cmp.Diff(want, ids); diff != "" || got.at("pagination") != nil {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for query, status := range map[string]int{"?state=DEAD": 422, "?labels=team": 422, "?state=RUNNING&state=FAILED": 400, "?limit=1": 400} {
		r.want(status, "GET", sandboxesPath+query, "")
	}
}

// A sandbox takes stock of its flavour until it ends; the data center is a preference.
func TestSandboxCapacity(t *testing.T) {
	r := newRig(t, Options{})
	if err := r.SetStock("cpu3c", "", "", 0); err != nil {
		t.Fatal(err)
	}
	r.want(503, "POST", sandboxesPath, plainSandbox)
	if err := r.SetStock("cpu3c", "", "EU-RO-1", 2); err != nil {
		t.Fatal(err)
	}
	path := r.newSandbox(`{"imageName":"i","dataCenterId":"US-TX-3"}`)
	r.want(503, "POST", sandboxesPath, plainSandbox)
	r.want(204, "DELETE", path, "")
	r.want(204, "DELETE", path, "")
	r.newSandbox(plainSandbox)
	r.want(503, "POST", sandboxesPath, plainSandbox)
	r.Clock().Advance(time.Hour)
	r.newSandbox(plainSandbox)

	r = newRig(t, Options{})
	r.AddFault(Fault{Kind: FaultCapacity, Operation: "createSandbox", Times: 1})
	r.want(503, "POST", sandboxesPath, plainSandbox)
	r.newSandbox(plainSandbox)
	r.AddFault(Fault{Kind: FaultStatus, Status: 502, After: true, Operation: "createSandbox", Times: 1})
	r.want(502, "POST", sandboxesPath, plainSandbox)
	if got, _ := r.want(200, "GET", sandboxesPath, "").at("sandboxes").([]any); len(got) != 2 {
		t.Errorf("got %d sandboxes, want the one whose answer was lost, too", len(got))
	}
}

// The documentation disagrees with itself about egress: the create takes it by an option.
func TestSandboxEgress(t *testing.T) {
	r := newRig(t, Options{SandboxEgress: true})
	got := r.want(201, "POST", sandboxesPath, `{"imageName":"i","egressMode":"ALLOW_LIST","egressAllowlist":["example.com"]}`)
	if diff := cmp.Diff([]any{"example.com"}, got.at("egressAllowlist")); diff != "" || got.text("egressMode") != "ALLOW_LIST" {
		t.Errorf("got %s", got.raw)
	}
	if got := r.want(201, "POST", sandboxesPath, plainSandbox); got.text("egressMode") != "" {
		t.Errorf("got %s", got.raw)
	}
	r.want(422, "POST", sandboxesPath, `{"imageName":"i","egressMode":"OPEN"}`)
}

func TestSandboxExec(t *testing.T) {
	r := newRig(t, Options{})
	path := r.newSandbox(`{"imageName":"i","env":{"A":"1"}}`)
	r.Clock().Advance(4 * time.Second)
	for command, want := range map[string][2]any{
		`["echo","$HOME","a b"]`: {"$HOME a b\n", nil},
		`["printenv","A"]`:       {"1\n", nil},
		`["printenv","A","B"]`:   {"1\n", "command exited with status 1"},
		`["false"]`:              {"", "command exited with status 1"},
		`["sleep","59"]`:         {"", nil},
		`["sleep","60"]`:         {"", "command was killed after 60 seconds"},
		`["sleep"]`:              {"", nil},
		`["python","-c","1"]`:    {"python -c 1\n", nil},
		`[""]`:                   {"\n", nil},
	} {
		got := r.want(200, "POST", path+"/exec", `{"command":`+command+`}`)
		if diff := cmp.Diff(map[string]any{"output": want[0], "error": want[1]}, got.body); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
	r.AddFault(Fault{Kind: FaultStatus, Status: 503, Operation: "execSandbox", Times: 1})
	r.want(503, "POST", path+"/exec", `{"command":["true"]}`)
	r.exec(path)
}

func TestSandboxLogs(t *testing.T) {
	p := RunT(t, WithClock(ManualClock(start())))
	r := &rig{Server: p.Server, t: t, key: DefaultKey}
	path := r.newSandbox(plainSandbox)
	p.Clock().Advance(5 * time.Second)
	r.want(200, "POST", path+"/exec", `{"command":["echo","hidden"]}`)
	r.want(422, "GET", path+"/logs?tail=5001", "")
	next, header := readLog(t, p, path+"/logs?source=container", "")
	if got := next(); !strings.Contains(got, `"ready"`) || header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %q, %v", got, header)
	}
	r.want(204, "DELETE", path, "")
	if got := next(); got != "" {
		t.Errorf("after the end: got %q, want the end of the stream", got)
	}
}
