package graphql_test

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// TestRoundTrips writes values by a mutation and reads them by a query: env as a
// list of pairs becomes one of KEY=value, ports and dockerArgs stay the texts
// they were.
func TestRoundTrips(t *testing.T) {
	args := "{\"cmd\": [ \"a \\\"b\\\"\", \"\u00e9\" ],\n \"entrypoint\":[\"/bin/sh\"]}"
	variables, err := json.Marshal(map[string]any{"input": map[string]any{
		"gpuTypeId": "NVIDIA L4", "imageName": "i", "ports": "8888/http,22/tcp", "dockerArgs": args,
		"env": []any{map[string]any{"key": "Z", "value": "1=2"}, map[string]any{"key": "A", "value": ""}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	echo := &echoing{script: newScript(t, "listGpuTypes 200 @gpus")}
	out := newRig(t).ask(t, echo, `mutation($input: X) { podFindAndDeployOnDemand(input: $input) { env ports dockerArgs } }`, string(variables))
	want := map[string]any{"podFindAndDeployOnDemand": map[string]any{
		"env": []any{"A=", "Z=1=2"}, "ports": "8888/http,22/tcp", "dockerArgs": args,
	}}
	if diff := cmp.Diff(want, read(t, out).Data); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

// echoing is a v2 that answers a create with the sent body.
type echoing struct{ *script }

func (e *echoing) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	if r.Operation != "createPod" {
		return e.script.Call(ctx, r)
	}
	body := map[string]any{"id": "new", "status": "PROVISIONING"}
	maps.Copy(body, translate.Members(r.Body))
	return &translate.Response{Status: 201, Body: body}, nil
}

func TestTerminateTwice(t *testing.T) {
	r := newRig(t)
	v2 := newScript(t, "deletePod 204\ndeletePod 404 {}")
	const document = `mutation { podTerminate(input: { podId: "p" }) }`
	if out := r.ask(t, v2, document, ""); string(out.Body) != `{"data":{"podTerminate":null}}` {
		t.Errorf("first: got %s", out.Body)
	}
	a := read(t, r.ask(t, v2, document, ""))
	if len(a.Errors) != 1 || a.Errors[0].Message != "pod not found to terminate" || a.Errors[0].Extensions["code"] != "POD_NOT_FOUND" {
		t.Errorf("second: got %+v", a.Errors)
	}
}

// TestDeleteAfterLostAnswer counts a 404 as done when the try before may have
// deleted the pod.
func TestDeleteAfterLostAnswer(t *testing.T) {
	v2 := newScript(t, "deletePod 0\ndeletePod 404 {}")
	out := newRig(t).ask(t, v2, `mutation { podTerminate(input: { podId: "p" }) }`, "")
	if string(out.Body) != `{"data":{"podTerminate":null}}` || v2.count("deletePod") != 2 {
		t.Errorf("got %s after %v", out.Body, v2.lines())
	}
}

func TestResumeTwice(t *testing.T) {
	r := newRig(t)
	v2 := newScript(t, "getPod 200 {\"id\":\"p\",\"status\":\"EXITED\",\"gpu\":{\"id\":\"g\",\"count\":2}}\n"+
		"getPod 200 {\"id\":\"p\",\"status\":\"RUNNING\",\"gpu\":{\"id\":\"g\",\"count\":2}}\npodAction 200 {\"id\":\"p\",\"status\":\"STARTING\"}")
	for range 2 {
		out := r.ask(t, v2, `mutation { podResume(input: {podId: "p", gpuCount: 2}) { desiredStatus } }`, "")
		if string(out.Body) != `{"data":{"podResume":{"desiredStatus":"RUNNING"}}}` {
			t.Errorf("got %s", out.Body)
		}
	}
}

// TestEndpointReadsBack writes an endpoint and reads the texts v2 cannot show.
func TestEndpointReadsBack(t *testing.T) {
	r := newRig(t)
	v2 := newScript(t, "listDataCenters 200 @centres\ncreateEndpoint 201 {\"id\":\"ep1\",\"gpu\":{\"pools\":[\"ADA_24\"],\"excludedTypes\":[\"NVIDIA L4\"],\"count\":1},\"dataCenterIds\":[\"EU-RO-1\"],\"workers\":{\"min\":0,\"max\":3},\"type\":\"QUEUE\",\"scaling\":{\"type\":\"REQUEST_COUNT\",\"requestCount\":4}}\n"+
		"listEndpoints 200 {\"endpoints\":[{\"id\":\"ep1\",\"gpu\":{\"pools\":[\"ADA_24\"],\"excludedTypes\":[\"NVIDIA L4\"]},\"dataCenterIds\":[\"EU-RO-1\"],\"workers\":{\"min\":0,\"max\":3}}]}\n"+
		"listTemplates 200 {\"templates\":[{\"id\":\"tpl1\",\"name\":\"base\"}]}")
	const sent = "ADA_24,-NVIDIA L4"
	r.ask(t, v2, `mutation { saveEndpoint(input: {name: "n", templateId: "tpl1", gpuIds: "`+sent+`", locations: "EU", scalerType: "REQUEST_COUNT", idleTimeout: 77, hubReleaseId: "h"}) { id } }`, "")
	out := r.ask(t, v2, `{ myself { endpoints { gpuIds locations templateId idleTimeout hubReleaseId template { name boundEndpointId } } } }`, "")
	want := `{"data":{"myself":{"endpoints":[{"gpuIds":"ADA_24,-NVIDIA L4","locations":"EU","templateId":"tpl1","idleTimeout":77,"hubReleaseId":"h","template":{"name":"base","boundEndpointId":"ep1"}}]}}}`
	if diff := cmp.Diff(want, string(out.Body)); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

// TestStaleTextIsNotShown changes an endpoint behind the gateway's back: the
// text sent before no longer means what there is.
func TestStaleTextIsNotShown(t *testing.T) {
	r := newRig(t)
	v2 := newScript(t, "createEndpoint 201 @endpoint\ngetEndpoint 200 {\"id\":\"ep1\",\"gpu\":{\"pools\":[\"ADA_80_PRO\"]}}")
	r.ask(t, v2, `mutation { saveEndpoint(input: {name: "n", templateId: "t", gpuIds: "ADA_24"}) { id } }`, "")
	out := r.ask(t, v2, `{ myself { endpoint(id: "ep1") { gpuIds } } }`, "")
	if want := `{"data":{"myself":{"endpoint":{"gpuIds":"ADA_80_PRO"}}}}`; string(out.Body) != want {
		t.Errorf("got %s, want %s", out.Body, want)
	}
}

// TestUpdateEndpointTemplate finds the template as saveEndpoint does, and keeps the link if the template is unknown.
func TestUpdateEndpointTemplate(t *testing.T) {
	missing := `{"data":{"updateEndpointTemplate":null},"errors":[{"message":"template not found"`
	for _, tt := range []struct{ name, template, answer, want, sent string }{
		{"of another endpoint", "ept_ep2", "getEndpoint 200 {\"id\":\"ep2\",\"image\":\"other:1\"}\nupdateEndpoint 200 @endpoint", `{"data":{"updateEndpointTemplate":{"templateId":"ept_ep2"}}}`, `updateEndpoint ep1 {"image":"other:1"`},
		{"of no endpoint", "ept_nope", "getEndpoint 404 {}", missing, ""},
		{"unknown", "nope", "updateEndpoint 404 {}", missing, `updateEndpoint ep1 {"templateId":"nope"}`},
		{"of its own", "ept_ep1", "", `{"data":{"updateEndpointTemplate":{"templateId":"tpl1"}}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.ask(t, newScript(t, "createEndpoint 201 @endpoint"), `mutation { saveEndpoint(input: {name: "n", templateId: "tpl1", gpuIds: "ADA_24"}) { id } }`, "")
			v2 := newScript(t, "getEndpoint 200 @endpoint\n"+tt.answer)
			out := r.ask(t, v2, `mutation { updateEndpointTemplate(input: {endpointId: "ep1", templateId: "`+tt.template+`"}) { templateId } }`, "")
			if !strings.HasPrefix(string(out.Body), tt.want) {
				t.Errorf("got %s, want %s", out.Body, tt.want)
			}
			if lines := strings.Join(v2.lines(), "\n"); !strings.Contains(lines, tt.sent) || tt.sent == "" && strings.Contains(lines, "updateEndpoint") {
				t.Errorf("calls:\n%s\nwant %q", lines, tt.sent)
			}
			if tt.want != missing {
				return
			}
			out = r.ask(t, newScript(t, "getEndpoint 200 @endpoint"), `{ myself { endpoint(id: "ep1") { templateId } } }`, "")
			if want := `{"data":{"myself":{"endpoint":{"templateId":"tpl1"}}}}`; string(out.Body) != want {
				t.Errorf("afterwards %s, want %s", out.Body, want)
			}
		})
	}
}

func TestTemplateRollout(t *testing.T) {
	r := newRig(t)
	v2 := newScript(t, "createEndpoint 201 @endpoint\nupdateTemplate 200 @template\nupdateEndpoint 200 @endpoint\ngetTemplate 200 @template\ndeleteEndpoint 204")
	changed := func(step, document string, want int) {
		r.ask(t, v2, document, "")
		if n := v2.count("updateEndpoint"); n != want {
			t.Errorf("after %s %d endpoints were changed, want %d: %v", step, n, want, v2.lines())
		}
	}
	changed("a create", `mutation { saveEndpoint(input: {name: "n", templateId: "tpl1", gpuIds: "ADA_24"}) { id } }`, 0)
	changed("a new readme", `mutation { saveTemplate(input: {id: "tpl1", readme: "only text"}) { readme } }`, 0)
	changed("a new image", `mutation { saveTemplate(input: {id: "tpl1", imageName: "new"}) { id } }`, 1)
	changed("a delete", `mutation { deleteEndpoint(id: "ep1") }`, 1)
	changed("an image for a deleted endpoint", `mutation { saveTemplate(input: {id: "tpl1", imageName: "newer"}) { id } }`, 1)
}

// TestTemplateWithoutVolume takes the volume off a template, which v2 cannot,
// and deploys from it.
func TestTemplateWithoutVolume(t *testing.T) {
	r := newRig(t)
	v2 := newScript(t, "getTemplate 200 @template\nupdateTemplate 200 @template\nlistGpuTypes 200 @gpus\ncreatePod 201 @created")
	out := r.ask(t, v2, `mutation { saveTemplate(input: {id: "tpl1", volumeInGb: 0}) { volumeInGb } }`, "")
	if want := `{"data":{"saveTemplate":{"volumeInGb":0}}}`; string(out.Body) != want {
		t.Errorf("got %s, want %s", out.Body, want)
	}
	r.ask(t, v2, `mutation { podFindAndDeployOnDemand(input: {gpuTypeId: "NVIDIA L4", templateId: "tpl1", name: "x"}) { id } }`, "")
	sent := v2.calls[len(v2.calls)-1]
	if sent.Operation != "createPod" || translate.At(sent.Body, "templateId") != nil || translate.At(sent.Body, "mounts") != nil || translate.Text(sent.Body, "image") == "" {
		t.Errorf("got %s, want the template's settings without its id and volume", show(sent))
	}
}

// TestInjectedVariablesSurviveAnEdit writes a pod's own variables back without
// the one the platform put there.
func TestInjectedVariablesSurviveAnEdit(t *testing.T) {
	r := newRig(t)
	v2 := newScript(t, "listGpuTypes 200 @gpus\ncreatePod 201 @created\ngetPod 200 @created\nupdatePod 200 @created")
	r.ask(t, v2, deployed, `{"input":{"gpuTypeId":"NVIDIA L4","imageName":"i","env":[{"key":"A","value":"1"}]}}`)
	r.ask(t, v2, `mutation { podEditJob(input: {podId: "p0d1abcd", env: []}) { id } }`, "")
	got := show(v2.calls[len(v2.calls)-1])
	if want := `updatePod p0d1abcd {"env":{"PUBLIC_KEY":"ssh-ed25519 AAAA me"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestStock(t *testing.T) {
	const document = `{ gpuTypes(input: {id: "NVIDIA H100 80GB HBM3"}) { lowestPrice(input: {gpuCount: 1}) { stockStatus uninterruptablePrice availableGpuCounts maxUnreservedGpuCount } } }`
	for _, tt := range []struct {
		answers legacy.AnswerMode
		want    string
	}{
		{legacy.Strict, `{"data":{"gpuTypes":[{"lowestPrice":{"stockStatus":"None","uninterruptablePrice":null,"availableGpuCounts":[],"maxUnreservedGpuCount":0}}]}}`},
		{legacy.Faithful, `{"data":{"gpuTypes":[{"lowestPrice":{"stockStatus":null,"uninterruptablePrice":null,"availableGpuCounts":[],"maxUnreservedGpuCount":0}}]}}`},
	} {
		r := newRig(t, func(c *graphql.Config) { c.Legacy.Answers = tt.answers })
		out := r.ask(t, newScript(t, "listGpuTypes 200 @gpus"), document, "")
		if diff := cmp.Diff(tt.want, string(out.Body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.answers, diff)
		}
	}
}

// TestSaveEndpointKeeps: fields that a change leaves out stay, although the retired
// service put some of them back to their defaults.
func TestSaveEndpointKeeps(t *testing.T) {
	v2 := newScript(t, "getEndpoint 200 @endpoint\nupdateEndpoint 200 @endpoint")
	newRig(t).ask(t, v2, `mutation { saveEndpoint(input: {id: "ep1", name: "x"}) { id } }`, "")
	if got, want := show(v2.calls[len(v2.calls)-1]), `updateEndpoint ep1 {"name":"x"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestKeysRoundTrip appends a key the way the command-line client does.
func TestKeysRoundTrip(t *testing.T) {
	r := newRig(t)
	v2 := newScript(t, `getSshKeys 200 {"keys":["ssh-rsa BBBB b","ssh-ed25519 AAAA a"]}`+"\n"+
		`updateSshKeys 200 {"keys":["ssh-rsa BBBB b","ssh-ed25519 AAAA a","ecdsa-sha2-nistp256 CCCC c"]}`)
	a := read(t, r.ask(t, v2, `query myself { myself { id pubKey } }`, ""))
	before := translate.Text(any(a.Data), "myself", "pubKey")
	raw, err := json.Marshal(map[string]any{"input": map[string]any{"pubKey": before + "\n\necdsa-sha2-nistp256 CCCC c"}})
	if err != nil {
		t.Fatal(err)
	}
	out := r.ask(t, v2, `mutation updateUserSettings($input: UpdateUserSettingsInput) { updateUserSettings(input: $input) { pubKey } }`, string(raw))
	want := `{"data":{"updateUserSettings":{"pubKey":"ssh-rsa BBBB b\nssh-ed25519 AAAA a\necdsa-sha2-nistp256 CCCC c"}}}`
	if string(out.Body) != want {
		t.Errorf("got %s, want %s", out.Body, want)
	}
	sent := `updateSshKeys {"keys":["ssh-rsa BBBB b","ssh-ed25519 AAAA a","ecdsa-sha2-nistp256 CCCC c"]}`
	if got := show(v2.calls[len(v2.calls)-1]); got != sent {
		t.Errorf("sent %s, want %s", got, sent)
	}
}

// TestClusterMembersTakeTime waits for members and gives up after a while.
func TestClusterMembersTakeTime(t *testing.T) {
	r := newRig(t)
	v2 := newScript(t, "createCluster 201 @cluster\nlistClusterPods 200 {\"pods\":[]}")
	out := r.ask(t, v2, `mutation { createCluster(input: {gpuTypeId: "g", podCount: 2, gpuCountPerPod: 1, imageName: "i"}) { id pods { id } } }`, "")
	if want := `{"data":{"createCluster":{"id":"cl1","pods":[]}}}`; string(out.Body) != want {
		t.Errorf("got %s, want %s", out.Body, want)
	}
	waited := time.Duration(0)
	for _, d := range r.clock.slept {
		waited += d
	}
	if waited != 8*time.Second {
		t.Errorf("waited %v, want 8s", waited)
	}
	if name := translate.Text(v2.calls[0].Body, "name"); !strings.HasPrefix(name, "cluster-") || len(name) != len("cluster-")+6 {
		t.Errorf("made up the name %q", name)
	}
}
