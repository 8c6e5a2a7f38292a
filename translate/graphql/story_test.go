package graphql_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql"
)

// emulated makes v2 calls of the emulator, by the paths of the description.
type emulated struct {
	tb     testing.TB
	server *platform.Server
	routes map[string][2]string // method and path by operation
}

func emulate(t *testing.T) (*emulated, *platform.Clock) {
	t.Helper()
	clock := platform.ManualClock(time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC))
	p := platform.RunT(t, platform.WithClock(clock), platform.WithAccounts(platform.Account{ID: "a", Key: "k", Exempt: true}))
	e := &emulated{tb: t, server: p.Server, routes: map[string][2]string{}}
	doc := decode(t, string(v2API(t).raw))
	for path, item := range translate.Members(doc, "paths") {
		for method, op := range translate.Members(item) {
			if id := translate.Text(op, "operationId"); id != "" {
				e.routes[id] = [2]string{strings.ToUpper(method), path}
			}
		}
	}
	return e, clock
}

func (e *emulated) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	route, ok := e.routes[r.Operation]
	if !ok {
		return nil, fmt.Errorf("no operation %s", r.Operation)
	}
	path := route[1]
	for name, value := range r.Params {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	if len(r.Query) > 0 {
		path += "?" + r.Query.Encode()
	}
	var body bytes.Buffer
	if r.Body != nil {
		if err := json.NewEncoder(&body).Encode(r.Body); err != nil {
			return nil, err
		}
	}
	req := httptest.NewRequestWithContext(ctx, route[0], path, &body)
	req.Header.Set("Authorization", "Bearer k")
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	e.server.ServeHTTP(w, req)
	resp := &translate.Response{Status: w.Code, Header: w.Header()}
	if w.Body.Len() > 0 && w.Code != http.StatusNoContent {
		resp.Body = decode(e.tb, w.Body.String())
	}
	if w.Code == http.StatusUnprocessableEntity || w.Code == http.StatusNotFound && len(r.Params) == 0 {
		e.tb.Errorf("%s %v: %d %s", r.Operation, r.Body, w.Code, w.Body)
	}
	return resp, nil
}

// must asks and wants no error.
func (e *emulated) must(r *rig, document, variables string) map[string]any {
	e.tb.Helper()
	a := read(e.tb, r.ask(e.tb, e, document, variables))
	if len(a.Errors) > 0 || a.Data == nil {
		e.tb.Fatalf("%s: %+v", document, a.Errors)
	}
	return a.Data
}

// TestPodStory lives through a pod the way a script does, against the emulator.
func TestPodStory(t *testing.T) {
	e, clock := emulate(t)
	r := newRig(t)
	prices := e.must(r, `{ gpuTypes(input: {id: "NVIDIA GeForce RTX 4090"}) { maxGpuCount lowestPrice(input: {gpuCount: 1}) { uninterruptablePrice stockStatus availableGpuCounts } } }`, "")
	if stock := translate.Text(translate.Items(any(prices), "gpuTypes")[0], "lowestPrice", "stockStatus"); stock == "" || stock == "None" {
		t.Fatalf("stock %q in %v", stock, prices)
	}
	made := e.must(r, `mutation { podFindAndDeployOnDemand(input: {
		name: "train", imageName: "org/pytorch:2.1", cloudType: ALL, startSsh: true, gpuTypeId: "NVIDIA GeForce RTX 4090", gpuCount: 1,
		volumeInGb: 20, containerDiskInGb: 40, minVcpuCount: 2, minMemoryInGb: 15, ports: "8888/http,22/tcp", volumeMountPath: "/workspace",
		env: [{ key: "A", value: "1" }], dataCenterId: null }) { id desiredStatus runtime { uptimeInSeconds } machine { podHostId } } }`, "")
	id := translate.Text(any(made), "podFindAndDeployOnDemand", "id")
	if got := translate.Text(any(made), "podFindAndDeployOnDemand", "desiredStatus"); got != "RUNNING" || id == "" {
		t.Fatalf("made %v", made)
	}
	poll := `{ pod(input: {podId: "` + id + `"}) { desiredStatus costPerHr env ports volumeInGb runtime { uptimeInSeconds ports { ip isIpPublic privatePort publicPort type } gpus { id } } machine { podHostId gpuDisplayName } } }`
	var pod any
	for range 20 {
		if pod = translate.At(any(e.must(r, poll, "")), "pod"); translate.Members(pod, "runtime") != nil {
			break
		}
		clock.Advance(time.Second)
	}
	if len(translate.Items(pod, "runtime", "ports")) == 0 || translate.Text(pod, "machine", "podHostId") == "" || translate.Whole(pod, "volumeInGb") != 20 {
		t.Fatalf("running pod %v", pod)
	}
	for _, step := range []struct{ document, want string }{
		{`mutation { podStop(input: {podId: "` + id + `"}) { desiredStatus } }`, `{"data":{"podStop":{"desiredStatus":"EXITED"}}}`},
		{`mutation { podStop(input: {podId: "` + id + `"}) { desiredStatus } }`, `{"data":{"podStop":{"desiredStatus":"EXITED"}}}`},
		{`{ pod(input: {podId: "` + id + `"}) { desiredStatus runtime { uptimeInSeconds } costPerHr } }`, `{"data":{"pod":{"desiredStatus":"EXITED","runtime":null,"costPerHr":0}}}`},
		{`mutation { podEditJob(input: {podId: "` + id + `", imageName: "org/next:1", volumeInGb: 20}) { imageName } }`, `{"data":{"podEditJob":{"imageName":"org/next:1"}}}`},
		{`mutation { podResume(input: {podId: "` + id + `", gpuCount: 1}) { desiredStatus } }`, `{"data":{"podResume":{"desiredStatus":"RUNNING"}}}`},
		{`mutation { podResume(input: {podId: "` + id + `", gpuCount: 1}) { desiredStatus } }`, `{"data":{"podResume":{"desiredStatus":"RUNNING"}}}`},
		{`{ myself { pods { name imageName gpuCount } } }`, `{"data":{"myself":{"pods":[{"name":"train","imageName":"org/next:1","gpuCount":1}]}}}`},
		{`mutation { podTerminate(input: {podId: "` + id + `"}) }`, `{"data":{"podTerminate":null}}`},
		{`{ myself { pods { name } } pod(input: {podId: "` + id + `"}) { id } }`, `{"data":{"myself":{"pods":[]},"pod":null}}`},
	} {
		if out := r.ask(t, e, step.document, ""); string(out.Body) != step.want {
			t.Errorf("%s: got %s, want %s", step.document, out.Body, step.want)
		}
	}
}

// TestServerlessStory makes a template and an endpoint of it, changes both, and
// takes them away.
func TestServerlessStory(t *testing.T) {
	e, _ := emulate(t)
	r := newRig(t, func(c *graphql.Config) { c.Limits.RootMutations = 1 })
	pools := translate.Items(any(e.must(r, `{ serverlessGpuPools { id gpuTypeIds } }`, "")), "serverlessGpuPools")
	if len(pools) == 0 {
		t.Fatal("no pools")
	}
	pool := translate.Text(pools[0], "id")
	made := e.must(r, `mutation { saveTemplate(input: {name: "w", imageName: "org/worker:1", dockerArgs: "", containerDiskInGb: 10, volumeInGb: 0, isServerless: true, env: [{key: "A", value: "1"}], readme: "hi"}) { id readme } }`, "")
	template := translate.Text(any(made), "saveTemplate", "id")
	made = e.must(r, `mutation($i: EndpointInput!) { saveEndpoint(input: $i) { id templateId gpuIds workersMax idleTimeout } }`,
		`{"i":{"name":"chat","templateId":"`+template+`","gpuIds":"`+pool+`","networkVolumeId":"","locations":"","idleTimeout":5,"scalerType":"QUEUE_DELAY","scalerValue":4,"workersMin":0,"workersMax":2,"allowedCudaVersions":"","minCudaVersion":""}}`)
	id := translate.Text(any(made), "saveEndpoint", "id")
	if got := translate.Text(any(made), "saveEndpoint", "gpuIds"); id == "" || got != pool {
		t.Fatalf("made %v", made)
	}
	e.must(r, `mutation { saveTemplate(input: {id: "`+template+`", imageName: "org/worker:2"}) { id } }`, "")
	e.must(r, `mutation { saveEndpoint(input: {id: "`+id+`", workersMax: 0}) { workersMax } }`, "")
	got := e.must(r, `{ myself { endpoints { name templateId workersMin workersMax idleTimeout scalerType scalerValue version template { imageName boundEndpointId } pods { id } } } }`, "")
	endpoints := translate.Items(any(got), "myself", "endpoints")
	if len(endpoints) != 1 || translate.Text(endpoints[0], "templateId") != template || translate.Text(endpoints[0], "template", "boundEndpointId") != id ||
		translate.Whole(endpoints[0], "workersMax") != 0 || translate.Whole(endpoints[0], "idleTimeout") != 5 {
		t.Errorf("got %v", endpoints)
	}
	e.must(r, `mutation { deleteEndpoint(id: "`+id+`") }`, "")
	e.must(r, `mutation { deleteTemplate(templateName: "w") }`, "")
}

// TestAccountStory covers keys, volumes, registries, a CPU pod and a cluster.
func TestAccountStory(t *testing.T) {
	e, clock := emulate(t)
	r := newRig(t)
	e.must(r, `mutation { updateUserSettings(input: {pubKey: "ssh-ed25519 AAAA me\nssh-rsa BBBB you"}) { pubKey } }`, "")
	if got := translate.Text(any(e.must(r, `{ myself { id pubKey } }`, "")), "myself", "pubKey"); got != "ssh-ed25519 AAAA me\nssh-rsa BBBB you" {
		t.Errorf("keys %q", got)
	}
	centres := translate.Items(any(e.must(r, `{ dataCenters { id location storageSupport gpuAvailability { id stockStatus } } countryCodes }`, "")), "dataCenters")
	at := ""
	for _, c := range centres {
		if translate.Flag(c, "storageSupport") {
			at = translate.Text(c, "id")
			break
		}
	}
	volume := translate.Text(any(e.must(r, `mutation { createNetworkVolume(input: {name: "data", size: 20, dataCenterId: "`+at+`"}) { id dataCenter { id } } }`, "")), "createNetworkVolume", "id")
	e.must(r, `mutation { updateNetworkVolume(input: {id: "`+volume+`", size: 30}) { size } }`, "")
	e.must(r, `mutation { saveRegistryAuth(input: {name: "hub", username: "u", password: "p"}) { id name } }`, "")
	made := e.must(r, `mutation { deployCpuPod(input: {name: "cpu", imageName: "org/cpu:1", minVcpuCount: 2, minMemoryInGb: 4, ports: "8080/http"}) { id vcpuCount cpuFlavorId } }`, "")
	if translate.Whole(any(made), "deployCpuPod", "vcpuCount") < 2 {
		t.Errorf("CPU pod %v", made)
	}
	e.must(r, `mutation { podTerminate(input: {podId: "`+translate.Text(any(made), "deployCpuPod", "id")+`"}) }`, "")
	clock.Advance(time.Second)
	made = e.must(r, `mutation { createCluster(input: {clusterName: "big", gpuTypeId: "NVIDIA GeForce RTX 4090", podCount: 2, gpuCountPerPod: 1, imageName: "org/mpi:1", ports: "22/tcp", type: TRAINING}) { id name type } }`, "")
	id := translate.Text(any(made), "createCluster", "id")
	if out := r.ask(t, e, `mutation { deleteCluster(input: {id: "`+id+`"}) }`, ""); string(out.Body) != `{"data":{"deleteCluster":true}}` {
		t.Errorf("got %s", out.Body)
	}
	e.must(r, `mutation { deleteNetworkVolume(input: {id: "`+volume+`"}) }`, "")
	got := e.must(r, `{ myself { networkVolumes { id } containerRegistryCreds { name } pods { id } } }`, "")
	if len(translate.Items(any(got), "myself", "networkVolumes")) != 0 || len(translate.Items(any(got), "myself", "containerRegistryCreds")) != 1 {
		t.Errorf("left %v", got)
	}
}

// A virtual template has a name of its own: an update of the template does not rename its endpoint.
func TestVirtualTemplateKeepsTheEndpointsName(t *testing.T) {
	r := newRig(t)
	v2 := newScript(t, "listGpuTypes 200 @gpus\ncreateEndpoint 201 @endpoint\ngetEndpoint 200 @endpoint\nupdateEndpoint 200 @endpoint")
	names := func(want string) {
		t.Helper()
		out := r.ask(t, v2, `{ myself { endpoint(id: "ep1") { name template { id name } } } podTemplate(id: "ept_ep1") { name } }`, "")
		if want := `{"data":{"myself":{"endpoint":{"name":"chat","template":{"id":"ept_ep1","name":"` + want + `"}}},"podTemplate":{"name":"` + want + `"}}}`; string(out.Body) != want {
			t.Errorf("got %s, want %s", out.Body, want)
		}
	}
	names("chat")
	r.ask(t, v2, `mutation { saveEndpoint(input: {name: "chat", gpuIds: "ADA_24", template: {name: "first", imageName: "i"}}) { id } }`, "")
	names("first")
	for _, update := range []string{`name: "3f9c2a"`, `name: "77ab01", imageName: "org/worker:2"`} {
		out := r.ask(t, v2, `mutation { saveTemplate(input: {id: "ept_ep1", `+update+`}) { id name } }`, "")
		if out.Status != 200 || strings.Contains(string(out.Body), "errors") {
			t.Fatalf("saveTemplate: %d %s", out.Status, out.Body)
		}
	}
	names("77ab01")
	for _, call := range v2.lines() {
		if strings.HasPrefix(call, "updateEndpoint") && strings.Contains(call, `"name"`) && !strings.Contains(call, `"name":"chat"`) {
			t.Errorf("the endpoint is renamed: %s", call)
		}
	}
}
