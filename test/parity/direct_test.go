package parity

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// directCases is how many cases TestSameAsThePlatform draws, in each door.
const directCases = 400

// TestSameAsThePlatform sends drawn requests to a platform directly, and through a gateway to
// another platform with the same resources, and compares the records that they lead to. What the
// gateway infers about a template or a merge must be what the platform does.
func TestSameAsThePlatform(t *testing.T) {
	t.Parallel()
	lenient := func(d *door) { // both take the halves of a command on every resource
		d.platform = platform.RunT(t, platform.Lenient(), platform.WithClock(platform.ManualClock(start)), platform.WithAccounts(directAccount()))
		d.upstream = d.platform.URL
	}
	eachDoor(t, func(t *testing.T, d *door) {
		direct := platform.RunT(t, platform.Lenient(), platform.WithClock(platform.ManualClock(start)), platform.WithAccounts(directAccount()))
		p := &pair{Rand: rand.New(rand.NewPCG(20261128, 42)), platforms: [2]*platform.Instance{direct, d.platform}, door: d}
		refused := 0
		for n := range directCases {
			c := p.draw(t)
			if p.play(t, n, c) >= http.StatusBadRequest {
				refused++
			}
			if t.Failed() {
				return
			}
		}
		if refused == 0 || refused > directCases/4 {
			t.Errorf("%d of %d cases are refused, want some and few", refused, directCases)
		}
	}, lenient)
}

func directAccount() platform.Account {
	return platform.Account{ID: "acme", Key: "pk-acme-" + canary, Balance: 1e6, WorkerQuota: 10_000}
}

// pair is a platform that is asked directly and one behind a gateway.
type pair struct {
	*rand.Rand

	platforms [2]*platform.Instance
	door      *door
}

// directCase is one request: as the platform takes it, and as a caller of the gateway writes it.
type directCase struct {
	method, path string
	// target are the ids of the resource that the request changes, empty for a create; template
	// those of the template that it names.
	target, template [2]string
	body             map[string]any
	// dialect is how the caller writes it, in request.
	dialect, request string
	// members are those of the records that are compared.
	members []string
}

// one draws one of a list.
func one[T any](p *pair, list ...T) T { return list[p.IntN(len(list))] }

// command draws the members of a command; args beside halves only rarely.
func (p *pair) command() map[string]any {
	out := map[string]any{}
	if p.IntN(4) == 0 {
		out["args"] = one(p, "", "python a.py", `sh -c 'echo "x y"' & z`, `{"entrypoint":["sh","-c"],"cmd":["a b"]}`, `{"cmd":["z"]}`, ` {"entrypoint": ["e"]}`)
		if p.IntN(4) > 0 {
			return out
		}
	}
	for _, half := range []string{"cmd", "entrypoint"} {
		if p.IntN(5) > 1 {
			out[half] = one(p, []string{}, []string{"c"}, []string{"sh", "-c"}, []string{"python", "a b.py"}, []string{`it's <"&>`, "é", ""})
		}
	}
	return out
}

// agrees reports whether a command is one that the platform takes.
func agrees(command map[string]any) bool { return command["args"] == nil || len(command) == 1 }

// container draws members that pods, templates and endpoints share.
func (p *pair) container(image bool) map[string]any {
	out := p.command()
	if image || p.IntN(2) == 0 {
		out["image"] = one(p, "img:1", "img:2")
	}
	if p.IntN(3) > 0 {
		out["env"] = one(p, map[string]string{}, map[string]string{"A": "1"}, map[string]string{"A": "2", "B": "3"})
	}
	if p.IntN(3) == 0 {
		out["ports"] = one(p, []string{}, []string{"22/tcp"}, []string{"80/http", "22/tcp"})
	}
	if p.IntN(3) == 0 {
		out["disk"] = one(p, 5, 40)
	}
	return out
}

// accepted is container with a command that the platform takes.
func (p *pair) accepted() map[string]any {
	for {
		out := p.container(true)
		command := map[string]any{}
		for _, name := range []string{"args", "cmd", "entrypoint"} {
			if v, given := out[name]; given {
				command[name] = v
			}
		}
		if agrees(command) {
			return out
		}
	}
}

// draw draws a request, and makes the resources that it needs on both platforms.
func (p *pair) draw(t *testing.T) *directCase {
	t.Helper()
	c := &directCase{dialect: "v2", members: []string{"image", "args", "cmd", "entrypoint", "disk", "env", "ports", "registry", "mounts"}}
	kind, update := one(p, "pod", "pod", "endpoint", "template"), p.IntN(2) == 0
	if kind != "template" && p.IntN(3) > 0 {
		body := p.accepted()
		body["name"], body["serverless"] = "t", kind == "endpoint"
		body["startSsh"], body["startJupyter"] = p.IntN(2) == 0, p.IntN(4) == 0
		c.template = p.make(t, "/v2/templates", body)
	}
	named := c.template[0] != ""
	c.method, c.path = "POST", map[string]string{"pod": "/v2/pods", "endpoint": "/v2/serverless", "template": "/v2/templates"}[kind]
	c.body = p.container(!named && !update)
	if update {
		made := p.accepted()
		maps.Copy(made, required(kind))
		c.target = p.make(t, c.path, made)
		c.method = "PATCH"
	} else {
		maps.Copy(c.body, required(kind))
	}
	if p.IntN(2) == 0 {
		p.legacy(c, kind, named, update)
	}
	return c
}

// required are the other members of a create.
func required(kind string) map[string]any {
	switch kind {
	case "pod":
		return map[string]any{"name": "p", "gpu": map[string]any{"id": "NVIDIA L4"}}
	case "endpoint":
		return map[string]any{
			"name": "e", "type": "QUEUE", "gpu": map[string]any{"pools": []string{"ADA_24"}}, "workers": map[string]any{"max": 1},
			"scaling": map[string]any{"type": "QUEUE_DELAY", "queueDelay": 4},
		}
	}
	return map[string]any{"name": "t", "serverless": true, "startSsh": false, "startJupyter": false}
}

// make makes a resource on both platforms and returns its ids.
func (p *pair) make(t *testing.T, path string, body map[string]any) (ids [2]string) {
	t.Helper()
	for i := range ids {
		status, made := p.ask(t, i, "POST", path, body)
		if status != http.StatusCreated {
			t.Fatalf("POST %s %v: %d %v", path, body, status, made)
		}
		ids[i], _ = made["id"].(string)
	}
	return ids
}

// ask asks one of the platforms directly.
func (p *pair) ask(t *testing.T, i int, method, path string, body map[string]any) (status int, doc map[string]any) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(encoded(t, body)))
	if body == nil {
		req = httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	}
	req.Header.Set("Authorization", "Bearer pk-acme-"+canary)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	p.platforms[i].ServeHTTP(rec, req)
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
			t.Fatalf("%s %s: %d %s", method, path, rec.Code, rec.Body)
		}
	}
	return rec.Code, doc
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// play sends the case both ways, compares what came of it, and removes what it made.
func (p *pair) play(t *testing.T, n int, c *directCase) (status int) {
	t.Helper()
	with := func(i int) map[string]any {
		body := maps.Clone(c.body)
		if c.template[i] != "" {
			body["templateId"] = c.template[i]
		}
		return body
	}
	path := func(i int) string { return strings.TrimSuffix(c.path+"/"+c.target[i], "/") }
	status, record := p.ask(t, 0, c.method, path(0), with(0))
	var a answer
	if c.dialect == "v2" {
		a = p.door.ask(t, request(c.method, path(1), "key_exempt", string(encoded(t, with(1)))))
	} else {
		parts := strings.SplitN(strings.NewReplacer("TEMPLATE", c.template[1], "TARGET", c.target[1]).Replace(c.request), " ", 3)
		a = p.door.ask(t, request(parts[0], parts[1], "key_exempt", parts[2]))
	}
	id := idOf(t, a)
	if (status < 300) != (a.Status < 300 && id != "") || c.dialect == "v2" && status != a.Status {
		t.Errorf("case %d, %s %s by %s, %s on %v: the platform answers %d, the gateway %d %s", n, c.method, c.path, c.dialect, encoded(t, c.body), c.template, status, a.Status, a.Body)
	}
	if status >= 300 || t.Failed() {
		return status
	}
	_, behind := p.ask(t, 1, "GET", c.path+"/"+id, nil)
	want, got := map[string]any{}, map[string]any{}
	for _, name := range c.members {
		want[name], got[name] = masked(record[name]), masked(behind[name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("case %d, %s %s by %s, %s%s on %v (-direct +through the gateway):\n%s", n, c.method, c.path, c.dialect, encoded(t, c.body), c.request, c.template, diff)
	}
	first, _ := record["id"].(string)
	for i, made := range []string{first, id} {
		p.ask(t, i, "DELETE", c.path+"/"+made, nil)
	}
	return status
}

// masked is a member of a record without generated passwords.
func masked(v any) any {
	if env, isEnv := v.(map[string]any); isEnv && env["JUPYTER_PASSWORD"] != nil {
		env["JUPYTER_PASSWORD"] = "generated"
	}
	return v
}

// idOf is the id of the record in an answer, "" of a refusal.
func idOf(t *testing.T, a answer) string {
	t.Helper()
	doc, _ := decoded(t, a).(map[string]any)
	if data, nested := doc["data"].(map[string]any); nested {
		for _, v := range data {
			doc, _ = v.(map[string]any)
		}
	}
	id, _ := doc["id"].(string)
	return id
}

// legacy makes a case one of a legacy dialect, if that can say it: members in which the dialects
// have defaults of their own are left out, and so are halves where it has only a line.
func (p *pair) legacy(c *directCase, kind string, named, update bool) {
	_, args := c.body["args"]
	for _, name := range []string{"env", "ports", "disk"} {
		delete(c.body, name)
	}
	c.members = []string{"image", "args", "cmd", "entrypoint"}
	if args {
		p.graphQL(c, kind, named, update)
	} else {
		p.v1(c, kind, named, update)
	}
	if c.dialect == "v2" {
		c.members = append(c.members, "disk", "env", "ports", "registry", "mounts")
	}
}

// v1 writes a case for v1, whose commands are halves. Without a template, an empty half is no
// half (reference v1-to-v2, section 5.1).
func (p *pair) v1(c *directCase, kind string, named, update bool) {
	if kind == "endpoint" {
		return // it has no command of its own
	}
	if kind == "pod" && update && named {
		return // a change names no template
	}
	body := map[string]any{}
	for from, to := range map[string]string{"cmd": "dockerStartCmd", "entrypoint": "dockerEntrypoint", "image": "imageName"} {
		if v, given := c.body[from]; given {
			body[to] = v
		}
	}
	path, method := map[string]string{"pod": "/v1/pods", "template": "/v1/templates"}[kind], c.method
	switch {
	case update:
		path += "/TARGET"
		if len(body) == 0 {
			return
		}
	case kind == "pod":
		maps.Copy(body, map[string]any{"name": "p", "gpuTypeIds": []string{"NVIDIA L4"}})
	default:
		maps.Copy(body, map[string]any{"name": "t", "isServerless": true})
	}
	if named {
		body["templateId"] = "TEMPLATE"
	}
	c.dialect, c.request = "v1", requestLater(method, path, body)
}

// graphQL writes a case for GraphQL, whose commands are lines. An empty line of a create is no
// line (reference graphql-to-v2, section 5.1).
func (p *pair) graphQL(c *directCase, kind string, named, update bool) {
	delete(c.body, "cmd")
	delete(c.body, "entrypoint")
	if update {
		return
	}
	var input map[string]any
	field, typ := "podFindAndDeployOnDemand", "PodFindAndDeployOnDemandInput"
	switch container := map[string]any{"imageName": c.body["image"], "dockerArgs": c.body["args"]}; kind {
	case "pod":
		input = container
		maps.Copy(input, map[string]any{"name": "p", "gpuTypeId": "NVIDIA L4", "cloudType": "SECURE"})
	case "template":
		field, typ, input = "saveTemplate", "SaveTemplateInput", container
		maps.Copy(input, map[string]any{"name": "t", "isServerless": true, "containerDiskInGb": 5, "volumeInGb": 0, "env": []any{}})
	default:
		field, typ = "saveEndpoint", "EndpointInput"
		input = map[string]any{"name": "e", "gpuIds": "ADA_24", "workersMax": 1, "template": container}
	}
	if named {
		input["templateId"] = "TEMPLATE"
	}
	if c.body["args"] == "" {
		delete(c.body, "args")
	}
	c.dialect, c.request = "GraphQL", requestLater("POST", "/graphql", map[string]any{
		"query":     "mutation($i: " + typ + ") { f: " + field + "(input: $i) { id } }",
		"variables": map[string]any{"i": input},
	})
}

// requestLater is a request in whose path and body the ids of the case are filled in.
func requestLater(method, path string, body map[string]any) string {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return method + " " + path + " " + string(text)
}
