package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// kind is one kind of request.
type kind struct {
	name string
	// base is the kind the bare proxy's cost is taken of.
	base   string
	status int
	// request is its bytes, with the id of the pod there is for {pod}.
	request string
	// without is what an answer does not contain, if not empty.
	without string
	// judged marks answers that only a target with policies gives.
	judged bool
	// runs marks kinds of the run interface.
	runs bool
	// open marks the open load, which is sent at a rate.
	open bool
	// live marks streams that stay open, of which each event is measured.
	live bool
}

// kinds lists the measured requests. To add one, add a row: where an answer is not the one
// expected, as when an interface does not exist yet, the kind is left out and the report
// says so.
func kinds() []kind {
	create := rest("POST", "/v2/pods", podBody("run-"+requestMark, "NVIDIA L4", ""))
	const bearer = "bench-caller-" + callerMark
	swap := func(request, old, by string) string { return strings.ReplaceAll(request, old, by) }
	return []kind{
		{name: "read", base: "read", status: 200, request: get("/v2/pods/{pod}")},
		{name: "list", base: "list", status: 200, request: get("/v2/pods")},
		{name: "list-1MB", base: "list-1MB", status: 200, request: get("/v2/templates")},
		{name: "create", base: "create", status: 201, request: create},
		{name: "create-401", base: "create", status: 401, judged: true, request: swap(create, bearer, "bench-nobody-"+callerMark)},
		{name: "create-422", base: "create", status: 422, judged: true, request: rest("POST", "/v2/pods", podBody("run-"+requestMark, "NVIDIA L4", `,"bogus":true`))},
		{name: "create-403", base: "create", status: 403, judged: true, request: rest("POST", "/v2/pods", podBody("run-"+requestMark, "NVIDIA H200", ""))},
		{name: "create-429", base: "create", status: 429, judged: true, request: swap(create, bearer, spentKey)},
		{name: "v1-create", base: "create", status: 201, judged: true, request: rest("POST", "/v1/pods", encode(map[string]any{
			"name": "run-" + requestMark, "imageName": image, "gpuTypeIds": []string{"NVIDIA L4"}, "containerDiskInGb": 40, "volumeInGb": 0,
			"ports": []string{"8888/http", "22/tcp"}, "env": map[string]string{"STAGE": "bench", "RUN": requestMark, "NOTE": note},
		}))},
		{name: "v1-list", base: "list", status: 200, judged: true, request: get("/v1/pods")},
		{name: "graphql-create", base: "create", status: 200, without: `"errors"`, judged: true, request: rest("POST", "/graphql", encode(map[string]any{
			"query": `mutation { podFindAndDeployOnDemand(input: {name: "run-` + requestMark + `", imageName: "` + image + `",
				gpuTypeId: "NVIDIA L4", cloudType: SECURE, gpuCount: 1, containerDiskInGb: 40, volumeInGb: 0, ports: "8888/http,22/tcp",
				env: [{key: "STAGE", value: "bench"}, {key: "RUN", value: "` + requestMark + `"}, {key: "NOTE", value: "` + note + `"}]}) { id desiredStatus } }`,
		}))},
		{name: "runsync", base: "runsync", runs: true, status: 200, request: rest("POST", runPath, job(1<<10))},
		{name: "runsync-1MB", base: "runsync-1MB", runs: true, status: 200, request: rest("POST", runPath, job(1<<20))},
		{name: "chat", base: "chat", runs: true, status: 200, request: rest("POST", chatPath,
			`{"model":"bench","stream":true,"max_tokens":200,"messages":[{"role":"user","content":"run `+requestMark+`"}]}`)},
		{name: "events", base: "events", runs: true, live: true, status: 200, request: liveRequest},
		{name: "create-open", base: "create-open", status: 201, open: true, request: create},
		{name: "read-open", base: "read-open", status: 200, open: true, request: get("/v2/pods/{pod}")},
	}
}

// liveRequest opens a stream of events that does not end.
var liveRequest = rest("POST", livePath, `{"model":"bench","stream":true,"max_tokens":200,"prompt":"run `+requestMark+`"}`)

const image = "registry.example/team/trainer:2.4.1"

// note fills the body of a create to about 540 bytes.
var note = strings.Repeat("x", 280)

// podBody is a create that differs from call to call in name and environment.
func podBody(name, gpu, more string) string {
	return fmt.Sprintf(`{"name":%q,"image":%q,"gpu":{"id":%q,"count":1},"cloud":"SECURE","disk":40,"ports":["8888/http","22/tcp"],`+
		`"env":{"STAGE":"bench","RUN":%q,"NOTE":%q}%s}`, name, image, gpu, requestMark, note, more)
}

// job is a job of about size bytes, a list of numbers and words like those of
// embeddings and documents.
func job(size int) string {
	const part = `{"text":"the quick brown fox jumps over the lazy dog","score":0.125,"at":[1,2,3]},`
	return `{"input":{"run":"` + requestMark + `","parts":[` + strings.TrimSuffix(strings.Repeat(part, max(1, size/len(part))), ",") + `]}}`
}

func rest(method, target, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer bench-caller-%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, target, callerMark, len(body), body)
}

func get(target string) string {
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer bench-caller-%s\r\n\r\n", target, callerMark)
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // strings, numbers and lists of them always encode
		panic(err)
	}
	return string(b)
}
