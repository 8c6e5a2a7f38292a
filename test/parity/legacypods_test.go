package parity

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
)

func decoded(t *testing.T, a answer) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(a.Body), &v); err != nil {
		t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
	return v
}

func graphql(query string) string {
	raw, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		panic(err)
	}
	return request("POST", "/graphql", "key_research", string(raw))
}

// What v1 refuses, it refuses with a status that no client repeats.
func TestV1PodRefusals(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		large := strings.Repeat("x", 52_000)
		template := d.ask(t, request("POST", "/v1/templates", "key_platform",
			`{"name":"large","imageName":"img:1","volumeInGb":20,"env":{"T":"`+large+`"}}`))
		id := translate.Text(decoded(t, template), "id")
		for name, c := range map[string]struct {
			body   string
			status int
			text   string
		}{
			"vcpuCount":    {`{"imageName":"i","computeType":"CPU","vcpuCount":4096}`, 400, "vcpuCount: no CPU flavour is available with 4096 vCPUs"},
			"CUDA as text": {`{"imageName":"i","gpuTypeIds":["NVIDIA L4"],"allowedCudaVersions":"12.4"}`, 400, "allowedCudaVersions: expected array of strings"},
			"made too large": {
				`{"templateId":"` + id + `","gpuTypeIds":["NVIDIA L4"],"volumeInGb":0,"env":{"E":"` + large + `"}}`, 413,
				"the outbound body exceeds 102400 bytes after adding the template and policy changes",
			},
		} {
			before := len(d.platform.CallsTo("createPod"))
			a := d.ask(t, request("POST", "/v1/pods", "key_research", c.body))
			if got := translate.Text(decoded(t, a), "message"); a.Status != c.status || got != c.text {
				t.Errorf("%s: %d %q, want %d %q", name, a.Status, got, c.status, c.text)
			}
			if n := len(d.platform.CallsTo("createPod")) - before; n > 0 {
				t.Errorf("%s: %d pods asked for, want none", name, n)
			}
		}
	})
}

// A pod's actions take no body, and clients send any.
func TestV1ActionsIgnoreTheirBody(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		made := d.ask(t, request("POST", "/v2/pods", "key_research", pod4090))
		id := translate.Text(decoded(t, made), "id")
		d.platform.Clock().Advance(time.Minute)
		for _, action := range []string{"restart", "reset", "stop", "start"} {
			for _, sent := range []string{``, `null`, `[]`, `{"a":1}`} {
				d.platform.Clock().Advance(time.Minute)
				if a := d.ask(t, request("POST", "/v1/pods/"+id+"/"+action, "key_research", sent)); a.Status != 200 {
					t.Errorf("%s with %q: %d %s", action, sent, a.Status, a.Body)
				}
			}
		}
	})
}

// Clients that deploy by GraphQL know the machine from the answer, or from a
// warning that it is not known; http ports are listed as recorded.
func TestGraphQLTellsMachineAndPorts(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http")
	const deploy = `mutation { podFindAndDeployOnDemand(input: {gpuTypeId: "NVIDIA L4", imageName: "i", ports: "8888/http,22/tcp"})
		{ id machineId machine { podHostId } } }`
	a := d.ask(t, graphql(deploy))
	pod := translate.At(decoded(t, a), "data", "podFindAndDeployOnDemand")
	machine, warned := translate.Text(pod, "machineId"), strings.Contains(fmt.Sprint(a.Header.Values("X-Legacy-Warning")), "machineId")
	if a.Status != 200 || (machine == "") != warned {
		t.Fatalf("%d %s, warned %t", a.Status, a.Body, warned)
	}
	d.platform.Clock().Advance(time.Minute)
	a = d.ask(t, graphql(`{ pod(input: {podId: "`+translate.Text(pod, "id")+`"}) {
		machineId runtime { ports { ip isIpPublic privatePort publicPort type } } } }`))
	pod = translate.At(decoded(t, a), "data", "pod")
	if translate.Text(pod, "machineId") == "" {
		t.Errorf("no machine: %s", a.Body)
	}
	kinds := map[string]int{}
	for _, port := range translate.Items(pod, "runtime", "ports") {
		kind := translate.Text(port, "type")
		kinds[kind]++
		if public := translate.Flag(port, "isIpPublic"); public != (kind == "tcp") {
			t.Errorf("%s port: isIpPublic %t", kind, public)
		}
		if ip := translate.Text(port, "ip"); kind == "http" && !strings.HasPrefix(ip, "100.6") {
			t.Errorf("http port at %s, want an address of 100.64.0.0/10", ip)
		}
	}
	if kinds["http"] != 1 || kinds["tcp"] != 1 {
		t.Errorf("ports %s, want one of each kind", a.Body)
	}
}
