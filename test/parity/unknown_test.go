package parity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// newer is a platform that has more than the emulator: any member at the top of a
// body, the collection notebooks, and insights of what there is.
type newer struct {
	mu    sync.Mutex // guards calls
	calls []string   // method, target and body of what the emulator does not have
}

// before puts the newer platform in front of the door's own.
func (n *newer) before(t *testing.T, d *door) {
	t.Helper()
	base, err := url.Parse(d.platform.URL)
	if err != nil {
		t.Fatal(err)
	}
	emulator := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(base) }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		members := map[string]json.RawMessage{}
		if len(body) > 0 && json.Unmarshal(body, &members) != nil {
			t.Errorf("the platform was sent %q", body)
		}
		note := func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.calls = append(n.calls, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		}
		if strings.HasPrefix(r.URL.Path, "/v2/notebooks") || strings.HasSuffix(r.URL.Path, "/insights") {
			note()
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"notebooks":[]}`)
			return
		}
		known := len(members)
		for _, name := range []string{"priority", "annotations"} {
			delete(members, name)
		}
		if len(members) < known {
			note()
			body, _ = json.Marshal(members)
			r.ContentLength = int64(len(body))
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		emulator.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	d.upstream = s.URL
}

// seen returns the calls received since it was asked last.
func (n *newer) seen() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	calls := n.calls
	n.calls = nil
	return calls
}

// eachDoorToNewer is eachDoor with a newer platform, and with settings of acme.
func eachDoorToNewer(t *testing.T, settings string, body func(t *testing.T, d *door, n *newer), opts ...option) {
	t.Helper()
	for _, name := range []string{"http", "envoy"} {
		t.Run(name, func(t *testing.T) {
			n := new(newer)
			d := openDoor(t, name, append(opts, func(d *door) {
				n.before(t, d)
				d.text = strings.Replace(d.text, "    credential: {env: ACME}\n", "    credential: {env: ACME}\n"+settings, 1)
			})...)
			body(t, d, n)
		})
	}
}

// forwardsUnknown are the settings under which unknown operations and members pass.
const forwardsUnknown = "    unknown: {members: forward, reads: forward}\n"

// Members that only the platform knows are refused, unless the organisation has them
// forwarded; then the platform gets them as they were parsed.
func TestUnknownMembers(t *testing.T) {
	const template = `{"name":"t","image":"i:1", "annotations" : {"b":1.50,"a":"\u0041"},"priority":"high"}`
	for settings, passes := range map[string]bool{"": false, forwardsUnknown: true} {
		t.Run(settings, func(t *testing.T) {
			eachDoorToNewer(t, settings, func(t *testing.T, d *door, n *newer) {
				got := d.ask(t, request("POST", "/v2/templates", "key_platform", template))
				if !passes {
					if calls := n.seen(); got.Status != 422 || len(calls) > 0 || !strings.Contains(got.Body, "'annotations'") {
						t.Errorf("%d %s, %v; want 422 without a call", got.Status, got.Body, calls)
					}
					return
				}
				const sent = `POST /v2/templates {"annotations":{"a":"A","b":1.50},"image":"i:1","name":"t","priority":"high"}`
				if calls := n.seen(); got.Status != 201 || !slices.Equal(calls, []string{sent}) {
					t.Errorf("%d %s\ngot  %q\nwant %q", got.Status, got.Body, calls, sent)
				}
				if told := got.Header.Get("X-Tollgate-Unknown"); told != `members=("/annotations" "/priority")` {
					t.Errorf("X-Tollgate-Unknown: %s", told)
				}
				events := d.logs.Exchanges(t)
				if last, _ := json.Marshal(events[len(events)-1]["unknown"]); string(last) != `["/annotations","/priority"]` {
					t.Errorf("the event has unknown: %s", last)
				}
				// A call with a cost is not judged by a price that may be wrong.
				pod := d.ask(t, request("POST", "/v2/pods", "key_platform", `{"name":"p","image":"i:1","gpu":{"id":"NVIDIA L4"},"priority":"high"}`))
				if calls := n.seen(); pod.Status != 403 || !strings.Contains(pod.Body, "price_ceiling") || !strings.Contains(pod.Body, "/priority") || len(calls) > 0 || pod.Header.Get("X-Tollgate-Unknown") != "" {
					t.Errorf("a pod under a price ceiling: %d %s %v %v, want 403 for the cost that is not known", pod.Status, pod.Body, pod.Header, calls)
				}
				// The legacy dialects have no such members.
				old := d.ask(t, request("POST", "/v1/templates", "key_platform", `{"name":"u","imageName":"i:1","priority":"high"}`))
				if calls := n.seen(); len(calls) > 0 {
					t.Errorf("v1: %d, and the platform was sent %v", old.Status, calls)
				}
			})
		})
	}
}

// A budget in money is not held by a price that unknown members may change; a call that they
// cannot make dearer passes.
func TestUnknownMembersUnderABudget(t *testing.T) {
	t.Parallel()
	unpriced := func(d *door) {
		d.text = strings.Replace(d.text, "      - policy: price_ceiling\n        params: {max_usd_per_hour: 40}\n", "", 1)
	}
	eachDoorToNewer(t, forwardsUnknown+"    budget: {per_hour: 100}\n", func(t *testing.T, d *door, n *newer) {
		got := d.ask(t, request("POST", "/v2/pods", "key_research", `{"name":"p","image":"i:1","gpu":{"id":"NVIDIA L4"},"priority":"high"}`))
		if calls := n.seen(); got.Status != 403 || !strings.Contains(got.Body, "a budget limits cost") || !strings.Contains(got.Body, "/priority") || len(calls) > 0 {
			t.Errorf("create: %d %s %v, want 403 for the cost that is not known", got.Status, got.Body, calls)
		}
		got = d.ask(t, request("POST", "/v2/pods?replicas=4", "key_research", `{"name":"p","image":"i:1","gpu":{"id":"NVIDIA L4"}}`))
		if calls := n.seen(); got.Status != 403 || !strings.Contains(got.Body, "a budget limits cost") || !strings.Contains(got.Body, "?replicas") || len(calls) > 0 {
			t.Errorf("create with a parameter: %d %s %v, want 403 for the cost that is not known", got.Status, got.Body, calls)
		}
		pod := answeredID(d.ask(t, request("POST", "/v2/pods", "key_research", `{"name":"p","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)))
		got = d.ask(t, request("POST", "/v2/pods/"+pod+"/action", "key_research", `{"action":"stop","priority":"high"}`))
		if calls := n.seen(); got.Status != 200 || len(calls) != 1 {
			t.Errorf("stop: %d %s %v, want it made", got.Status, got.Body, calls)
		}
	}, unpriced)
}

// A grant is for the unknown members and parameters of the call that was refused, too.
func TestAGrantIsForItsUnknownMembers(t *testing.T) {
	t.Parallel()
	eachDoorToNewer(t, forwardsUnknown, func(t *testing.T, d *door, n *newer) {
		create := func(query, priority string) answer {
			return d.ask(t, request("POST", "/v2/pods"+query, "key_research", `{"name":"p","image":"i:1","gpu":{"id":"NVIDIA L4"},"priority":"`+priority+`"}`))
		}
		if code := d.grants(t, "grant", "acme", refusedWith(t, create("", "low"), 403)); code != 200 {
			t.Fatalf("grant: %d", code)
		}
		for _, a := range []answer{create("", "high"), create("?replicas=4", "low")} {
			if a.Status != 403 {
				t.Errorf("another call than was granted: %d %s, want 403", a.Status, a.Body)
			}
		}
		if a := create("", "low"); a.Status != 201 || len(n.seen()) != 1 {
			t.Errorf("what was granted: %d %s, want 201", a.Status, a.Body)
		}
	}, under("- {policy: operations, approvable: true, params: {deny: [createPod]}}"))
}

// What may be a known member in disguise, or lies where policies look, is refused
// even where unknown members are forwarded.
func TestNoPolicyIsDodgedByUnknownMembers(t *testing.T) {
	t.Parallel()
	deep := `{"priority":` + strings.Repeat(`[`, 60) + strings.Repeat(`]`, 60) + `}`
	var many []string
	for c := 'a'; c < 'a'+17; c++ {
		many = append(many, `"foo`+string(c)+`":1`)
	}
	bodies := []string{
		`{"GPU":{"id":"NVIDIA H200"}}`, `{"gpus":{"id":"NVIDIA H200"}}`, `{"g_p-u":1}`, `{"gpu_count":8}`, `{"gpuCount":8}`, `{"GPUCOUNT":8}`, `{"gpu2":{}}`,
		`{"gpuTypeIds":["NVIDIA H200"]}`, `{"extraEnv":{"A":"b"}}`, `{"ENV":{}}`, `{"imageDigest":"x"}`, `{"image_":"x"}`, `{"template-id":"x"}`, `{"networkVolumes":["x"]}`,
		`{"workers":{"max":9}}`, `{"size":100}`, `{"password":"x"}`, `{"min_ram_per_gpu":900}`, `{"allowedcudaversion":["12.8"]}`,
		`{"gpu":{"id":"NVIDIA L4","topology":"nvlink"}}`, `{"env":{"A":{"secret":"x"}}}`, `{"mounts":{"persistent":{"path":"/a","size":10,"iops":1}}}`, `{"ports":["80/http"],"Ports":["22/tcp"]}`,
		"{\"g\u0440u\":1}", "{\"\uff47\uff50\uff55\":1}", `{"":1}`, `{"_gpu":1}`, `{"priority ":1}`, `{"/priority":1}`, `{"prio.rity":1}`, "{\"priority\\u0000\":1}", `{"` + strings.Repeat("a", 65) + `":1}`,
		`{"priority":"a","priority":"b"}`, deep, `{` + strings.Join(many, ",") + `}`, `{"templateId":"x","priority":1,"gpu":{"x":1}}`,
	}
	eachDoorToNewer(t, forwardsUnknown, func(t *testing.T, d *door, n *newer) {
		for _, body := range bodies {
			if !strings.Contains(body, `"gpu":`) {
				body = `{"gpu":{"id":"NVIDIA L4"},` + body[1:]
			}
			body = `{"name":"p","image":"i:1",` + body[1:]
			got := d.ask(t, request("POST", "/v2/pods", "key_exempt", body))
			if calls := n.seen(); got.Status != 422 && got.Status != 400 || len(calls) > 0 {
				t.Errorf("%s: %d %s %v, want it refused", body, got.Status, got.Body, calls)
			}
		}
		if made := d.platform.CallsTo("createPod"); len(made) > 0 {
			t.Errorf("%d creates reached the platform", len(made))
		}
		pod := d.asPlatform(t, "POST", "/v2/pods", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)["id"].(string)
		for _, body := range []string{`{"gpu":{"id":"NVIDIA H200"}}`, `{"gpuCount":8}`, `{"cloud":"COMMUNITY"}`} { // of a create, not of an update
			if got := d.ask(t, request("PATCH", "/v2/pods/"+pod, "key_exempt", body)); got.Status != 422 {
				t.Errorf("PATCH %s: %d %s, want 422", body, got.Status, got.Body)
			}
		}
		if got := d.ask(t, request("POST", "/v2/pods/"+pod+"/action", "key_exempt", `{"action":"explode","priority":1}`)); got.Status != 422 {
			t.Errorf("an unknown action: %d %s, want 422", got.Status, got.Body)
		}
	})
}

// An organisation's own policy judges unknown members, by name and by value.
func TestOwnPoliciesSeeUnknownMembers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "calm.rego", `# METADATA
# title: Calm
# description: Nothing is urgent.
package policies.calm

deny contains {"message": sprintf("priority %v", [v]), "pointer": "/priority"} if {
	some name, v in input.request.unknown
	name == "priority"
	v != "low"
}

deny contains {"message": "not this one", "pointer": ""} if {
	input.request.operation == "unknownRead"
	input.resource.kind == "unknown"
	startswith(input.request.path, "/v2/notebooks/secret")
}
`)
	eachDoorToNewer(t, forwardsUnknown, func(t *testing.T, d *door, n *newer) {
		for priority, want := range map[string]int{"high": 403, "low": 201} {
			got := d.ask(t, request("POST", "/v2/pods", "key_research", `{"name":"p","image":"i:1","gpu":{"id":"NVIDIA L4"},"priority":"`+priority+`"}`))
			if got.Status != want || want == 403 && !strings.Contains(got.Body, "calm: priority high") || len(n.seen()) == 1 != (want == 201) {
				t.Errorf("priority %s: %d %s, want %d", priority, got.Status, got.Body, want)
			}
		}
		for path, want := range map[string]int{"/v2/notebooks/secrets": 403, "/v2/notebooks/a": 200} {
			if got := d.ask(t, request("GET", path, "key_research", "")); got.Status != want {
				t.Errorf("%s: %d %s, want %d", path, got.Status, got.Body, want)
			}
		}
	}, ownRego(dir))
}

// Reads of collections that only the platform knows are refused, unless the
// organisation has them forwarded, and then only those.
func TestUnknownReads(t *testing.T) {
	for settings, passes := range map[string]bool{"": false, forwardsUnknown: true} {
		t.Run(settings, func(t *testing.T) {
			eachDoorToNewer(t, settings, func(t *testing.T, d *door, n *newer) {
				got := d.ask(t, request("GET", "/v2/notebooks/Ab_1?page=2&a=b%20c", "key_research", "", "X-Api-Key: mine", "Cookie: a=b"))
				calls := n.seen()
				if !passes {
					if got.Status != 404 || len(calls) > 0 {
						t.Errorf("%d %s %v, want 404 without a call", got.Status, got.Body, calls)
					}
					return
				}
				if want := "GET /v2/notebooks/Ab_1?a=b+c&page=2 "; got.Status != 200 || got.Body != `{"notebooks":[]}` || !slices.Equal(calls, []string{want}) {
					t.Errorf("%d %s, the platform got %q, want %q", got.Status, got.Body, calls, want)
				}
				if told := got.Header.Get("X-Tollgate-Unknown"); told != "read" || got.Header.Get("RateLimit") == "" {
					t.Errorf("headers %v, want X-Tollgate-Unknown: read, and the limits", got.Header)
				}
				if events := d.logs.Exchanges(t); events[len(events)-1]["operation"] != "unknownRead" {
					t.Errorf("event %v, want operation unknownRead", events[len(events)-1])
				}
			})
		})
	}
}

// Nothing is dodged by a read that is forwarded: identity, limits, methods, what
// belongs to a known collection or to the run interface, second spellings.
func TestUnknownReadsAreHeld(t *testing.T) {
	t.Parallel()
	eachDoorToNewer(t, forwardsUnknown, func(t *testing.T, d *door, n *newer) {
		before := len(d.platform.Calls())
		for raw, want := range map[string]int{
			request("GET", "/v2/notebooks", "", ""):                            401,
			request("GET", "/v2/notebooks", "key_nobody", ""):                  401,
			request("GET", "/v2/notebooks?api_key=x", "key_research", ""):      400,
			request("POST", "/v2/notebooks", "key_research", `{"a":1}`):        404,
			request("DELETE", "/v2/notebooks/a", "key_research", ""):           404,
			request("HEAD", "/v2/notebooks", "key_research", ""):               404,
			request("GET", "/v2/notebooks", "key_research", `{"a":1}`):         400,
			request("GET", "/v2/notebooks", "key_globex", ""):                  404, // its organisation refuses
			request("GET", "/v2/notebooks?a=1&a=2", "key_research", ""):        400,
			request("GET", "/v2/notebooks?_method=DELETE", "key_research", ""): 400,
			request("GET", "/v2/notebooks?a=%00", "key_research", ""):          400,
		} {
			if got := d.ask(t, raw); got.Status != want {
				t.Errorf("%.60q: %d %s, want %d", raw, got.Status, got.Body, want)
			}
		}
		for _, path := range []string{
			"/v2", "/v2/", "/v2/notebooks/", "/v2//notebooks", "/v2/notebooks//a", "/v2/Notebooks", "/v2/note%62ooks", "/v2/notebooks/a%2Fb", "/v2/notebooks/..", "/v2/notebooks/../pods", "/v2/notebooks/./a",
			"/v2/notebooks/a.json", "/v2/notebooks/a;b", "/v2/notebooks/%2e%2e/pods", "/v3/notebooks", "/notebooks", "/v1/notebooks", "/graphql/notebooks",
			"/v2/pods/p1/log", "/v2/pods/p1/LOGS/x", "/v2/pods/p1/actions", "/v2/serverless/e/worker", "/v2/registries/delegation/x", "/v2/registries/delegations/x/y", "/v2/Pods/p1/insights", "/v2/pod/p1/insights", "/v2/billing/pods/insights", "/v2/pod", "/v2/pod/p1", "/v2/POD", "/v2/po-ds", "/v2/network-volume", "/v2/networkvolumes/x", "/v2/account", "/v2/account/api-keys", "/v2/catalog/secrets", "/v2/billing/all",
			"/v2/abcdefghij/health", "/v2/abcdefghij/status/j", "/v2/abcdefghij/stream/j", "/v2/abcdefghij/requests", "/v2/abcdefghij/openai/v1/models", "/v2/abc123def456/jobs", "/v2/abcdefghij/runs",
		} {
			if got := d.ask(t, request("GET", path, "key_research", "")); got.Status != 404 && got.Status != 400 {
				t.Errorf("GET %s: %d %s, want it refused", path, got.Status, got.Body)
			}
		}
		if calls := n.seen(); len(calls) > 0 || len(d.platform.Calls()) > before {
			t.Errorf("the platform got %q and %v, want nothing", calls, d.platform.Calls()[before:])
		}
		for range 6 {
			d.ask(t, request("GET", "/v2/notebooks", "key_tiny", ""))
		}
		if calls := n.seen(); len(calls) != 5 {
			t.Errorf("%d of 6 reads passed a limit of 5", len(calls))
		}
	})
}

// Collections below a resource are read under the owner of the resource: where teams are kept
// apart, another one is answered like nobody's, collections are not read at all.
func TestUnknownReadsOfOwners(t *testing.T) {
	t.Parallel()
	eachDoorToNewer(t, "", func(t *testing.T, d *door, n *newer) {
		ids := owned(t, d, "key_platform")
		for kind, id := range ids {
			path := creates[kind].path + "/%s/insights"
			got := d.ask(t, request("GET", fmt.Sprintf(path, id)+"?page=2", "key_platform", ""))
			want := "GET " + fmt.Sprintf(path, id) + "?page=2 "
			if calls := n.seen(); got.Status != 200 || !slices.Equal(calls, []string{want}) {
				t.Errorf("%s: %d %s, the platform got %q, want %q", kind, got.Status, got.Body, calls, want)
			}
			if events := d.logs.Exchanges(t); events[len(events)-1]["operation"] != "unknownRead."+string(kind) {
				t.Errorf("event %v, want operation unknownRead.%s", events[len(events)-1], kind)
			}
			for _, of := range []string{id, strings.ToUpper(id), nothing} {
				got := d.ask(t, request("GET", fmt.Sprintf(path, of), "key_research", ""))
				if calls := n.seen(); slices.Contains(calls, "GET "+fmt.Sprintf(path, id)+" ") {
					t.Errorf("%s %s: %d %s, and the platform was asked by another team", kind, of, got.Status, got.Body)
				}
			}
		}
		if got := d.ask(t, request("GET", "/v2/notebooks/a", "key_platform", "")); got.Status != 404 || len(n.seen()) > 0 {
			t.Errorf("a collection: %d %s, want 404 without a call", got.Status, got.Body)
		}
	}, apart("{read: team, exempt: [viewer]}\n    unknown: {reads: forward}"))
}

// Query parameters that only the platform knows are ignored and named, unless the organisation has them forwarded. Those that resemble a
// described one, or are sent twice, are never forwarded.
func TestUnknownParameters(t *testing.T) {
	t.Parallel()
	const query = "?sort=asc&IncludeClusterPods=true&twice=1&twice=2&limit=1&b%22dname%C3%A9=x"
	const plain = `"IncludeClusterPods", "b%22dname%C3%A9", "sort", "twice"`
	for settings, want := range map[string]struct{ sent, ignored, unknown string }{
		"":              {"limit=1", plain, ""},
		forwardsUnknown: {"limit=1&sort=asc", strings.Replace(plain, `"sort", `, "", 1), `parameters=("sort")`},
	} {
		t.Run(settings, func(t *testing.T) {
			var mu sync.Mutex
			var sent []string
			eachDoor(t, func(t *testing.T, d *door) {
				d.pods(t, 2)
				target := "/v2/pods" + query
				a := d.ask(t, request("GET", target, "key_platform", ""))
				mu.Lock()
				got := sent[len(sent)-1]
				mu.Unlock()
				if a.Status != 200 || got != want.sent || a.Header.Get("X-Tollgate-Ignored") != want.ignored || a.Header.Get("X-Tollgate-Unknown") != want.unknown {
					t.Errorf("%d %v; sent %s, want %s; %+v", a.Status, a.Header, got, want.sent, want)
				}
				next, _ := field(t, a.Body, "pagination").(map[string]any)["nextCursor"].(string)
				if other := d.ask(t, request("GET", "/v2/pods?sort=desc&cursor="+next, "key_platform", "")); (other.Status == 422) != (want.unknown != "") {
					t.Errorf("the cursor with another order: %d %s", other.Status, other.Body)
				}
				report := d.page(t, "/admin/decisions/"+a.Header.Get("X-Tollgate-Decision"))
				if !strings.Contains(report, "ignored query parameters, which are missing from the API description: IncludeClusterPods, b%22dname%C3%A9") || strings.Contains(report, "forwarded although missing from the API description: ?sort") != (want.unknown != "") {
					t.Errorf("the explanation does not name the parameters: %s", report)
				}
				if refused := d.ask(t, request("GET", "/v2/pods?limit=0&page=2", "key_platform", "")); refused.Status != 422 || want.unknown == "" && refused.Header.Get("X-Tollgate-Ignored") != `"page"` {
					t.Errorf("a refusal: %d %v", refused.Status, refused.Header)
				}
				// A create whose parameters are not known has no known cost.
				if pod := d.ask(t, request("POST", "/v2/pods?sort=asc", "key_platform", podL4)); (pod.Status == 403) != (want.unknown != "") {
					t.Errorf("a pod under a price ceiling: %d %s", pod.Status, pod.Body)
				}
			}, inFront(t, func(w http.ResponseWriter, r *http.Request, platform http.Handler) {
				mu.Lock()
				sent = append(sent, r.URL.RawQuery)
				mu.Unlock()
				q := r.URL.Query()
				q.Del("sort")
				r.URL.RawQuery = q.Encode()
				platform.ServeHTTP(w, r)
			}), func(d *door) {
				d.text = strings.Replace(d.text, "    credential: {env: ACME}\n", "    credential: {env: ACME}\n"+settings, 1)
			})
		})
	}
}
