package v1

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
)

func created(gpu string) answer {
	pod := merge(fixture("newPod"), map[string]any{"gpu": map[string]any{"id": gpu}})
	return answer{op: "createPod", status: 201, body: pod}
}

func refusedWith(status int, detail string) answer {
	return answer{op: "createPod", status: status, body: map[string]any{"title": "t", "detail": detail}}
}

// gpus lists the GPU of each create call.
func (p *platform) gpus() string {
	var list []string
	for _, body := range p.bodies("createPod") {
		list = append(list, strings.TrimPrefix(translate.Text(body, "gpu", "id")+translate.Text(body, "cpu", "id"), "NVIDIA "))
	}
	return strings.Join(list, ", ")
}

const short = "There are no longer any instances available with the requested specifications."

const threeCustom = `{"imageName":"img:1","gpuTypePriority":"custom","gpuTypeIds":["NVIDIA H100 80GB HBM3","NVIDIA GeForce RTX 4090","NVIDIA L4"]}`

func TestCreatePodCandidates(t *testing.T) {
	limited := answer{op: "createPod", status: 429, header: http.Header{"Retry-After": {"1"}}, body: map[string]any{"detail": "slow"}}
	broke := answer{op: "createPod", status: 500}
	tests := map[string]struct {
		body    string
		script  []answer
		status  int
		text    string
		gpus    string
		warning string
	}{
		"third of three": {
			threeCustom,
			[]answer{refusedWith(400, short), refusedWith(400, short), created("NVIDIA L4")},
			201, "", "H100 80GB HBM3, GeForce RTX 4090, L4", "",
		},
		"by availability": {
			strings.Replace(threeCustom, "custom", "availability", 1),
			[]answer{refusedWith(400, short), refusedWith(400, short), created("NVIDIA H100 80GB HBM3")},
			201, "", "L4, GeForce RTX 4090, H100 80GB HBM3", "",
		},
		"402 ends it": {
			threeCustom,
			[]answer{refusedWith(402, "no money")},
			402, "create pod: Your account balance is too low to rent a pod. Please add funds to your account.", "H100 80GB HBM3", "",
		},
		"403 skips": {
			threeCustom,
			[]answer{refusedWith(403, "gpu-allow-list: H100 is not allowed"), created("NVIDIA GeForce RTX 4090")},
			201, "", "H100 80GB HBM3, GeForce RTX 4090",
			"gpuTypeIds: skipped NVIDIA H100 80GB HBM3: Forbidden: gpu-allow-list: H100 is not allowed",
		},
		"403 for all": {
			threeCustom,
			[]answer{refusedWith(403, "a"), refusedWith(403, "b"), refusedWith(403, "c")},
			403, "Forbidden: c", "H100 80GB HBM3, GeForce RTX 4090, L4", "gpuTypeIds: skipped NVIDIA H100 80GB HBM3: Forbidden: a",
		},
		"422 ends it": {
			threeCustom,
			[]answer{{op: "createPod", status: 422, body: map[string]any{"detail": "v", "errors": []any{"$.disk: too big"}}}},
			400, "Invalid request body", "H100 80GB HBM3", "",
		},
		"shortage": {
			threeCustom,
			[]answer{refusedWith(400, short), refusedWith(400, short), refusedWith(400, short)},
			500, "create pod: There are no instances currently available", "H100 80GB HBM3, GeForce RTX 4090, L4", "",
		},
		"shortage and over budget": {
			threeCustom,
			[]answer{
				refusedWith(400, short),
				{op: "createPod", status: 402, body: map[string]any{"detail": "budget exceeded", "decision": "01D"}},
				refusedWith(400, short),
			},
			402, "create pod: budget exceeded", "H100 80GB HBM3, GeForce RTX 4090, L4",
			"gpuTypeIds: skipped NVIDIA GeForce RTX 4090: budget exceeded",
		},
		"rule violation twice": {
			threeCustom,
			[]answer{refusedWith(400, "bad ports"), refusedWith(400, "bad ports")},
			400, "bad ports", "H100 80GB HBM3, GeForce RTX 4090", "",
		},
		"429 repeats the same": {
			threeCustom,
			[]answer{limited, created("NVIDIA H100 80GB HBM3")},
			201, "", "H100 80GB HBM3, H100 80GB HBM3", "",
		},
		"500 500 201": {
			threeCustom,
			[]answer{broke, broke, created("NVIDIA H100 80GB HBM3")},
			201, "", "H100 80GB HBM3, H100 80GB HBM3, H100 80GB HBM3", "",
		},
		"unknown type skipped": {
			`{"imageName":"img:1","gpuTypeIds":["NVIDIA TitanX","NVIDIA L4"]}`,
			[]answer{created("NVIDIA L4")},
			201, "", "L4", "gpuTypeIds: ignored NVIDIA TitanX, which is not in the catalog",
		},
		"all types unknown": {
			`{"imageName":"img:1","gpuTypeIds":["NVIDIA TitanX"]}`, nil,
			400, "gpuTypeIds: NVIDIA TitanX is not in the catalog", "", "gpuTypeIds: ignored NVIDIA TitanX, which is not in the catalog",
		},
		"short names": {
			`{"imageName":"img:1","gpuTypeIds":["L4","NVIDIA L40"]}`, nil,
			400, "gpuTypeIds: L4 is not in the catalog; did you mean NVIDIA L4?, NVIDIA L40 is not in the catalog", "",
			"gpuTypeIds: ignored L4, which is not in the catalog; did you mean NVIDIA L4?",
		},
		"a short name beside an id": {
			`{"imageName":"img:1","gpuTypeIds":["RTX 4090","NVIDIA L4"]}`,
			[]answer{created("NVIDIA L4")},
			201, "", "L4", "gpuTypeIds: ignored RTX 4090, which is not in the catalog; did you mean NVIDIA GeForce RTX 4090?",
		},
		"no types: cheapest first": {
			`{"imageName":"img:1"}`,
			[]answer{refusedWith(400, short), refusedWith(400, short), refusedWith(400, short), refusedWith(400, short)},
			500, "create pod: There are no instances currently available", "RTX A5000, L4, GeForce RTX 4090, H100 80GB HBM3", "",
		},
		"no types on the community cloud": {
			`{"imageName":"img:1","cloudType":"COMMUNITY","gpuCount":5}`,
			[]answer{refusedWith(400, short), created("NVIDIA H100 80GB HBM3")},
			201, "", "RTX A5000, H100 80GB HBM3", "",
		},
		"template unknown": {
			`{"templateId":"nope","gpuTypeIds":["NVIDIA L4"]}`,
			[]answer{refusedWith(404, "resource not found")},
			400, `template "nope" not found`, "L4", "",
		},
		"spot": {`{"imageName":"i","interruptible":true}`, nil, 400, "create pod: Spot pods are no longer offered", "", ""},
		"cpu by flavour": {
			`{"imageName":"img:1","cpuFlavorIds":["cpu3c","cpu5c"],"vcpuCount":3}`,
			[]answer{refusedWith(400, short), created("x")},
			201, "", "cpu5c, cpu3c", "vcpuCount: raised to 4, the next power of two",
		},
		"cpu in order": {
			`{"imageName":"img:1","computeType":"CPU","cpuFlavorIds":["cpu3c-2-4","cpu5c"],"cpuFlavorPriority":"custom"}`,
			[]answer{refusedWith(400, short), created("x")},
			201, "", "cpu3c, cpu5c", "",
		},
		"cpu flavour too small": {
			`{"imageName":"img:1","cpuFlavorIds":["cpu3c","cpu5c"],"vcpuCount":32}`,
			[]answer{created("x")},
			201, "", "cpu5c", "cpuFlavorIds: ignored cpu3c, which is not available with 32 vCPUs",
		},
		"cpu without flavours": {
			`{"imageName":"img:1","computeType":"CPU"}`,
			[]answer{refusedWith(400, short), refusedWith(400, short), created("x")},
			201, "", "cpu3c, cpu5c, cpu3g", "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, DefaultConfig(), tt.script...)
			got := g.do(t, "POST /v1/pods", tt.body)
			if got.Status != tt.status || got.text("message") != tt.text {
				t.Errorf("answer %d %q, want %d %q", got.Status, got.text("message"), tt.status, tt.text)
			}
			if gpus := g.gpus(); gpus != tt.gpus {
				t.Errorf("tried %q, want %q", gpus, tt.gpus)
			}
			first := ""
			if len(got.Warnings) > 0 {
				first = got.Warnings[0]
			}
			if first != tt.warning {
				t.Errorf("warning %q, want %q", first, tt.warning)
			}
			if len(g.script) > 0 {
				t.Errorf("calls not made: %+v", g.script)
			}
		})
	}
}

func TestCreatePodWaitsForRetryAfter(t *testing.T) {
	g := newGate(
		t, DefaultConfig(),
		answer{op: "createPod", status: 429, header: http.Header{"Retry-After": {"3"}}}, created("NVIDIA L4"),
	)
	g.do(t, "POST /v1/pods", `{"imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`)
	var at []time.Duration
	for _, call := range g.calls {
		if call.op == "createPod" {
			at = append(at, call.at)
		}
	}
	if diff := cmp.Diff([]time.Duration{0, 3 * time.Second}, at); diff != "" {
		t.Errorf("create calls at (-want +got):\n%s", diff)
	}
}

func TestCreatePodGivesUpWithRetryAfter(t *testing.T) {
	g := newGate(t, DefaultConfig(), answer{
		op: "createPod", status: 429, header: http.Header{"Retry-After": {"60"}}, body: map[string]any{"detail": "minute window"},
	})
	got := g.do(t, "POST /v1/pods", `{"imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`)
	if got.Status != 429 || got.Header.Get("Retry-After") != "60" || got.text("message") != "minute window" {
		t.Errorf("answer %d %q %v, want 429 with Retry-After 60", got.Status, got.Body, got.Header)
	}
}

// TestCreatePodDefaults is the body of the smallest useful request.
func TestCreatePodDefaults(t *testing.T) {
	g := newGate(t, DefaultConfig(), created("NVIDIA L4"))
	g.do(t, "POST /v1/pods", `{"imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`)
	want := mustJSON(`{"name":"my pod","image":"img:1","cloud":"SECURE","disk":50,"ports":["8888/http","22/tcp"],"startSsh":true,
		"mounts":{"persistent":{"size":20,"path":"/workspace"}},
		"gpu":{"id":"NVIDIA L4","count":1,"minRamPerGpu":8,"minVcpuCountPerGpu":2}}`)
	if diff := cmp.Diff([]any{want}, g.bodies("createPod")); diff != "" {
		t.Errorf("v2 body (-want +got):\n%s", diff)
	}
}

func TestCreatePodBodies(t *testing.T) {
	template := answer{op: "getTemplate", status: 200, body: fixture("template")}
	volume := answer{op: "getNetworkVolume", status: 200, body: fixture("volume")}
	const gpu = `"gpu":{"id":"NVIDIA L4","count":1,"minRamPerGpu":8,"minVcpuCountPerGpu":2}`
	tests := map[string]struct {
		body   string
		script []answer
		note   string // lookup template t1
		want   string
	}{
		"template alone": {
			body: `{"templateId":"t1"}`,
			want: `{"name":"my pod","templateId":"t1","cloud":"SECURE",` + gpu + `}`,
		},
		"template without its volume": {
			body: `{"templateId":"t1","volumeInGb":0,"env":{"B":true}}`, script: []answer{template},
			want: `{"name":"my pod","image":"tpl:1","args":"{\"entrypoint\":[\"sh\"],\"cmd\":[\"-c\",\"run\"]}","disk":30,"ports":["80/http"],
				"env":{"T":"1","B":"true"},"startSsh":true,"cloud":"SECURE",` + gpu + `}`,
		},
		"template without its volume, half a command": {
			body: `{"templateId":"t1","volumeInGb":0,"dockerStartCmd":["x"]}`, script: []answer{template},
			want: `{"name":"my pod","image":"tpl:1","entrypoint":["sh"],"cmd":["x"],"disk":30,"ports":["80/http"],
				"env":{"T":"1"},"startSsh":true,"cloud":"SECURE",` + gpu + `}`,
		},
		"template whose volume was taken off": {
			body: `{"templateId":"t1"}`, script: []answer{template}, note: `{"noVolume":true}`,
			want: `{"name":"my pod","image":"tpl:1","args":"{\"entrypoint\":[\"sh\"],\"cmd\":[\"-c\",\"run\"]}","disk":30,"ports":["80/http"],
				"env":{"T":"1"},"startSsh":true,"cloud":"SECURE",` + gpu + `}`,
		},
		"path alone with a template": {
			body: `{"templateId":"t1","volumeMountPath":"/x"}`, script: []answer{template},
			want: `{"name":"my pod","templateId":"t1","cloud":"SECURE","mounts":{"persistent":{"size":40,"path":"/x"}},` + gpu + `}`,
		},
		"size with a template": {
			body: `{"templateId":"t1","volumeInGb":5,"containerDiskInGb":7,"imageName":"o","ports":[],"dockerEntrypoint":[],"containerRegistryAuthId":""}`,
			want: `{"name":"my pod","templateId":"t1","image":"o","cloud":"SECURE","disk":7,"ports":[],"entrypoint":[],"registry":null,
				"mounts":{"persistent":{"size":10,"path":"/workspace"}},` + gpu + `}`,
		},
		"network volume pins": {
			body: `{"imageName":"i","networkVolumeId":"v1","volumeMountPath":"/data","ports":[]}`, script: []answer{volume},
			want: `{"name":"my pod","image":"i","cloud":"SECURE","disk":50,"ports":[],"dataCenterIds":["EU-RO-1"],
				"mounts":{"network":[{"volumeId":"v1","path":"/data"}]},` + gpu + `}`,
		},
		"no volume": {
			body: `{"imageName":"i","volumeInGb":0,"ports":"80/http"}`,
			want: `{"name":"my pod","image":"i","cloud":"SECURE","disk":50,"ports":["80/http"],` + gpu + `}`,
		},
		"commands": {
			body: `{"imageName":"i","volumeInGb":0,"ports":[],"dockerEntrypoint":["sh"],"dockerStartCmd":["-c","a b"]}`,
			want: `{"name":"my pod","image":"i","cloud":"SECURE","disk":50,"ports":[],"entrypoint":["sh"],"cmd":["-c","a b"],` + gpu + `}`,
		},
		"docker args": {
			body: `{"imageName":"i","volumeInGb":0,"ports":[],"dockerArgs":"python x.py"}`,
			want: `{"name":"my pod","image":"i","cloud":"SECURE","disk":50,"ports":[],"args":"python x.py",` + gpu + `}`,
		},
		"both cuda constraints": {
			body: `{"imageName":"i","volumeInGb":0,"ports":[],"allowedCudaVersions":["12.2","12.11"],"minCudaVersion":"12.8"}`,
			want: `{"name":"my pod","image":"i","cloud":"SECURE","disk":50,"ports":[],
				"gpu":{"id":"NVIDIA L4","count":1,"minRamPerGpu":8,"minVcpuCountPerGpu":2,"allowedCudaVersions":["12.11"]}}`,
		},
		"no cuda constraint over a template's": {
			body: `{"templateId":"t1","allowedCudaVersions":[]}`,
			want: `{"name":"my pod","templateId":"t1","cloud":"SECURE",
				"gpu":{"id":"NVIDIA L4","count":1,"minRamPerGpu":8,"minVcpuCountPerGpu":2,"allowedCudaVersions":[]}}`,
		},
		"nulls are absent": {
			body: `{"imageName":"i","volumeInGb":null,"ports":null,"env":null,"templateId":"","name":"","minRAMPerGPU":0,"minVCPUPerGPU":-1,"containerDiskInGb":0}`,
			want: `{"name":"my pod","image":"i","cloud":"SECURE","disk":50,"ports":["8888/http","22/tcp"],"startSsh":true,
				"mounts":{"persistent":{"size":20,"path":"/workspace"}},"gpu":{"id":"NVIDIA L4","count":1}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, DefaultConfig(), append(tt.script, created("NVIDIA L4"))...)
			g.defaults["getTemplate"] = fixture("template")
			if tt.note != "" {
				g.remember(t, translate.KindTemplate, "t1", tt.note)
			}
			body := merge(mustJSON(`{"gpuTypeIds":["NVIDIA L4"]}`), mustJSON(tt.body))
			maps.Copy(body.(map[string]any), mustJSON(tt.body).(map[string]any)) // keep nulls
			got := g.do(t, "POST /v1/pods", indent(body))
			if got.Status != 201 {
				t.Fatalf("answer %d %s", got.Status, got.Body)
			}
			if diff := cmp.Diff([]any{mustJSON(tt.want)}, g.bodies("createPod")); diff != "" {
				t.Errorf("v2 body (-want +got):\n%s", diff)
			}
		})
	}
}
