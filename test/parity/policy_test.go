package parity

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// under replaces acme's policies of the tests' configuration.
func under(policies string) option {
	return func(d *door) {
		before, rest, _ := strings.Cut(configuration, "    policies:\n")
		_, after, _ := strings.Cut(rest, "\n    teams:")
		d.text = before + "    policies:\n" + indent(policies) + "    teams:" + after
	}
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		b.WriteString("      " + line)
	}
	return b.String()
}

// between puts a hand between gateway and platform: it sees each request
// before the platform does, and each answer's status before the gateway does.
func between(t *testing.T, before, after func(d *door, r *http.Request)) option {
	t.Helper()
	return func(d *door) {
		target, err := url.Parse(d.upstream)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{}
		proxy := &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
			Transport: transport,
			ModifyResponse: func(r *http.Response) error {
				after(d, r.Request)
				return nil
			},
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			before(d, r)
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(func() {
			s.Close()
			transport.CloseIdleConnections()
		})
		d.upstream = s.URL
	}
}

// asPlatform makes a call straight on the platform's account, beside the
// gateway.
func (d *door) asPlatform(t *testing.T, method, path, body string) map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, d.platform.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer pk-acme-"+canary)
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var doc map[string]any
	if res.StatusCode != http.StatusNoContent {
		if err := json.NewDecoder(res.Body).Decode(&doc); err != nil {
			t.Fatal(err)
		}
	}
	if res.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %v", method, path, res.StatusCode, doc)
	}
	return doc
}

// lastBody is the body of the last call to an operation as the platform saw it.
func (d *door) lastBody(t *testing.T, operation string) map[string]any {
	t.Helper()
	calls := d.platform.CallsTo(operation)
	if len(calls) == 0 {
		t.Fatalf("%s never reached the platform", operation)
	}
	var doc map[string]any
	if err := json.Unmarshal(calls[len(calls)-1].Body, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// refusedBy names the policies of a refusal, with their fields.
func refusedBy(t *testing.T, a answer) []string {
	t.Helper()
	var body struct {
		Policies []struct{ Policy, Field string }
	}
	if err := json.Unmarshal([]byte(a.Body), &body); err != nil {
		t.Fatalf("body %s: %v", a.Body, err)
	}
	var out []string
	for _, p := range body.Policies {
		out = append(out, strings.TrimSpace(p.Policy+" "+p.Field))
	}
	return out
}

func wantRefusal(t *testing.T, a answer, want ...string) {
	t.Helper()
	if a.Status != 403 {
		t.Fatalf("%d %s, want 403 by %v", a.Status, a.Body, want)
	}
	if diff := cmp.Diff(want, refusedBy(t, a)); diff != "" {
		t.Errorf("refused by (-want +got):\n%s", diff)
	}
}

const (
	smallEndpoint = `{"name":"e","type":"QUEUE","image":"img:1","gpu":{"pools":["ADA_24"]},` +
		`"scaling":{"type":"QUEUE_DELAY","queueDelay":4},"workers":{"max":1}}`
	workersAndImages = `
- policy: serverless_workers
  params: {max_workers: 3}
- policy: gpu_count
  params: {max_per_pod: 2, max_per_resource: 4}
- policy: images
  params: {allow: [ghcr.io/acme, docker.io/library]}
`
)

// An endpoint that was created small cannot be made large afterwards: each change is judged on the state
// it leads to.
func TestCreateSmallPatchBig(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		created := d.ask(t, request("POST", "/v2/serverless", "key_platform", smallEndpoint))
		if created.Status != 201 {
			t.Fatalf("create: %d %s", created.Status, created.Body)
		}
		at := "/v2/serverless/" + fmt.Sprint(field(t, created.Body, "id"))
		patch := func(body string) answer { return d.ask(t, request("PATCH", at, "key_platform", body)) }
		wantRefusal(t, patch(`{"workers":{"max":500}}`), "gpu_count /workers/max", "serverless_workers /workers/max")
		if a := patch(`{"workers":{"max":2}}`); a.Status != 200 {
			t.Errorf("two workers: %d %s", a.Status, a.Body)
		}
		// Two GPUs are allowed for one worker, and now there may be three.
		if a := patch(`{"gpu":{"count":2}}`); a.Status != 200 {
			t.Errorf("two GPUs for each of two: %d %s", a.Status, a.Body)
		}
		wantRefusal(t, patch(`{"workers":{"max":3}}`), "gpu_count /workers/max")
		wantRefusal(t, patch(`{"gpu":{"count":8}}`), "gpu_count /gpu/count", "gpu_count /workers/max")
		if n := len(d.platform.CallsTo("updateEndpoint")); n != 2 {
			t.Errorf("%d changes reached the platform, want the 2 allowed", n)
		}
	}, under(workersAndImages))
}

// A template's content is judged as if it stood in the body, when it is used.
func TestTemplatesAreJudged(t *testing.T) {
	t.Parallel()
	const fromTemplate = `{"name":"a","templateId":"%s","gpu":{"id":"NVIDIA L4"}}`
	eachDoor(t, func(t *testing.T, d *door) {
		made := d.ask(t, request("POST", "/v2/templates", "key_platform", `{"name":"t","image":"ghcr.io/acme/train:1","env":{"A":"t","B":"t"},"ports":["22/tcp"]}`))
		if made.Status != 201 {
			t.Fatalf("template: %d %s", made.Status, made.Body)
		}
		id := fmt.Sprint(field(t, made.Body, "id"))
		create := func() answer {
			return d.ask(t, request("POST", "/v2/pods", "key_platform", fmt.Sprintf(fromTemplate, id)))
		}
		pod := create()
		if pod.Status != 201 {
			t.Fatalf("from an allowed template: %d %s", pod.Status, pod.Body)
		}
		// Edited behind the gateway's back: its state at the time of use counts.
		d.asPlatform(t, "PATCH", "/v2/templates/"+id, `{"image":"evil.example/miner:1"}`)
		d.advance(3 * time.Second)
		wantRefusal(t, create(), "images /image")
		at := "/v2/pods/" + fmt.Sprint(field(t, pod.Body, "id"))
		wantRefusal(t, d.ask(t, request("PATCH", at, "key_platform", `{"templateId":"`+id+`"}`)), "images /image")
		// The body wins over its template.
		if a := d.ask(t, request("PATCH", at, "key_platform", `{"templateId":"`+id+`","image":"ghcr.io/acme/train:2","env":{"A":"mine"}}`)); a.Status != 200 {
			t.Fatalf("patch: %d %s", a.Status, a.Body)
		}
		want := map[string]any{
			"image": "ghcr.io/acme/train:2", "disk": 20.0, "ports": []any{"22/tcp"}, "registry": nil, "args": "",
			"env": map[string]any{"A": "mine", "B": "t"},
		}
		if diff := cmp.Diff(want, d.lastBody(t, "updatePod")); diff != "" {
			t.Errorf("what was sent (-want +got):\n%s", diff)
		}
	}, under(workersAndImages))
}

// The judged template is the one that is sent: a template that is edited between the gateway's
// look at it and the platform's is of no use.
func TestATemplateEditedInBetween(t *testing.T) {
	t.Parallel()
	var id atomic.Value
	edit := func(d *door, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/v2/templates/"+id.Load().(string) {
			d.asPlatform(t, "PATCH", r.URL.Path, `{"image":"evil.example/miner:1","env":{"LD_PRELOAD":"/evil.so"},"args":"mine",
				"mounts":{"persistent":{"size":500,"path":"/w"}},"startSsh":true,"allowedCudaVersions":["12.4"],"ports":["22/tcp"],"disk":900}`)
		}
	}
	id.Store("")
	eachDoor(t, func(t *testing.T, d *door) {
		made := d.asPlatform(t, "POST", "/v2/templates", `{"name":"t","image":"ghcr.io/acme/train:1","args":"run --fast","env":{"A":"t"},
			"startSsh":false,"startJupyter":false,"disk":40}`)
		id.Store(made["id"].(string))
		a := d.ask(t, request("POST", "/v2/pods", "key_platform", `{"name":"a","templateId":"`+id.Load().(string)+`","gpu":{"id":"NVIDIA L4"},"env":{"B":"mine"}}`))
		if a.Status != 201 {
			t.Fatalf("create: %d %s", a.Status, a.Body)
		}
		want := map[string]any{
			"name": "a", "image": "ghcr.io/acme/train:1", "args": "run --fast", "disk": 40.0, "ports": []any{},
			"env": map[string]any{"A": "t", "B": "mine"}, "startSsh": false, "startJupyter": false,
			"gpu": map[string]any{"id": "NVIDIA L4", "allowedCudaVersions": []any{}},
		}
		if diff := cmp.Diff(want, d.lastBody(t, "createPod")); diff != "" {
			t.Errorf("what was sent (-want +got):\n%s", diff)
		}
		if image := field(t, a.Body, "image"); image != "ghcr.io/acme/train:1" {
			t.Errorf("the pod runs %v", image)
		}
	}, under(workersAndImages), between(t, func(*door, *http.Request) {}, edit))
}

// A template nobody has is the platform's 404, whether it is asked for by the
// caller or by a policy.
func TestAnUnknownTemplate(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		direct := d.ask(t, request("GET", "/v2/templates/nope1234", "key_platform", ""))
		for name, raw := range map[string]string{
			"create a pod":       request("POST", "/v2/pods", "key_platform", `{"name":"a","templateId":"nope1234","gpu":{"id":"NVIDIA L4"}}`),
			"no id at all":       request("POST", "/v2/pods", "key_platform", `{"name":"a","templateId":"../pods","gpu":{"id":"NVIDIA L4"}}`),
			"create an endpoint": request("POST", "/v2/serverless", "key_platform", `{"name":"a","type":"QUEUE","templateId":"nope1234","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`),
		} {
			a := d.ask(t, raw)
			if a.Status != 404 || direct.Status != 404 || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json") {
				t.Errorf("%s: %d %s, want 404 as for the template itself: %d %s", name, a.Status, a.Body, direct.Status, direct.Body)
			}
		}
		for _, op := range []string{"createPod", "createEndpoint"} {
			if n := len(d.platform.CallsTo(op)); n != 0 {
				t.Errorf("%d calls of %s reached the platform", n, op)
			}
		}
	}, under(workersAndImages))
}

// A change that the platform would refuse because of the object's state is refused as the platform
// does.
func TestChangesThatCannotBeMerged(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		pod := d.asPlatform(t, "POST", "/v2/pods", `{"name":"a","image":"docker.io/library/nginx:1","gpu":{"id":"NVIDIA L4"}}`)
		endpoint := d.asPlatform(t, "POST", "/v2/serverless", smallEndpoint)
		volume := d.asPlatform(t, "POST", "/v2/network-volumes", `{"name":"v","size":100,"dataCenter":"EU-RO-1"}`)
		for name, tc := range map[string]struct {
			path, body string
			want       int
		}{
			"a mount the pod never had": {"/v2/pods/" + fmt.Sprint(pod["id"]), `{"mounts":{"persistent":{"size":20,"path":"/w"}}}`, 400},
			"CPUs for a GPU endpoint":   {"/v2/serverless/" + fmt.Sprint(endpoint["id"]), `{"cpu":[{"id":"cpu5c","vcpuCount":4}]}`, 400},
			"a smaller volume":          {"/v2/network-volumes/" + fmt.Sprint(volume["id"]), `{"size":50}`, 400},
			"template id is empty":      {"/v2/pods/" + fmt.Sprint(pod["id"]), `{"templateId":""}`, 422},
			"a pod that is not there":   {"/v2/pods/nope1234", `{"name":"b"}`, 404},
		} {
			if a := d.ask(t, request("PATCH", tc.path, "key_platform", tc.body)); a.Status != tc.want {
				t.Errorf("%s: %d %s, want %d", name, a.Status, a.Body, tc.want)
			}
		}
	}, under(workersAndImages))
}

// A start is priced by the pod that would run: a pod that was allowed when it was created may be
// too dear by now.
func TestAStartIsJudgedByThePodItStarts(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		pod := d.ask(t, request("POST", "/v2/pods", "key_platform", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`))
		if pod.Status != 201 {
			t.Fatalf("create: %d %s", pod.Status, pod.Body)
		}
		at := "/v2/pods/" + fmt.Sprint(field(t, pod.Body, "id")) + "/action"
		d.advance(time.Minute)
		if a := d.ask(t, request("POST", at, "key_platform", `{"action":"stop"}`)); a.Status != 200 {
			t.Fatalf("stop: %d %s", a.Status, a.Body)
		}
		if err := d.platform.SetPrice("NVIDIA L4", platform.Price{Secure: 9, Community: 9, Serverless: 9}); err != nil {
			t.Fatal(err)
		}
		d.advance(2 * time.Hour) // past any price list's age
		wantRefusal(t, d.ask(t, request("POST", at, "key_platform", `{"action":"start"}`)), "price_ceiling /gpu")
		if a := d.ask(t, request("POST", at, "key_platform", `{"action":"terminate"}`)); a.Status != 200 && a.Status != 204 {
			t.Errorf("terminate: %d %s", a.Status, a.Body)
		}
	}, under(`
- policy: price_ceiling
  params: {max_usd_per_hour: 5}
`))
}

// Storage costs too, however it comes about; a ceiling per GPU-hour is about the GPUs.
func TestStorageCountsTowardsTheCeiling(t *testing.T) {
	t.Parallel()
	const l4 = `"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}`
	eachDoor(t, func(t *testing.T, d *door) {
		template := fmt.Sprint(d.asPlatform(t, "POST", "/v2/templates", `{"name":"big","image":"i:1","mounts":{"persistent":{"size":60000,"path":"/w"}}}`)["id"])
		for name, body := range map[string]string{
			"/v2/pods mount":      `{` + l4 + `,"mounts":{"persistent":{"size":65536,"path":"/w"}}}`,
			"/v2/pods disk":       `{` + l4 + `,"disk":65536}`,
			"/v2/pods template":   `{"name":"a","gpu":{"id":"NVIDIA L4"},"templateId":"` + template + `"}`,
			"/v2/serverless disk": `{"name":"e","image":"i:1","type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"cpu":[{"id":"cpu5c","vcpuCount":2}],"disk":10000}`,
		} {
			path, _, _ := strings.Cut(name, " ")
			pointer := "/gpu"
			if path == "/v2/serverless" {
				pointer = "/cpu"
			}
			wantRefusal(t, d.ask(t, request("POST", path, "key_platform", body)), "price_ceiling "+pointer)
		}
		pod := d.ask(t, request("POST", "/v2/pods", "key_platform", `{`+l4+`,"disk":1000,"mounts":{"persistent":{"size":1000,"path":"/w"}}}`))
		if pod.Status != 201 {
			t.Fatalf("a pod with moderate storage: %d %s", pod.Status, pod.Body)
		}
		wantRefusal(t, d.ask(t, request("PATCH", "/v2/pods/"+fmt.Sprint(field(t, pod.Body, "id")), "key_platform", `{"disk":65536}`)), "price_ceiling /gpu")
	}, under(`
- policy: price_ceiling
  params: {max_usd_per_hour: 2, max_usd_per_gpu_hour: 0.43}
`))
}

// A policy that looks at the object as it is sees it, also where the call
// changes nothing the caller chose.
func TestPoliciesSeeTheObjectOfADelete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "keep.rego", `package policies.keep

deny contains {"message": "this pod stays", "pointer": ""} if {
	input.request.verb in {"delete", "stop", "logs"}
	startswith(input.resource.current.name, "keep-")
}
`)
	eachDoor(t, func(t *testing.T, d *door) {
		kept := fmt.Sprint(d.asPlatform(t, "POST", "/v2/pods", `{"name":"keep-1","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)["id"])
		other := fmt.Sprint(d.asPlatform(t, "POST", "/v2/pods", `{"name":"b","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)["id"])
		for name, raw := range map[string]string{
			"delete":    request("DELETE", "/v2/pods/"+kept, "key_platform", ""),
			"terminate": request("POST", "/v2/pods/"+kept+"/action", "key_platform", `{"action":"terminate"}`),
			"stop":      request("POST", "/v2/pods/"+kept+"/action", "key_platform", `{"action":"stop"}`),
			"logs":      request("GET", "/v2/pods/"+kept+"/logs", "key_platform", ""),
			"v1 delete": request("DELETE", "/v1/pods/"+kept, "key_platform", ""),
		} {
			if a := d.ask(t, raw); a.Status != 403 || !strings.Contains(a.Body, "this pod stays") {
				t.Errorf("%s: %d %s, want 403", name, a.Status, a.Body)
			}
		}
		if reads := len(d.platform.CallsTo("getPod")); reads != 1 {
			t.Errorf("the pod was read %d times within a moment, want once", reads)
		}
		if a := d.ask(t, request("DELETE", "/v2/pods/"+other, "key_platform", "")); a.Status != 204 {
			t.Errorf("another pod: %d %s", a.Status, a.Body)
		}
	}, ownRego(dir))
}

// ownRego puts a directory of Rego in place of acme's policies.
func ownRego(dir string) option {
	return func(d *door) {
		before, rest, _ := strings.Cut(configuration, "    policies:\n")
		_, after, _ := strings.Cut(rest, "\n    teams:")
		d.text = before + "    rego: " + dir + "\n    teams:" + after
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A reference to a secret in the name of a variable is refused in each dialect, although
// the policy lets a value refer to any.
func TestNamesOfVariablesReferToNoSecret(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		const name = "{{ ACME_SECRET_hf }}"
		for _, tc := range []struct {
			method, path, body string
		}{
			{"POST", "/v2/pods", `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"},"env":{"NAME":"VALUE"}}`},
			{"POST", "/v1/pods", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"env":{"NAME":"VALUE"}}`},
			{"POST", "/graphql", `{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", env: [{key: \"NAME\", value: \"VALUE\"}]}) { id } }"}`},
		} {
			ask := func(key, value string) answer {
				return d.ask(t, request(tc.method, tc.path, "key_research", strings.NewReplacer("NAME", key, "VALUE", value).Replace(tc.body)))
			}
			if a := ask("A", name); a.Status >= 300 || strings.Contains(a.Body, "errors") {
				t.Errorf("%s, in a value: %d %s, want it made", tc.path, a.Status, a.Body)
			}
			if a := ask(name, "x"); a.Status < 300 && !strings.Contains(a.Body, "errors") || !strings.Contains(a.Body, "must not refer to a secret") {
				t.Errorf("%s, in a name: %d %s, want it refused for the secret", tc.path, a.Status, a.Body)
			}
		}
	}, under("- policy: env_rules"))
}
