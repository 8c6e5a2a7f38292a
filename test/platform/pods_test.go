package platform

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPodLife(t *testing.T) {
	r := newRig(t, Options{})
	created := r.want(201, "POST", "/v2/pods", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA GeForce RTX 4090","count":2},"ports":["8888/http","22/tcp"]}`)
	id := created.text("id")
	if diff := cmp.Diff(map[string]any{}, created.at("runtime")); diff != "" {
		t.Errorf("runtime of the 201 (-want +got):\n%s", diff)
	}
	steps := []struct {
		name    string
		after   time.Duration
		action  string
		status  string
		actions []any
		cost    float64
		runtime bool
	}{
		{"created", 0, "", "PROVISIONING", []any{"stop", "terminate"}, 0.88, false},
		{"allocated", 2 * time.Second, "", "STARTING", []any{"stop", "terminate"}, 0.88, false},
		{"up", 2 * time.Second, "", "RUNNING", []any{"stop", "restart", "terminate"}, 0.88, true},
		{"restarted", time.Minute, "restart", "RUNNING", []any{"stop", "restart", "terminate"}, 0.88, true},
		{"stopped", time.Minute, "stop", "EXITED", []any{"start", "terminate"}, 0, false},
		{"started", time.Hour, "start", "STARTING", []any{"stop", "terminate"}, 0.88, false},
		{"up again", 2 * time.Second, "", "RUNNING", []any{"stop", "restart", "terminate"}, 0.88, true},
	}
	for _, s := range steps {
		r.Clock().Advance(s.after)
		if s.action != "" {
			r.want(200, "POST", "/v2/pods/"+id+"/action", `{"action":"`+s.action+`"}`)
		}
		p := r.want(200, "GET", "/v2/pods/"+id, "")
		got := []any{p.at("status"), p.at("actions"), p.at("cost"), p.at("runtime") != nil, p.at("ssh.direct") != nil}
		want := []any{s.status, s.actions, s.cost, s.runtime, s.runtime}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: status, actions, cost, runtime, ssh.direct (-want +got):\n%s", s.name, diff)
		}
	}
	r.want(204, "POST", "/v2/pods/"+id+"/action", `{"action":"terminate"}`)
	r.want(404, "GET", "/v2/pods/"+id, "")
	if got := r.want(200, "GET", "/v2/pods", "").raw; got != empty("pods") {
		t.Errorf("list after terminate: got %s", got)
	}
}

func TestPodRecord(t *testing.T) {
	r := newRig(t, Options{})
	id := r.newPod(`{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"},"dataCenterIds":[],"ports":["22/tcp"],"env":{"A":"<&>"}}`)
	r.Clock().Advance(time.Minute)
	p := r.want(200, "GET", "/v2/pods/"+id, "")
	for path, want := range map[string]any{
		"name": "a", "image": "img:1", "args": "", "disk": 20.0, "registry": nil, "template": nil, "locked": false,
		"cloud": "SECURE", "mounts": map[string]any{}, "gpu": map[string]any{"id": "NVIDIA L4", "count": 1.0, "vcpuCount": 12.0, "memory": 50.0},
		"env": map[string]any{"A": "<&>"}, "globalNetworking": map[string]any{"enabled": false},
		"createdAt": "2026-06-01T12:00:00Z", "startedAt": "2026-06-01T12:00:04Z", "runtime.uptime": 56.0,
		"cmd": []any{}, "entrypoint": []any{}, "ssh.proxy.port": 22.0,
	} {
		if diff := cmp.Diff(want, p.at(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if _, there := p.body["cpu"]; there {
		t.Error("a GPU pod shows cpu")
	}
}

// A pod that only sleeps reports no use, another some, and each what it is set to.
func TestPodUse(t *testing.T) {
	r := newRig(t, Options{})
	use := func(id string) (gpus []any, cpu any) {
		p := r.want(200, "GET", "/v2/pods/"+id, "")
		for _, g := range p.at("runtime.gpus").([]any) {
			gpus = append(gpus, g.(map[string]any)["util"])
		}
		return gpus, p.at("runtime.cpu.util")
	}
	idle := r.newPod(`{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4","count":2},"cmd":["sleep","infinity"]}`)
	busy := r.newPod(`{"name":"b","image":"img:1","gpu":{"id":"NVIDIA L4","count":2}}`)
	r.Clock().Advance(time.Minute)
	if gpus, cpu := use(idle); !cmp.Equal(gpus, []any{0.0, 0.0}) || cpu != 0.0 {
		t.Errorf("asleep: GPUs %v, CPU %v, want no use", gpus, cpu)
	}
	if gpus, _ := use(busy); gpus[1] == 0.0 {
		t.Errorf("busy: GPUs %v, want some use", gpus)
	}
	seven, nine := 7, 9
	if err := r.ChangePod(idle, PodChange{GPUUtil: &seven, CPUUtil: &nine}); err != nil {
		t.Fatal(err)
	}
	if gpus, cpu := use(idle); !cmp.Equal(gpus, []any{7.0, 7.0}) || cpu != 9.0 {
		t.Errorf("changed: GPUs %v, CPU %v, want 7 each and 9", gpus, cpu)
	}
}

func TestCreatePodRefusals(t *testing.T) {
	tests := []struct {
		name, body string
		status     int
		says       string
	}{
		{"no body", "", 400, "JSON body is required"},
		{"null", "null", 422, "$: expected object, but got null"},
		{"array", "[]", 422, "$: expected object, but got array"},
		{"truncated", `{"name":`, 400, "ends too early"},
		{"duplicate name", `{"name":"a","gpu":{"id":"x","id":"y"}}`, 400, "$.gpu.id: this name appears more than once"},
		{"byte order mark", "\ufeff{}", 400, "not valid JSON"},
		{"two values", gpuPod + "{}", 400, "text after"},
		{"not UTF-8", "{\"name\":\"\xff\"}", 400, "not valid JSON"},
		{"too deep", strings.Repeat("[", 200) + strings.Repeat("]", 200), 400, "nested deeper"},
		{"empty object", `{}`, 422, "$: missing property 'name'"},
		{"other case", `{"Name":"a","image":"i","gpu":{"id":"NVIDIA L4"}}`, 422, "additional properties 'Name' not allowed"},
		{"unknown member", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"bogus":1}`, 422, "$: additional properties 'bogus' not allowed"},
		{"unknown gpu member", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","x":1}}`, 422, "$.gpu: additional properties 'x' not allowed"},
		{"empty name", `{"name":"","image":"i","gpu":{"id":"NVIDIA L4"}}`, 422, "$.name: must be 1 characters or longer"},
		{"no image", `{"name":"a","gpu":{"id":"NVIDIA L4"}}`, 422, "missing property 'image'"},
		{"count zero", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":0}}`, 422, "$.gpu.count: must be 1 or more, but got 0"},
		{"count text", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":"1"}}`, 422, "$.gpu.count: expected integer, but got string"},
		{"count fraction", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":1.5}}`, 422, "$.gpu.count: expected integer, but got number"},
		{"count huge", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":1e400}}`, 422, "$.gpu.count"},
		{"bare major", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","minCudaVersion":"12"}}`, 422, "$.gpu.minCudaVersion"},
		{"env number", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"env":{"A":1}}`, 422, "$.env.A: expected string, but got integer"},
		{"mount incomplete", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"mounts":{"persistent":{"size":20}}}`, 422, "$.mounts.persistent: missing property 'path'"},
		{"two network mounts", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"mounts":{"network":[{"volumeId":"a","path":"/"},{"volumeId":"b","path":"/"}]}}`, 422, "1 item or fewer"},
		{"cloud", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"cloud":"ALL"}`, 422, "$.cloud: must be one of SECURE, COMMUNITY"},
		{"unknown template", `{"name":"a","templateId":"nope","gpu":{"id":"NVIDIA L4"}}`, 404, "template not found"},
		{"serverless template", `{"name":"a","templateId":"tplworker1","gpu":{"id":"NVIDIA L4"}}`, 422, "$.templateId"},
		{"neither", `{"name":"a","image":"i"}`, 400, "exactly one of gpu and cpu"},
		{"both", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"cpu":{"id":"cpu3c","vcpuCount":2}}`, 400, "exactly one of gpu and cpu"},
		{"both CUDA constraints", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","allowedCudaVersions":["12.8"],"minCudaVersion":"12.4"}}`, 400, "exclude each other"},
		{"both mounts", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"mounts":{"persistent":{"size":20,"path":"/a"},"network":[{"volumeId":"v","path":"/b"}]}}`, 400, "exclude each other"},
		{"persistent on CPU", `{"name":"a","image":"i","cpu":{"id":"cpu3c","vcpuCount":2},"mounts":{"persistent":{"size":20,"path":"/a"}}}`, 400, "CPU pods"},
		{"vCPU not a power of two", `{"name":"a","image":"i","cpu":{"id":"cpu3c","vcpuCount":6}}`, 400, "power of two"},
		{"vCPU outside flavor", `{"name":"a","image":"i","cpu":{"id":"cpu3c","vcpuCount":64}}`, 400, "from 2 to 32"},
		{"port", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"ports":["53/udp"]}`, 400, "$.ports[0]"},
		{"command disagrees", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"args":"a b","cmd":["a","c"]}`, 400, "different commands"},
		{"unknown GPU", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L5"}}`, 400, "NVIDIA L5"},
		{"unknown data center", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"dataCenterIds":["XX-1"]}`, 400, "XX-1"},
		{"not in that cloud", `{"name":"a","image":"i","gpu":{"id":"NVIDIA A30"}}`, 400, noCapacity},
		{"above the ceiling", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":9}}`, 400, noCapacity},
		{"no such CUDA", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","allowedCudaVersions":["9.9"]}}`, 400, noCapacity},
		{"no such host", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","minRamPerGpu":51}}`, 400, noCapacity},
		{"global networking on AMD", `{"name":"a","image":"i","gpu":{"id":"AMD Instinct MI300X OAM"},"globalNetworking":true}`, 400, "NVIDIA GPU"},
		{"too dear", `{"name":"a","image":"i","gpu":{"id":"NVIDIA B200","count":8}}`, 402, "insufficient balance"},
	}
	r := newRig(t, Options{Accounts: []Account{{ID: "a", Key: DefaultKey, Balance: 20}}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := (&rig{Server: r.Server, t: t, key: r.key}).call("POST", "/v2/pods", tt.body)
			if a.status != tt.status || !strings.Contains(a.raw, tt.says) {
				t.Errorf("got %d %s\nwant %d with %q", a.status, a.raw, tt.status, tt.says)
			}
			if got := a.header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("got content type %q", got)
			}
			if a.at("status") != float64(tt.status) || a.text("title") == "" || a.text("detail") == "" {
				t.Errorf("incomplete problem: %s", a.raw)
			}
		})
	}
	if got := r.want(200, "GET", "/v2/pods", "").raw; got != empty("pods") {
		t.Errorf("a refused create left a pod: %s", got)
	}
}

func TestActionsByStatus(t *testing.T) {
	tests := []struct{ status, action, want string }{
		{"PROVISIONING", "start", "409"},
		{"PROVISIONING", "stop", "EXITED"},
		{"PROVISIONING", "restart", "409"},
		{"STARTING", "start", "409"},
		{"STARTING", "stop", "EXITED"},
		{"STARTING", "restart", "409"},
		{"RUNNING", "start", "409"},
		{"RUNNING", "stop", "EXITED"},
		{"RUNNING", "restart", "RUNNING"},
		{"EXITED", "start", "STARTING"},
		{"EXITED", "stop", "409"},
		{"EXITED", "restart", "409"},
		{"ERROR", "start", "STARTING"},
		{"ERROR", "stop", "409"},
		{"ERROR", "restart", "409"},
	}
	for _, tt := range tests {
		t.Run(tt.status+" "+tt.action, func(t *testing.T) {
			r := newRig(t, Options{})
			id := r.newPod(gpuPod)
			switch tt.status {
			case "STARTING":
				r.Clock().Advance(2 * time.Second)
			case "RUNNING", "EXITED", "ERROR":
				if err := r.setPodStatus(id, tt.status); err != nil {
					t.Fatal(err)
				}
			}
			a := r.call("POST", "/v2/pods/"+id+"/action", `{"action":"`+tt.action+`"}`)
			got := a.text("status")
			if a.status != 200 {
				got = "409"
			}
			if got != tt.want || a.status != 200 && a.status != 409 {
				t.Errorf("got %d %s, want %s", a.status, a.raw, tt.want)
			}
		})
	}
	r := newRig(t, Options{})
	id := r.newPod(gpuPod)
	r.want(422, "POST", "/v2/pods/"+id+"/action", `{"action":"reset"}`)
	r.want(422, "POST", "/v2/pods/"+id+"/action", `{"action":"stop","force":true}`)
	r.want(404, "POST", "/v2/pods/nope/action", `{"action":"stop"}`)
	r.want(200, "PATCH", "/v2/pods/"+id, `{"locked":true}`)
	r.want(409, "POST", "/v2/pods/"+id+"/action", `{"action":"stop"}`)
}

func TestUpdatePod(t *testing.T) {
	r := newRig(t, Options{})
	id := r.newPod(`{"name":"a","image":"i","args":"run --x 'y z'","env":{"A":"1","B":"2"},"gpu":{"id":"NVIDIA L4"},"mounts":{"persistent":{"size":20,"path":"/data"}}}`)
	tests := []struct {
		name, body string
		status     int
		path       string
		want       any
	}{
		{"nothing", `{}`, 200, "cmd", []any{"run", "--x", "y z"}},
		{"name", `{"name":"b"}`, 200, "name", "b"},
		{"env replaces", `{"env":{"C":"3"}}`, 200, "env", map[string]any{"C": "3"}},
		{"cmd alone", `{"cmd":["serve"]}`, 200, "args", `{"cmd":["serve"]}`},
		{"entrypoint keeps cmd", `{"entrypoint":["/bin/sh"]}`, 200, "args", `{"entrypoint":["/bin/sh"],"cmd":["serve"]}`},
		{"args clears", `{"args":""}`, 200, "entrypoint", []any{}},
		{"args as JSON", `{"args":"{\"entrypoint\":[\"a\"],\"cmd\":[\"b\"]}","cmd":["b"]}`, 200, "entrypoint", []any{"a"}},
		{"mount grows", `{"mounts":{"persistent":{"size":30,"path":"/d"}}}`, 200, "mounts.persistent.size", 30.0},
		{"mounts left alone", `{"mounts":{}}`, 200, "mounts.persistent.path", "/d"},
		{"mount shrinks", `{"mounts":{"persistent":{"size":10,"path":"/d"}}}`, 400, "", nil},
		{"mount kind added", `{"mounts":{"network":[{"volumeId":"v","path":"/d"}]}}`, 400, "", nil},
		{"empty network", `{"mounts":{"network":[]}}`, 400, "", nil},
		{"mount incomplete", `{"mounts":{"persistent":{"path":"/d"}}}`, 422, "", nil},
		{"gpu", `{"gpu":{"id":"NVIDIA L4"}}`, 422, "", nil},
		{"startSsh", `{"startSsh":true}`, 422, "", nil},
		{"unknown template", `{"templateId":"nope"}`, 404, "", nil},
		{"serverless template", `{"templateId":"tplworker1"}`, 422, "", nil},
		{"template", `{"templateId":"tplubuntu1","env":{"X":"1"}}`, 200, "env", map[string]any{"LANG": "C.UTF-8", "X": "1"}},
		{"unknown registry", `{"registry":"nope"}`, 400, "", nil},
		{"registry cleared", `{"registry":null}`, 200, "registry", nil},
		{"ports cleared", `{"ports":[]}`, 200, "ports", []any{}},
	}
	for _, tt := range tests {
		a := r.want(tt.status, "PATCH", "/v2/pods/"+id, tt.body)
		if tt.status == 200 {
			if diff := cmp.Diff(tt.want, a.at(tt.path)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", tt.name, tt.path, diff)
			}
		}
	}
}

func TestTemplateOnCreate(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{{ID: "a", Key: DefaultKey, SSHKeys: []string{"ssh-ed25519 AAAA me"}}}})
	p := r.want(201, "POST", "/v2/pods", `{"name":"a","templateId":"tplpytorch","env":{"A":"1"},"gpu":{"id":"NVIDIA L4"},"startJupyter":false}`)
	want := map[string]any{"A": "1", "PUBLIC_KEY": "ssh-ed25519 AAAA me"}
	if diff := cmp.Diff(want, p.at("env")); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	if got := p.text("cudaVersion"); got != "12.8" && got != "13.0" {
		t.Errorf("cudaVersion: got %q, want one the template allows", got)
	}
	if got := p.at("mounts.persistent.size"); got != 20.0 {
		t.Errorf("persistent mount of the template: got %v", got)
	}
	if got := p.at("template"); got != nil {
		t.Errorf("template: got %v, want null", got)
	}
	other := r.want(201, "POST", "/v2/pods", `{"name":"a","templateId":"tplpytorch","gpu":{"id":"NVIDIA L4","allowedCudaVersions":["12.4"]}}`)
	if got := other.text("cudaVersion"); got != "12.4" {
		t.Errorf("the body's CUDA constraint replaces the template's: got %q", got)
	}
	if other.text("env.JUPYTER_PASSWORD") == "" {
		t.Error("startJupyter of the template: no JUPYTER_PASSWORD")
	}
	cpu := r.want(201, "POST", "/v2/pods", `{"name":"a","templateId":"tplpytorch","cpu":{"id":"cpu5c-4-8","vcpuCount":4}}`)
	if diff := cmp.Diff(map[string]any{"id": "cpu5c", "vcpuCount": 4.0, "memory": 8.0}, cpu.at("cpu")); diff != "" {
		t.Errorf("cpu (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{}, cpu.at("mounts")); diff != "" {
		t.Errorf("a CPU pod took the template's mount (-want +got):\n%s", diff)
	}
}

func TestExpandedRequestTooLarge(t *testing.T) {
	c := DefaultCatalog()
	c.Templates = append(c.Templates, PublicTemplate{ID: "tplbig", Source: "official", Image: "i", Env: map[string]string{"A": strings.Repeat("a", 60_000)}})
	r := newRig(t, Options{Catalog: c})
	body := func(n int) string {
		return `{"name":"a","templateId":"tplbig","gpu":{"id":"NVIDIA L4"},"env":{"B":"` + strings.Repeat("b", n) + `"}}`
	}
	if a := r.want(413, "POST", "/v2/pods", body(60_000)); !strings.Contains(a.text("detail"), "expanded request") {
		t.Errorf("got %s", a.raw)
	}
	r.want(201, "POST", "/v2/pods", body(100))
}

func TestStockRunsOut(t *testing.T) {
	r := newRig(t, Options{})
	if err := r.SetStock("NVIDIA L4", "SECURE", "", 0); err != nil {
		t.Fatal(err)
	}
	if err := r.SetStock("NVIDIA L4", "SECURE", "CA-MTL-1", 2); err == nil {
		t.Error("stock was set where there is none")
	}
	level := func() string {
		return r.want(200, "GET", "/v2/catalog/gpus/NVIDIA%20L4?include=AVAILABILITY&product=POD", "").text("availability")
	}
	if got := level(); got != "NONE" {
		t.Errorf("availability of empty stock: got %s", got)
	}
	dc := r.catalog.gpus["NVIDIA L4"].DataCenters[0]
	if err := r.SetStock("NVIDIA L4", "SECURE", dc, 2); err != nil {
		t.Fatal(err)
	}
	body := `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"}}`
	first := r.newPod(body)
	r.newPod(body)
	a := r.want(400, "POST", "/v2/pods", body)
	if _, there := a.body["errors"]; there || a.text("detail") != noCapacity {
		t.Errorf("exhaustion is a 400 with a detail alone, got %s", a.raw)
	}
	r.want(200, "POST", "/v2/pods/"+first+"/action", `{"action":"stop"}`)
	r.newPod(body)
	r.want(400, "POST", "/v2/pods/"+first+"/action", `{"action":"start"}`)
	r.want(204, "DELETE", "/v2/pods/"+first, "")
	r.want(400, "POST", "/v2/pods", body)
}

func TestMoneyRunsOut(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{{ID: "a", Key: DefaultKey, Balance: 1}}})
	id := r.newPod(gpuPod)
	left, perHour, err := r.Balance("a")
	if err != nil || left != 1 || perHour < 0.44 || perHour > 0.45 {
		t.Errorf("got balance %v, %v per hour, %v; want 1, 0.44 and the disk", left, perHour, err)
	}
	r.want(402, "POST", "/v2/pods", strings.Replace(gpuPod, `4090"`, `4090","count":3`, 1))
	r.Clock().Advance(time.Hour)
	if left, _, _ := r.Balance("a"); left < 0.55 || left > 0.56 {
		t.Errorf("balance after an hour: got %v, want about 0.56", left)
	}
	r.Clock().Advance(2 * time.Hour)
	r.want(404, "GET", "/v2/pods/"+id, "")
	r.want(402, "POST", "/v2/pods", gpuPod)
	if left, perHour, _ := r.Balance("a"); left != 0 || perHour != 0 {
		t.Errorf("after the money ran out: got balance %v, %v per hour, want 0 and 0", left, perHour)
	}
	if err := r.SetBalance("a", 10); err != nil {
		t.Fatal(err)
	}
	r.newPod(gpuPod)
}
