package envoy

import (
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/world"
)

// documented returns the filter of a name as docs/envoy.md has it.
func documented(t *testing.T, name string) map[string]any {
	t.Helper()
	page, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```yaml\n- name: "+name+"\n")
	text, _, closed := strings.Cut(text, "```")
	var list []map[string]any
	if err := yaml.Unmarshal([]byte("- name: "+name+"\n"+text), &list); err != nil || !found || !closed || len(list) != 1 {
		t.Fatalf("docs/envoy.md has no filter %s: %v", name, err)
	}
	return list[0]
}

// The filter for meshes that exist is the one that is tested.
func TestTheDocumentedProcessorIsTheShippedOne(t *testing.T) {
	want := shipped(t).at("static_resources", "listeners", 0, "filter_chains", 0, "filters", 0, "typed_config", "http_filters", 0)
	if diff := cmp.Diff(map[string]any(want), documented(t, extProcFilter)); diff != "" {
		t.Errorf("docs/envoy.md differs (-deploy/envoy.yaml +docs):\n%s", diff)
	}
}

// others are organisations with what an answer or another body is needed for.
const others = `
  - id: spending
    credential: {env: SPENDING}
    budget: {pods: 10}
    keys: [{id: key_spending, sha256: SHA256(key_spending), roles: [operator]}]
  - id: apart
    credential: {env: APART}
    isolation: {read: team}
    teams: [{id: one}]
    keys: [{id: key_apart, team: one, sha256: SHA256(key_apart), roles: [operator]}]
  - id: changing
    credential: {env: CHANGING}
    policies: [{policy: field_values, params: {defaults: {createPod: {/disk: 20}}}}]
    keys: [{id: key_changing, sha256: SHA256(key_changing), roles: [operator]}]
  - id: asking
    credential: {env: ASKING}
    policies: [{policy: gpu_allow_list, approvable: true, params: {gpus: ["NVIDIA L4"]}}]
    keys: [{id: key_asking, sha256: SHA256(key_asking), roles: [operator]}]
`

// authorized opens an Envoy whose filter is the documented one for ext_authz, as
// change leaves it.
func authorized(t *testing.T, change func(filter map[string]any), opts ...option) *way {
	t.Helper()
	opts = append(opts, func(w *way) { w.configuration += others }, shaped(func(b *bootstrap) {
		f := documented(t, "envoy.filters.http.ext_authz")
		settings, ok := f["typed_config"].(map[string]any)
		if !ok {
			t.Fatal("the filter has no settings")
		}
		service, ok := settings["grpc_service"].(map[string]any)
		if !ok {
			t.Fatal("the filter has no service")
		}
		service["timeout"] = "100s" // a machine that is busy
		change(settings)
		filters, ok := b.manager()["http_filters"].([]any)
		if !ok {
			t.Fatal("deploy/envoy.yaml has no filters")
		}
		filters[0] = f
	}))
	return open(t, opts...)
}

// What passes by ext_authz passes as by the other doors, and what takes more than a
// verdict is refused.
func TestExtAuthz(t *testing.T) {
	w := authorized(t, func(map[string]any) {}, func(w *way) {
		w.configuration = strings.Replace(w.configuration, `base_url: "PLATFORM"`, `base_url: "PLATFORM", run_url: "PLATFORM"`, 1)
	})
	post := func(key, body string, header ...string) string {
		return request("POST", "/v2/pods", key, body, header...)
	}
	get := func(key, target string, header ...string) string { return request("GET", target, key, "", header...) }
	for _, tc := range []struct {
		name, request string
		status, sent  int
		want          string
		// same says that the HTTP door answers the same.
		same bool
	}{
		{"read", get("key_research", "/v2/pods"), 200, 1, "", false},
		{"create", post("key_research", pod4090), 201, 1, "", false},
		{"create, chunked", post("key_research", world.Chunked(pod4090), "Transfer-Encoding: chunked"), 201, 1, "", false},
		{"denied by policy", post("key_research", podH100), 403, 0, "gpu_allow_list", true},
		{"denied, chunked", post("key_research", world.Chunked(podH100), "Transfer-Encoding: chunked"), 403, 0, "gpu_allow_list", true},
		{"invalid", post("key_research", `{"name":1}`), 422, 0, "", true},
		{"a member twice", post("key_research", `{"name":"a","name":"b"}`), 400, 0, "", true},
		{"without a body", post("key_research", ""), 400, 0, "", true},
		{"larger than is buffered", post("key_research", bodyOf(140_000)), 413, 0, "", false},
		{"a little too large", post("key_research", bodyOf(102_401)), 413, 0, "102400", true},
		{"no key", get("", "/v2/pods"), 401, 0, "", true},
		{"unknown key", get("key_nobody", "/v2/pods"), 401, 0, "", true},
		{"two keys", get("key_research", "/v2/pods", "Authorization: Bearer key_platform"), 401, 0, "", false},
		{"unknown path", get("key_research", "/v2/nothing"), 404, 0, "", true},
		{"a path with dots", get("key_research", "/v2/pods/../account"), 400, 0, "", true},
		{"a path with an encoded slash", get("key_research", "/v2/pods/a%2fb"), 400, 0, "", true},
		{"a path with two slashes", get("key_research", "/v2//pods"), 404, 0, "", true},
		{"an encoded path", get("key_research", "/v2/%70ods"), 404, 0, "", true},
		{"v1", get("key_research", "/v1/pods"), 421, 0, "gateway in line", false},
		{"graphql", request("POST", "/graphql", "key_research", `{"query":"{ myself { id } }"}`), 421, 0, "gateway in line", false},
		{"a budget", post("key_spending", pod4090), 421, 0, "budgets", false},
		{"a read beside a budget", get("key_spending", "/v2/pods"), 200, 1, "", false},
		{"isolation", get("key_apart", "/v2/pods/nope1234"), 421, 0, "keeps resources apart", false},
		{"an idempotency key", post("key_research", pod4090, `Idempotency-Key: "a"`), 421, 0, "Idempotency-Key", false},
		{"a job, without a key", request("POST", "/v2/llm/run", "", `{"input":{}}`), 401, 0, "", true},
		{"a job, by an encoded path", request("POST", "/v2/llm/%72un", "key_research", `{"input":{}}`), 404, 0, "", false},
		{"a job", request("POST", "/v2/llm/run", "key_research", `{"input":{}}`), 421, 0, "run interface", false},
		{"a chat", request("POST", "/v2/llm/openai/v1/chat/completions", "key_research", `{"model":"llm","messages":[]}`), 421, 0, "run interface", false},
		{"the state of a job", get("key_research", "/v2/llm/status/j1"), 421, 0, "run interface", false},
		{"what waits for approval", post("key_asking", pod4090), 403, 0, "approval", false},
		{"a read where changes wait for approval", get("key_asking", "/v2/pods"), 200, 1, "", false},
		{"a policy that changes the body", post("key_changing", pod4090), 421, 0, "another body", false},
		{"a body that is as the policy wants it", post("key_changing", strings.Replace(pod4090, "{", `{"disk":20,`, 1)), 201, 1, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var a answer
			calls := w.sent(func() { a = w.send(t, tc.request) })
			checkCalls(t, calls)
			if a.Status != tc.status || len(calls) != tc.sent || !strings.Contains(a.Body, tc.want) {
				t.Errorf("answer = %d %s with %d calls, want %d with %q and %d calls", a.Status, a.Body, len(calls), tc.status, tc.want, tc.sent)
			}
			if tc.status != http.StatusRequestEntityTooLarge && a.Header.Get("X-Tollgate-Decision") == "" {
				t.Errorf("the answer has no decision: %v", a.Header)
			}
			if tc.sent > 0 && strings.Contains(tc.request, "key_research") && !strings.HasPrefix(a.Header.Get("RateLimit"), `"minute";r=`) {
				t.Errorf("RateLimit = %q, want the gateway's", a.Header.Values("RateLimit"))
			}
			if strings.Contains(a.Body, canary) {
				t.Errorf("the platform key is in the body: %s", a.Body)
			}
			if !tc.same {
				return
			}
			if diff := cmp.Diff(comparable(world.Ask(t, w.plain, tc.request)), comparable(a)); diff != "" {
				t.Errorf("answers differ (-http +ext_authz):\n%s", diff)
			}
		})
	}
	w.searchLogs(t)
}

// Each request is judged and counted by itself: the verdict on one is not another's.
func TestExtAuthzJudgesEachRequest(t *testing.T) {
	w := authorized(t, func(map[string]any) {})
	var statuses []int
	calls := w.sent(func() {
		for range 7 { // of five a minute
			statuses = append(statuses, w.send(t, request("GET", "/v2/pods", "key_tiny", "", "X-Request-Id: same")).Status)
		}
	})
	if want := []int{200, 200, 200, 200, 200, 429, 429}; !reflect.DeepEqual(statuses, want) || len(calls) != 5 {
		t.Errorf("statuses %v and %d calls, want %v and 5", statuses, len(calls), want)
	}
}

// Filters that show less than is judged are refused.
func TestExtAuthzSettings(t *testing.T) {
	body := func(f map[string]any, set string, value any) {
		b, ok := f["with_request_body"].(map[string]any)
		if !ok {
			t.Fatal("the filter has no with_request_body")
		}
		b[set] = value
	}
	large := request("POST", "/v2/pods", "key_research", bodyOf(90_000))
	create := request("POST", "/v2/pods", "key_research", pod4090)
	chunked := request("POST", "/v2/pods", "key_research", world.Chunked(pod4090), "Transfer-Encoding: chunked")
	lying := request("POST", "/v2/pods", "key_research", pod4090, "X-Envoy-Auth-Partial-Body: false")
	for _, tc := range []struct {
		name     string
		change   func(map[string]any)
		requests []string
	}{
		{"bodies not sent", func(f map[string]any) { delete(f, "with_request_body") }, []string{create, lying}},
		{"bodies in part", func(f map[string]any) {
			body(f, "allow_partial_message", true)
			body(f, "max_request_bytes", 10)
		}, []string{large, create, chunked, lying}},
		{"bodies as strings", func(f map[string]any) { body(f, "pack_as_bytes", false) }, []string{create, chunked}},
		{"headers joined", func(f map[string]any) { delete(f, "encode_raw_headers") }, []string{create, request("GET", "/v2/pods", "key_research", "")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := authorized(t, tc.change)
			for _, raw := range tc.requests {
				var a answer
				calls := w.sent(func() { a = w.send(t, raw) })
				if a.Status != http.StatusServiceUnavailable || len(calls) > 0 {
					t.Errorf("answer = %d %s with %d calls, want 503 and none", a.Status, a.Body, len(calls))
				}
			}
		})
	}
	t.Run("bodies not sent, of unknown length", func(t *testing.T) {
		w := authorized(t, func(f map[string]any) { delete(f, "with_request_body") })
		calls := w.sent(func() {
			if a := w.send(t, chunked); a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "needs a JSON body") {
				t.Errorf("answer = %d %s, want 400: there is nothing to judge", a.Status, a.Body)
			}
		})
		if len(calls) > 0 {
			t.Errorf("calls = %+v, want none", calls)
		}
	})
	t.Run("the gateway is away", func(t *testing.T) {
		w := authorized(t, func(map[string]any) {})
		w.door.Stop()
		calls := w.sent(func() {
			if a := w.send(t, create); a.Status != http.StatusServiceUnavailable {
				t.Errorf("answer = %d, want 503", a.Status)
			}
		})
		if len(calls) > 0 {
			t.Errorf("calls = %+v, want none", calls)
		}
	})
}

// HTTP/2 needs not declare a length: bodies are judged all the same.
func TestExtAuthzHTTP2(t *testing.T) {
	w := authorized(t, func(map[string]any) {})
	c := w.client(t, 2)
	for _, tc := range []struct {
		name, method, body string
		status             int
	}{
		{"create", "POST", pod4090, 201}, {"denied", "POST", podH100, 403}, {"a body on a read", "GET", podH100, 400}, {"read", "GET", "", 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var body io.Reader
			if tc.body != "" {
				body = io.MultiReader(strings.NewReader(tc.body)) // of unknown length
			}
			calls := w.sent(func() {
				a, _, err := w.do(t.Context(), c, tc.method, "/v2/pods", "key_research", body, nil)
				if err != nil || a.Status != tc.status {
					t.Errorf("answer = %d %s, %v, want %d", a.Status, a.Body, err, tc.status)
				}
			})
			if (len(calls) > 0) != (tc.status < 300) {
				t.Errorf("%d calls with status %d", len(calls), tc.status)
			}
		})
	}
}
