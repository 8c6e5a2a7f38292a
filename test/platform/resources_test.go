package platform

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTemplates(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{{ID: "a", Key: DefaultKey}, {ID: "b", Key: "b"}}})
	reg := r.want(201, "POST", "/v2/registries", `{"name":"r","username":"u","password":"p"}`).text("id")
	made := r.want(201, "POST", "/v2/templates", `{"name":"t","image":"i","registry":"`+reg+`"}`)
	id := made.text("id")
	want := map[string]any{
		"id": id, "name": "t", "image": "i", "args": "", "cmd": []any{}, "entrypoint": []any{}, "disk": 20.0, "env": map[string]any{},
		"ports": []any{}, "registry": reg, "mounts": map[string]any{}, "serverless": false, "public": false, "category": "NVIDIA",
		"startSsh": true, "startJupyter": true, "allowedCudaVersions": []any{},
	}
	if diff := cmp.Diff(want, made.body); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	for _, body := range []string{
		`{"image":"i"}`, `{"name":"t"}`, `{"name":"t","image":"i","mounts":{"network":[]}}`, `{"name":"t","image":"i","bogus":1}`,
		`{"name":"t","image":"i","category":"TPU"}`, `{"name":"t","image":"i","allowedCudaVersions":["12"]}`,
	} {
		r.want(422, "POST", "/v2/templates", body)
	}
	r.want(400, "POST", "/v2/templates", `{"name":"t","image":"i","registry":"nope"}`)
	b := r.as("b")
	b.want(404, "GET", "/v2/templates/"+id, "")
	got := r.want(200, "PATCH", "/v2/templates/"+id, `{"public":true,"env":{"A":"1"},"mounts":{"persistent":{"size":10,"path":"/w"}}}`)
	if got.at("public") != true || got.text("env.A") != "1" || got.at("mounts.persistent.size") != 10.0 {
		t.Errorf("after PATCH: got %s", got.raw)
	}
	r.want(200, "PATCH", "/v2/templates/"+id, `{}`)
	if seen := b.want(200, "GET", "/v2/templates/"+id, ""); seen.at("registry") != nil {
		t.Errorf("another account's template shows its registry: %s", seen.raw)
	}
	if raw := b.want(200, "GET", "/v2/catalog/templates?source=community", "").raw; !strings.Contains(raw, id) {
		t.Errorf("a published template is not in the catalog: %s", raw)
	}
	if raw := b.want(200, "GET", "/v2/templates", "").raw; raw != empty("templates") {
		t.Errorf("list shows what is not own: %s", raw)
	}
	b.want(404, "PATCH", "/v2/templates/"+id, `{}`)
	b.want(404, "DELETE", "/v2/templates/"+id, "")
	b.want(404, "PATCH", "/v2/templates/tplpytorch", `{}`)
	pod := b.want(201, "POST", "/v2/pods", `{"name":"p","templateId":"`+id+`","registry":null,"env":{"B":"2"},"startJupyter":false,"gpu":{"id":"NVIDIA L4"}}`)
	if diff := cmp.Diff(map[string]any{"A": "1", "B": "2"}, pod.at("env")); diff != "" {
		t.Errorf("env of the pod (-want +got):\n%s", diff)
	}
	r.want(200, "PATCH", "/v2/templates/"+id, `{"serverless":true}`)
	b.want(422, "POST", "/v2/pods", `{"name":"p","templateId":"`+id+`","gpu":{"id":"NVIDIA L4"}}`)
	r.want(204, "DELETE", "/v2/templates/"+id, "")
	r.want(404, "GET", "/v2/templates/"+id, "")
}

func TestNetworkVolumes(t *testing.T) {
	r := newRig(t, Options{})
	v := r.want(201, "POST", "/v2/network-volumes", `{"name":"v","size":10,"dataCenter":"EU-RO-1"}`)
	id := v.text("id")
	want := map[string]any{"id": id, "name": "v", "size": 10.0, "dataCenter": "EU-RO-1", "type": "STANDARD"}
	if diff := cmp.Diff(want, v.body); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		status int
		body   string
	}{
		{422, `{"name":"v","size":9,"dataCenter":"EU-RO-1"}`},
		{422, `{"name":"v","size":4097,"dataCenter":"EU-RO-1"}`},
		{422, `{"name":"v","size":10}`},
		{422, `{"name":"v","size":10,"dataCenter":"EU-RO-1","type":"FAST"}`},
		{400, `{"name":"v","size":10,"dataCenter":"XX"}`},
		{400, `{"name":"v","size":10,"dataCenter":"OC-AU-1"}`},
		{400, `{"name":"v","size":10,"dataCenter":"EU-CZ-1","type":"HIGH_PERFORMANCE"}`},
		{201, `{"name":"v","size":10,"dataCenter":"EU-RO-1","type":"HIGH_PERFORMANCE"}`},
	} {
		r.want(tt.status, "POST", "/v2/network-volumes", tt.body)
	}
	for _, tt := range []struct {
		status int
		body   string
	}{
		{422, `{}`},
		{422, `{"type":"STANDARD"}`},
		{422, `{"dataCenter":"EU-RO-1"}`},
		{422, `{"size":5000}`},
		{200, `{"size":2000}`},
		{400, `{"size":1999}`},
		{200, `{"name":"w"}`},
	} {
		r.want(tt.status, "PATCH", "/v2/network-volumes/"+id, tt.body)
	}
	pod := `{"name":"p","image":"i","gpu":{"id":"NVIDIA GeForce RTX 4090"},"mounts":{"network":[{"volumeId":"` + id + `","path":"/v"}]}}`
	r.want(400, "POST", "/v2/pods", strings.Replace(pod, `"name"`, `"dataCenterIds":["US-TX-3"],"name"`, 1))
	r.want(400, "POST", "/v2/pods", strings.Replace(pod, `"name"`, `"cloud":"COMMUNITY","name"`, 1))
	cpu := strings.Replace(pod, `"gpu":{"id":"NVIDIA GeForce RTX 4090"}`, `"cpu":{"id":"cpu3g","vcpuCount":2}`, 1)
	p := r.want(201, "POST", "/v2/pods", cpu)
	if got := p.text("dataCenterId"); got != "EU-RO-1" {
		t.Errorf("the pod stands in %s, its volume in EU-RO-1", got)
	}
	pid := p.text("id")
	r.want(200, "PATCH", "/v2/pods/"+pid, `{"mounts":{"network":[{"volumeId":"`+id+`","path":"/w"}]}}`)
	r.want(400, "PATCH", "/v2/pods/"+pid, `{"mounts":{"network":[{"volumeId":"other","path":"/w"}]}}`)
	r.want(400, "PATCH", "/v2/pods/"+pid, `{"mounts":{"persistent":{"size":20,"path":"/w"}}}`)
	r.want(400, "DELETE", "/v2/network-volumes/"+id, "")
	if err := r.SetBalance("default", 0.01); err != nil {
		t.Fatal(err)
	}
	r.Clock().Advance(time.Hour)
	if got := r.want(200, "GET", "/v2/pods/"+pid, "").text("status"); got != "EXITED" {
		t.Errorf("without money a pod on a network volume is %s, want EXITED", got)
	}
	r.want(402, "POST", "/v2/pods/"+pid+"/action", `{"action":"start"}`)
	r.want(204, "DELETE", "/v2/pods/"+pid, "")
	r.want(204, "DELETE", "/v2/network-volumes/"+id, "")
	r.want(404, "GET", "/v2/network-volumes/"+id, "")
	r.want(404, "DELETE", "/v2/network-volumes/"+id, "")
	if got, _ := r.want(200, "GET", "/v2/network-volumes", "").at("networkVolumes").([]any); len(got) != 1 {
		t.Errorf("list: got %v", got)
	}
}

func TestRegistriesAndDelegations(t *testing.T) {
	r := newRig(t, Options{})
	a := r.want(201, "POST", "/v2/registries", `{"name":"r","username":"u","password":"hush"}`)
	id := a.text("id")
	if diff := cmp.Diff(map[string]any{"id": id, "name": "r"}, a.body); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	r.want(422, "POST", "/v2/registries", `{"name":"r","username":"","password":"p"}`)
	r.want(422, "POST", "/v2/registries", `{"name":"r","username":"u"}`)
	r.want(404, "GET", "/v2/registries/nope", "")
	tpl := r.want(201, "POST", "/v2/templates", `{"name":"t","image":"i","registry":"`+id+`"}`).text("id")
	pod := r.newPod(strings.Replace(gpuPod, `"name"`, `"registry":"`+id+`","name"`, 1))
	r.want(400, "DELETE", "/v2/registries/"+id, "")
	r.want(204, "DELETE", "/v2/pods/"+pod, "")
	r.want(204, "DELETE", "/v2/registries/"+id, "")
	r.want(404, "DELETE", "/v2/registries/"+id, "")
	if got := r.want(200, "GET", "/v2/templates/"+tpl, "").at("registry"); got != nil {
		t.Errorf("template after its registry went: got %v, want null", got)
	}

	d := r.want(201, "POST", "/v2/registries/delegations", `{"resource":"arn:aws:ecr:eu-west-1:123456789012:repository/team/app","name":null}`)
	want := map[string]any{
		"id": d.text("id"), "name": nil, "delegatorUserId": "default", "awsUser": "123456789012", "repository": "team/app", "tag": "latest",
		"awsRegion": "eu-west-1", "dockerRegistryUri": "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/app", "createdAt": "2026-06-01T12:00:00Z",
	}
	if diff := cmp.Diff(want, d.body); diff != "" {
		t.Errorf("delegation (-want +got):\n%s", diff)
	}
	r.want(422, "POST", "/v2/registries/delegations", `{"name":"x"}`)
	for _, arn := range []string{"", "arn:aws:s3:::bucket", "arn:aws:ecr:eu-west-1:me:repository/x", "arn:aws:ecr:eu-west-1:1:repository/"} {
		r.want(400, "POST", "/v2/registries/delegations", `{"resource":"`+arn+`"}`)
	}
	if got := r.want(200, "GET", "/v2/registries/delegations", "").text("delegations.0.id"); got != d.text("id") {
		t.Errorf("list: got %q", got)
	}
	r.want(204, "DELETE", "/v2/registries/delegations/"+d.text("id"), "")
	r.want(404, "DELETE", "/v2/registries/delegations/"+d.text("id"), "")
	if a := r.want(405, "DELETE", "/v2/registries/delegations", ""); a.header.Get("Allow") != "GET, POST" {
		t.Errorf("delegations is no registry: Allow %q", a.header.Get("Allow"))
	}
}

const slurm = `{"name":"c","type":"SLURM","compute":{"gpuTypeId":"NVIDIA L4","gpuCountPerPod":2,"podCount":3},"ports":["22/tcp"]}`

func TestClusterLife(t *testing.T) {
	r := newRig(t, Options{})
	c := r.want(201, "POST", "/v2/clusters", slurm)
	id := c.text("id")
	want := map[string]any{
		"id": id, "name": "c", "type": "SLURM", "createdAt": "2026-06-01T12:00:00Z",
		"compute": map[string]any{"gpuTypeId": "NVIDIA L4", "gpuCountPerPod": 2.0, "podCount": 3.0},
		"pods":    map[string]any{"total": 3.0, "byStatus": map[string]any{"PROVISIONING": 3.0}},
	}
	if diff := cmp.Diff(want, c.body); diff != "" {
		t.Errorf("at creation (-want +got):\n%s", diff)
	}
	if got := r.want(200, "GET", "/v2/clusters/"+id+"/pods", "").at("pods.0.cluster"); !cmp.Equal(got, any(map[string]any{"id": id, "rank": nil, "role": "SLURM_CONTROLLER"})) {
		t.Errorf("member before it is placed: got %v", got)
	}
	r.Clock().Advance(time.Minute)
	c = r.want(200, "GET", "/v2/clusters/"+id, "")
	if c.at("pods.byStatus.RUNNING") != 3.0 || c.text("primary.status") != "RUNNING" || c.text("primary.sshEndpoint") == "" ||
		c.text("dataCenterId") == "" || c.text("network.cidr") == "" {
		t.Errorf("a minute later: got %s", c.raw)
	}
	members := r.want(200, "GET", "/v2/clusters/"+id+"/pods", "")
	if members.at("pods.1.cluster.rank") != 1.0 || members.text("pods.1.cluster.role") != "SLURM_COMPUTE" || members.text("pods.1.cluster.ip") == "" {
		t.Errorf("second member: got %v", members.at("pods.1.cluster"))
	}
	pod := members.text("pods.0.id")
	if raw := r.want(200, "GET", "/v2/pods", "").raw; raw != empty("pods") {
		t.Errorf("members are listed unasked: %s", raw)
	}
	if list, _ := r.want(200, "GET", "/v2/pods?includeClusterPods=true", "").at("pods").([]any); len(list) != 3 {
		t.Errorf("members asked for: got %d", len(list))
	}
	r.want(422, "GET", "/v2/pods?includeClusterPods=yes", "")
	r.want(200, "GET", "/v2/pods/"+pod, "")
	r.want(409, "PATCH", "/v2/pods/"+pod, `{"name":"x"}`)
	r.want(409, "DELETE", "/v2/pods/"+pod, "")
	r.want(409, "POST", "/v2/pods/"+pod+"/action", `{"action":"stop"}`)
	r.want(422, "PATCH", "/v2/clusters/"+id, `{}`)
	r.want(422, "PATCH", "/v2/clusters/"+id, `{"type":"RAY"}`)
	if got := r.want(200, "PATCH", "/v2/clusters/"+id, `{"name":"d"}`).text("name"); got != "d" {
		t.Errorf("renamed: got %q", got)
	}
	_, perHour, _ := r.Balance("default")
	if low, high := 6*0.43+3*networkHour, 6*0.43+3*networkHour+0.02; perHour < low || perHour > high {
		t.Errorf("the cluster costs %v per hour, want %v to %v", perHour, low, high)
	}
	r.want(204, "DELETE", "/v2/clusters/"+id, "")
	r.want(404, "GET", "/v2/clusters/"+id, "")
	r.want(404, "GET", "/v2/pods/"+pod, "")
	if _, perHour, _ := r.Balance("default"); perHour != 0 {
		t.Errorf("a cluster that is gone costs %v per hour", perHour)
	}
}

func TestClusterRefusals(t *testing.T) {
	r := newRig(t, Options{})
	for _, tt := range []struct {
		status   int
		old, now string
	}{
		{422, `"podCount":3`, `"podCount":1`},
		{422, `"podCount":3`, `"podCount":251`},
		{422, `"type":"SLURM"`, `"type":"K8S"`},
		{422, `"name":"c"`, `"name":""`},
		{422, `"name":"c"`, `"name":"c","registry":null`},
		{422, `"name":"c"`, `"name":"c","templateId":""`},
		{400, `"name":"c"`, `"name":"c","templateId":"tplpytorch"`},
		{404, `"ports":["22/tcp"]`, `"templateId":"t"`},
		{422, `"ports":["22/tcp"]`, `"templateId":"tplworker1"`},
		{422, `"name":"c",`, ``},
		{422, `"gpuTypeId":"NVIDIA L4",`, ``},
		{422, `"name":"c"`, `"name":"c","cloud":"SECURE"`},
		{400, `"gpuCountPerPod":2`, `"gpuCountPerPod":9`},
		{400, `"podCount":3`, `"podCount":40`},
		{400, `NVIDIA L4`, `NVIDIA L9`},
		{400, `"name":"c"`, `"name":"c","mounts":{"persistent":{"size":10,"path":"/"},"network":[{"volumeId":"v","path":"/"}]}`},
		{402, `"podCount":3`, `"podCount":250`},
	} {
		if tt.status == 402 {
			if err := r.SetBalance("default", 5); err != nil {
				t.Fatal(err)
			}
		}
		r.want(tt.status, "POST", "/v2/clusters", strings.Replace(slurm, tt.old, tt.now, 1))
	}
	if raw := r.want(200, "GET", "/v2/pods?includeClusterPods=true", "").raw; raw != empty("pods") {
		t.Errorf("a refused cluster left members: %s", raw)
	}
	if raw := r.want(200, "GET", "/v2/clusters", "").raw; raw != `{"clusters":[]}` {
		t.Errorf("a refused cluster is listed: %s", raw)
	}
	r.want(404, "DELETE", "/v2/clusters/nope", "")
	r.want(404, "GET", "/v2/clusters/nope/pods", "")
}

// A template alone says what the members of a cluster run, and brings the credential that a
// cluster cannot name itself.
func TestClusterFromTemplate(t *testing.T) {
	r := newRig(t, Options{Strict: true, Catalog: endless()})
	reg := r.want(201, "POST", "/v2/registries", `{"name":"r","username":"u","password":"p"}`).text("id")
	id := r.want(201, "POST", "/v2/templates", `{"name":"t","image":"own/img:1","registry":"`+reg+`","env":{"A":"1"},"ports":["22/tcp"],"cmd":["run"]}`).text("id")
	const head = `"name":"c","type":"TRAINING","compute":{"gpuTypeId":"NVIDIA L4","gpuCountPerPod":1,"podCount":2}`
	for _, setting := range []string{
		`"image":"i"`, `"args":"a"`, `"cmd":["a"]`, `"entrypoint":["a"]`, `"disk":9`, `"env":{}`, `"ports":[]`, `"mounts":{}`,
	} {
		r.want(400, "POST", "/v2/clusters", `{`+head+`,"templateId":"`+id+`",`+setting+`}`)
	}
	made := r.want(201, "POST", "/v2/clusters", `{`+head+`,"templateId":"`+id+`","startSsh":false,"startJupyter":false,"dataCenterIds":[]}`)
	pod := r.want(200, "GET", "/v2/clusters/"+made.text("id")+"/pods", "")
	if made.text("template") != id || pod.text("pods.1.image") != "own/img:1" || pod.text("pods.1.registry") != reg || pod.text("pods.1.cmd.0") != "run" ||
		pod.text("pods.1.env.A") != "1" {
		t.Errorf("got %s with members %s", made.raw, pod.raw)
	}
	plain := r.want(201, "POST", "/v2/clusters", `{`+head+`,"entrypoint":["sh"],"cmd":["x"]}`)
	if got := r.want(200, "GET", "/v2/clusters/"+plain.text("id")+"/pods", "").text("pods.0.entrypoint.0"); got != "sh" || plain.at("template") != nil {
		t.Errorf("a cluster with a command: got %q, %s", got, plain.raw)
	}
}

func TestRegistryBounds(t *testing.T) {
	r := newRig(t, Options{})
	long := strings.Repeat("ä", 191)
	for body, want := range map[string]int{
		`{"name":"` + long + `","username":"` + long + `","password":"` + strings.Repeat("p", 16_384) + `"}`: 201,
		`{"name":"` + long + `n","username":"u","password":"p"}`:                                             422,
		`{"name":"n","username":"` + long + `u","password":"p"}`:                                             422,
		`{"name":"n","username":"u","password":"` + strings.Repeat("p", 16_385) + `"}`:                       422,
	} {
		if got := r.call("POST", "/v2/registries", body).status; got != want {
			t.Errorf("a body of %d bytes: got %d, want %d", len(body), got, want)
		}
	}
}
