package v1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
)

// trial is a value to try a field with.
type trial struct {
	// with is the body laid over the base; its field is the one on trial.
	with string
	// base replaces the operation's usual body, or names the endpoint there is.
	base string
	// handling is how the field is translated.
	handling
}

// handling describes how an input field is translated.
type handling int

// Every field of every input has one of these.
const (
	mapped   handling = iota // has an equivalent in v2
	emulated                 // achieved by other calls or by stored data
	warned                   // not sent; the response has a warning
	refused                  // a value that requests a removed feature gets a 400
)

func (h handling) String() string {
	return [...]string{"mapped", "emulated", "warned", "refused"}[h]
}

// trials hold one value for every input field of every body. A field without a
// trial fails TestEveryInputFieldIsHandled.
var trials = map[string]map[string]trial{
	"createPod": {
		"name": {with: `{"name":"x"}`}, "imageName": {with: `{"imageName":"x"}`},
		"templateId": {with: `{"templateId":"t1"}`}, "computeType": {with: `{"computeType":"CPU"}`},
		"cloudType": {with: `{"cloudType":"COMMUNITY"}`}, "gpuTypeIds": {with: `{"gpuTypeIds":["NVIDIA L4"]}`},
		"gpuTypePriority": {with: `{"gpuTypePriority":"custom"}`, base: `{"imageName":"i","gpuTypeIds":["NVIDIA H100 80GB HBM3","NVIDIA L4"]}`, handling: emulated}, "gpuCount": {with: `{"gpuCount":2}`},
		"allowedCudaVersions": {with: `{"allowedCudaVersions":["12.4"]}`}, "minCudaVersion": {with: `{"minCudaVersion":"12.4"}`},
		"minRAMPerGPU": {with: `{"minRAMPerGPU":32}`}, "minVCPUPerGPU": {with: `{"minVCPUPerGPU":4}`},
		"minDownloadMbps": {with: `{"minDownloadMbps":1.5}`, handling: warned}, "minUploadMbps": {with: `{"minUploadMbps":1}`, handling: warned},
		"minDiskBandwidthMBps": {with: `{"minDiskBandwidthMBps":1}`, handling: warned},
		"countryCodes":         {with: `{"countryCodes":["SE"]}`, handling: emulated}, "dataCenterIds": {with: `{"dataCenterIds":["EU-SE-1"]}`},
		"dataCenterPriority": {with: `{"dataCenterPriority":"custom"}`, base: `{"imageName":"i","gpuTypeIds":["NVIDIA L4"],"dataCenterIds":["EU-SE-1","EU-RO-1"]}`, handling: emulated},
		"containerDiskInGb":  {with: `{"containerDiskInGb":7}`}, "volumeInGb": {with: `{"volumeInGb":30}`},
		"volumeMountPath": {with: `{"volumeMountPath":"/x"}`},
		"networkVolumeId": {with: `{"networkVolumeId":"v1"}`}, "ports": {with: `{"ports":["1/tcp"]}`}, "env": {with: `{"env":{"A":"b"}}`},
		"dockerEntrypoint": {with: `{"dockerEntrypoint":["sh"]}`}, "dockerStartCmd": {with: `{"dockerStartCmd":["x"]}`},
		"dockerArgs": {with: `{"dockerArgs":"x"}`}, "containerRegistryAuthId": {with: `{"containerRegistryAuthId":"reg1"}`},
		"globalNetworking": {with: `{"globalNetworking":true}`}, "locked": {with: `{"locked":true}`, handling: emulated},
		"interruptible":     {with: `{"interruptible":true}`, handling: refused},
		"supportPublicIp":   {with: `{"supportPublicIp":true}`, base: `{"imageName":"i","cloudType":"COMMUNITY"}`, handling: warned},
		"cpuFlavorIds":      {with: `{"cpuFlavorIds":["cpu3g"]}`, base: `{"imageName":"i","computeType":"CPU"}`},
		"cpuFlavorPriority": {with: `{"cpuFlavorPriority":"custom"}`, base: `{"imageName":"i","cpuFlavorIds":["cpu3c","cpu5c"]}`, handling: emulated},
		"vcpuCount":         {with: `{"vcpuCount":8}`, base: `{"imageName":"i","computeType":"CPU"}`},
		"startSsh":          {with: `{"startSsh":false}`}, "startJupyter": {with: `{"startJupyter":true}`},
	},
	"updatePod": {
		"name": {with: `{"name":"x"}`}, "imageName": {with: `{"imageName":"x"}`}, "containerDiskInGb": {with: `{"containerDiskInGb":9}`},
		"volumeInGb": {with: `{"volumeInGb":30}`}, "volumeMountPath": {with: `{"volumeMountPath":"/x"}`}, "ports": {with: `{"ports":[]}`},
		"env": {with: `{"env":{}}`}, "dockerEntrypoint": {with: `{"dockerEntrypoint":[]}`}, "dockerStartCmd": {with: `{"dockerStartCmd":["x"]}`},
		"containerRegistryAuthId": {with: `{"containerRegistryAuthId":""}`}, "globalNetworking": {with: `{"globalNetworking":false}`},
		"locked": {with: `{"locked":true}`},
	},
	"createEndpoint": {
		"templateId": {with: `{"templateId":"t9"}`}, "name": {with: `{"name":"x"}`},
		"computeType": {with: `{"computeType":"CPU"}`}, "gpuTypeIds": {with: `{"gpuTypeIds":["NVIDIA L4"]}`}, "gpuCount": {with: `{"gpuCount":2}`},
		"allowedCudaVersions": {with: `{"allowedCudaVersions":["12.4"]}`}, "minCudaVersion": {with: `{"minCudaVersion":"12.4"}`},
		"cpuFlavorIds": {with: `{"cpuFlavorIds":["cpu3g"]}`},
		"vcpuCount":    {with: `{"vcpuCount":8}`, base: `{"templateId":"t2","name":"n","computeType":"CPU"}`},
		"workersMin":   {with: `{"workersMin":1}`}, "workersMax": {with: `{"workersMax":9}`}, "idleTimeout": {with: `{"idleTimeout":9}`},
		"scalerType": {with: `{"scalerType":"REQUEST_COUNT"}`}, "scalerValue": {with: `{"scalerValue":9}`},
		"executionTimeoutMs": {with: `{"executionTimeoutMs":1}`}, "flashboot": {with: `{"flashboot":false}`},
		"dataCenterIds": {with: `{"dataCenterIds":["EU-SE-1"]}`}, "networkVolumeId": {with: `{"networkVolumeId":"v1"}`},
		"networkVolumeIds": {with: `{"networkVolumeIds":["v1","v2"]}`},
	},
	"updateEndpoint": {
		"templateId": {with: `{"templateId":"t9"}`}, "name": {with: `{"name":"x"}`}, "gpuTypeIds": {with: `{"gpuTypeIds":["NVIDIA L4"]}`},
		"gpuCount": {with: `{"gpuCount":2}`}, "allowedCudaVersions": {with: `{"allowedCudaVersions":["12.4"]}`},
		"minCudaVersion": {with: `{"minCudaVersion":"12.4"}`}, "cpuFlavorIds": {with: `{"cpuFlavorIds":["cpu3g"]}`, base: "cpuEndpoint"},
		"vcpuCount": {with: `{"vcpuCount":8}`, base: "cpuEndpoint"}, "workersMin": {with: `{"workersMin":1}`}, "workersMax": {with: `{"workersMax":9}`},
		"idleTimeout": {with: `{"idleTimeout":9}`}, "scalerType": {with: `{"scalerType":"REQUEST_COUNT"}`}, "scalerValue": {with: `{"scalerValue":9}`},
		"executionTimeoutMs": {with: `{"executionTimeoutMs":1}`}, "flashboot": {with: `{"flashboot":false}`}, "dataCenterIds": {with: `{"dataCenterIds":[]}`},
		"networkVolumeId": {with: `{"networkVolumeId":""}`}, "networkVolumeIds": {with: `{"networkVolumeIds":["v2"]}`},
	},
	"createTemplate": {
		"name": {with: `{"name":"x"}`}, "imageName": {with: `{"imageName":"x"}`}, "category": {with: `{"category":"AMD"}`},
		"isServerless": {with: `{"isServerless":true}`}, "containerDiskInGb": {with: `{"containerDiskInGb":9}`}, "volumeInGb": {with: `{"volumeInGb":0}`},
		"volumeMountPath": {with: `{"volumeMountPath":"/x"}`}, "ports": {with: `{"ports":[]}`}, "env": {with: `{"env":{"A":"b"}}`},
		"dockerEntrypoint": {with: `{"dockerEntrypoint":["sh"]}`}, "dockerStartCmd": {with: `{"dockerStartCmd":["x"]}`},
		"containerRegistryAuthId": {with: `{"containerRegistryAuthId":"reg1"}`}, "isPublic": {with: `{"isPublic":true}`}, "readme": {with: `{"readme":"x"}`, handling: emulated},
	},
	"updateTemplate": {
		"name": {with: `{"name":"x"}`}, "imageName": {with: `{"imageName":"x"}`}, "containerDiskInGb": {with: `{"containerDiskInGb":9}`},
		"volumeInGb": {with: `{"volumeInGb":50}`}, "volumeMountPath": {with: `{"volumeMountPath":"/x"}`}, "ports": {with: `{"ports":[]}`},
		"env": {with: `{"env":{}}`}, "dockerEntrypoint": {with: `{"dockerEntrypoint":[]}`}, "dockerStartCmd": {with: `{"dockerStartCmd":["x"]}`},
		"containerRegistryAuthId": {with: `{"containerRegistryAuthId":""}`}, "isPublic": {with: `{"isPublic":true}`}, "readme": {with: `{"readme":"x"}`, handling: emulated},
	},
	"createNetworkVolume": {
		"name": {with: `{"name":"x"}`}, "size": {with: `{"size":77}`}, "dataCenterId": {with: `{"dataCenterId":"US-TX-3"}`},
	},
	"updateNetworkVolume":         {"name": {with: `{"name":"x"}`}, "size": {with: `{"size":200}`}},
	"createContainerRegistryAuth": {"name": {with: `{"name":"x"}`}, "username": {with: `{"username":"x"}`}, "password": {with: `{"password":"x"}`}},
}

// usual are the bodies fields are tried over, and where they go.
var usual = map[string]struct{ target, body string }{
	"createPod":                   {"POST /v1/pods", `{"imageName":"i"}`},
	"updatePod":                   {"PATCH /v1/pods/p1", `{}`},
	"createEndpoint":              {"POST /v1/endpoints", `{"templateId":"t2","name":"n"}`},
	"updateEndpoint":              {"PATCH /v1/endpoints/e1", `{}`},
	"createTemplate":              {"POST /v1/templates", `{"name":"n","imageName":"i"}`},
	"updateTemplate":              {"PATCH /v1/templates/t1", `{}`},
	"createNetworkVolume":         {"POST /v1/networkvolumes", `{"name":"n","size":50,"dataCenterId":"EU-RO-1"}`},
	"updateNetworkVolume":         {"PATCH /v1/networkvolumes/v1", `{}`},
	"createContainerRegistryAuth": {"POST /v1/containerregistryauth", `{"name":"n","username":"u","password":"p"}`},
}

// willing is a platform on which everything works.
func willing(t *testing.T) *gate {
	t.Helper()
	g := newGate(t, DefaultConfig())
	g.defaults["createPod"] = fixture("newPod")
	g.defaults["getPod"] = merge(fixture("pod"), mustJSON(`{"registry":"reg1","entrypoint":["sh"]}`))
	g.defaults["updatePod"] = fixture("pod")
	g.defaults["podAction"] = fixture("pod")
	g.defaults["createEndpoint"], g.defaults["updateEndpoint"] = fixture("endpoint"), fixture("endpoint")
	g.defaults["getEndpoint"] = fixture("endpoint")
	g.defaults["createTemplate"], g.defaults["getTemplate"], g.defaults["updateTemplate"] = fixture("template"), fixture("template"), fixture("template")
	g.defaults["createNetworkVolume"], g.defaults["getNetworkVolume"], g.defaults["updateNetworkVolume"] = fixture("volume"), fixture("volume"), fixture("volume")
	g.defaults["createRegistry"] = fixture("registry")
	return g
}

// trace is everything a request led to.
type trace struct {
	status   int
	calls    []sent
	warnings []string
	notes    map[string]string
}

func traceOf(t *testing.T, target, body, endpoint string) trace {
	t.Helper()
	g := willing(t)
	if endpoint != "" {
		g.defaults["getEndpoint"] = fixture(endpoint)
	}
	out := g.do(t, target, body)
	calls := g.calls
	for i := range calls {
		calls[i].at = 0
	}
	notes := map[string]string{}
	for _, kind := range []string{translate.KindPod, translate.KindEndpoint, translate.KindTemplate} {
		values, err := g.store.List(t.Context(), "acme", kind)
		if err != nil {
			t.Fatal(err)
		}
		for id, value := range values {
			notes[kind+" "+id] = string(value)
		}
	}
	return trace{out.Status, calls, out.Warnings, notes}
}

// TestEveryInputFieldIsHandled tries every input field and sees what became
// of it.
func TestEveryInputFieldIsHandled(t *testing.T) {
	for _, row := range operations() {
		if row.form == nil || strings.HasSuffix(row.ID, "ByPost") {
			continue
		}
		for _, field := range row.form {
			t.Run(row.ID+"/"+field.name, func(t *testing.T) {
				trial, ok := trials[row.ID][field.name]
				if !ok {
					t.Fatal("no trial")
				}
				base, endpoint := usual[row.ID].body, ""
				switch {
				case strings.HasPrefix(trial.base, "{"):
					base = trial.base
				case trial.base != "":
					endpoint = trial.base
				}
				body := mustJSON(base).(map[string]any)
				without := traceOf(t, usual[row.ID].target, indent(body), endpoint)
				body[field.name] = translate.At(mustJSON(trial.with), field.name)
				with := traceOf(t, usual[row.ID].target, indent(body), endpoint)
				checkHandling(t, field.name, trial.handling, without, with)
			})
		}
	}
}

func checkHandling(t *testing.T, name string, handling handling, without, with trace) {
	t.Helper()
	calls := cmp.Diff(without.calls, with.calls, cmp.AllowUnexported(sent{}))
	notes := cmp.Diff(without.notes, with.notes)
	told := false
	for _, line := range with.warnings {
		told = told || strings.HasPrefix(line, name+":")
	}
	if handling != refused && with.status >= 300 {
		t.Errorf("%s: status %d", handling, with.status)
	}
	switch handling {
	case mapped:
		if calls == "" {
			t.Error("mapped, but the v2 calls are the same without it")
		}
	case emulated:
		if calls == "" && notes == "" {
			t.Error("emulated, but neither calls nor memory differ without it")
		}
	case warned:
		if calls != "" || !told {
			t.Errorf("warned, but warnings are %q and calls differ by:\n%s", with.warnings, calls)
		}
	case refused:
		if with.status != 400 || len(with.calls) > 0 {
			t.Errorf("refused, but the answer is %d after %d calls", with.status, len(with.calls))
		}
	default:
		t.Errorf("unknown handling %q", handling)
	}
}
