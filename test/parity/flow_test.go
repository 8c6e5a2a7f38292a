package parity

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/platform"
)

func field(t *testing.T, body, name string) any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("body %s: %v", body, err)
	}
	return m[name]
}

// A pod comes up, as seen through the gateway.
func TestAPodsLife(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		created := d.ask(t, request("POST", "/v2/pods", "key_research", pod4090))
		if created.Status != 201 {
			t.Fatalf("create: %d %s", created.Status, created.Body)
		}
		id := fmt.Sprint(field(t, created.Body, "id"))
		var seen []string
		for range 4 {
			a := d.ask(t, request("GET", "/v2/pods/"+id, "key_research", ""))
			status := fmt.Sprint(field(t, a.Body, "status"))
			if n := len(seen); n == 0 || seen[n-1] != status {
				seen = append(seen, status)
			}
			if runtime := field(t, a.Body, "runtime"); (runtime != nil) != (status == "RUNNING") && status != "PROVISIONING" {
				t.Errorf("in %s runtime = %v", status, runtime)
			}
			d.platform.Clock().Advance(2 * time.Second)
		}
		if diff := cmp.Diff([]string{"PROVISIONING", "STARTING", "RUNNING"}, seen); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		stop := d.ask(t, request("POST", "/v2/pods/"+id+"/action", "key_research", `{"action":"stop"}`))
		if stop.Status != 200 || field(t, stop.Body, "status") != "EXITED" {
			t.Errorf("stop: %d %s", stop.Status, stop.Body)
		}
		v1 := d.ask(t, request("POST", "/v1/pods/"+id+"/stop", "key_research", ""))
		if v1.Status != 200 || field(t, v1.Body, "desiredStatus") != "EXITED" {
			t.Errorf("v1 stop of a stopped pod: %d %s", v1.Status, v1.Body)
		}
		again := d.ask(t, request("POST", "/v2/pods/"+id+"/action", "key_research", `{"action":"start"}`))
		if again.Status != 200 {
			t.Errorf("start: %d %s", again.Status, again.Body)
		}
		gone := d.ask(t, request("DELETE", "/v2/pods/"+id, "key_research", ""))
		if gone.Status != 204 || gone.Body != "" {
			t.Errorf("delete: %d %q", gone.Status, gone.Body)
		}
	})
}

// A CPU flavour named with its size goes out without it, and not at all when it says another size
// than the judged one.
func TestFlavoursGoOutBare(t *testing.T) {
	t.Parallel()
	const endpoint = `{"name":"e","image":"i:1","type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":4},"cpu":[{"id":"cpu5c-%d-%d","vcpuCount":2}]}`
	eachDoor(t, func(t *testing.T, d *door) {
		for name, r := range map[string]string{
			"pod":          request("POST", "/v2/pods", "key_platform", `{"name":"a","image":"i:1","cpu":{"id":"cpu5c-32-64","vcpuCount":2}}`),
			"endpoint":     request("POST", "/v2/serverless", "key_platform", fmt.Sprintf(endpoint, 32, 64)),
			"odd spelling": request("POST", "/v2/pods", "key_platform", `{"name":"a","image":"i:1","cpu":{"id":"cpu5c-32","vcpuCount":2}}`),
		} {
			if a := d.ask(t, r); a.Status != 400 || !strings.Contains(a.Body, "$.cpu") {
				t.Errorf("%s of another size: %d %s, want 400", name, a.Status, a.Body)
			}
		}
		for operation, r := range map[string]string{
			"createPod":      request("POST", "/v2/pods", "key_platform", `{"name":"a","image":"i:1","cpu":{"id":"cpu5c-2-4","vcpuCount":2}}`),
			"createEndpoint": request("POST", "/v2/serverless", "key_platform", fmt.Sprintf(endpoint, 2, 4)),
		} {
			d.platform.ResetCalls()
			if a := d.ask(t, r); a.Status != 201 {
				t.Errorf("%s: %d %s, want 201", operation, a.Status, a.Body)
			}
			var sent string
			for _, c := range d.platform.Calls() {
				if c.Operation == operation {
					sent += string(c.Body)
				}
			}
			if !strings.Contains(sent, `"id":"cpu5c"`) {
				t.Errorf("%s: sent %s, want the bare flavour", operation, sent)
			}
		}
	})
}

// Organisations do not see each other.
func TestOrganisationsAreApart(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		created := d.ask(t, request("POST", "/v2/pods", "key_research", pod4090))
		id := fmt.Sprint(field(t, created.Body, "id"))
		foreign := d.ask(t, request("GET", "/v2/pods/"+id, "key_globex", ""))
		absent := d.ask(t, request("GET", "/v2/pods/nope1234", "key_globex", ""))
		if foreign.Status != 404 || foreign.Body != absent.Body {
			t.Errorf("foreign pod: %d %s, absent pod: %d %s; want the same 404", foreign.Status, foreign.Body, absent.Status, absent.Body)
		}
		if list := d.ask(t, request("GET", "/v2/pods", "key_globex", "")); list.Body != noPods {
			t.Errorf("list = %s", list.Body)
		}
	})
}

// The sixth call of a minute is refused and says truly when to come back.
func TestTheSixthCallOfAMinute(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		targets := []string{"/v2/pods", "/v2/nope", "/v1/pods", "/v2/pods", "/v2/catalog/datacenters"}
		for i, target := range targets {
			a := d.ask(t, request("GET", target, "key_tiny", ""))
			want := fmt.Sprintf(`"minute";r=%d;t=40`, 4-i)
			if got := a.Header.Get("RateLimit"); a.Status == 429 || !strings.HasPrefix(got, want) {
				t.Errorf("call %d: %d, RateLimit = %q, want %s", i+1, a.Status, got, want)
			}
		}
		before := len(d.platform.Calls())
		for name, refused := range map[string]answer{
			"v2":      d.ask(t, request("GET", "/v2/pods", "key_tiny", "")),
			"v1":      d.ask(t, request("GET", "/v1/pods", "key_tiny", "")),
			"graphql": d.ask(t, request("POST", "/graphql", "key_tiny", `{"query":"{ myself { id } }"}`)),
		} {
			if refused.Status != 429 {
				t.Errorf("%s: status = %d, want 429: %s", name, refused.Status, refused.Body)
			}
			after, err := strconv.Atoi(refused.Header.Get("Retry-After"))
			if err != nil || after != 40 {
				t.Errorf("%s: Retry-After = %q, want 40", name, refused.Header.Get("Retry-After"))
			}
			if !strings.Contains(refused.Header.Get("RateLimit"), `"minute";r=0`) {
				t.Errorf("%s: RateLimit = %q", name, refused.Header.Get("RateLimit"))
			}
		}
		if after := len(d.platform.Calls()); after != before {
			t.Errorf("refused calls reached the platform: %d", after-before)
		}
		d.advance(40 * time.Second)
		if a := d.ask(t, request("GET", "/v2/pods", "key_tiny", "")); a.Status != 200 {
			t.Errorf("after the window: %d %s, want 200", a.Status, a.Body)
		}
	})
}

// Logs stream: lines arrive as they are written, and Last-Event-ID travels.
func TestLogsStream(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		created := d.ask(t, request("POST", "/v2/pods", "key_research", pod4090))
		id := fmt.Sprint(field(t, created.Body, "id"))
		d.platform.Clock().Advance(10 * time.Second)
		lines, stop := d.stream(t, "/v2/pods/"+id+"/logs?tail=5", "key_research")
		defer stop()
		if line := <-lines; !strings.HasPrefix(line, "id: ") {
			t.Errorf("first line = %q, want an event id", line)
		}
		if line := <-lines; !strings.HasPrefix(line, "data: {") {
			t.Errorf("second line = %q, want its data", line)
		}
	})
}

// A broken answer of the platform reaches callers as a clear refusal.
func TestAPlatformInTrouble(t *testing.T) {
	for _, tc := range []struct {
		fault  platform.Fault
		status int
		header string
	}{
		{platform.Fault{Kind: platform.FaultCapacity}, 400, ""},
		{platform.Fault{Kind: platform.FaultBalance}, 402, ""},
		{platform.Fault{Kind: platform.FaultForbidden}, 403, ""},
		{platform.Fault{Kind: platform.FaultRateLimit, RetryAfter: 7}, 429, "7"},
		{platform.Fault{Kind: platform.FaultStatus, Status: 503}, 503, ""},
	} {
		t.Run(string(tc.fault.Kind), func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				tc.fault.Operation = "createPod"
				d.platform.AddFault(tc.fault)
				a := d.ask(t, request("POST", "/v2/pods", "key_research", pod4090))
				if a.Status != tc.status || a.Header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("answer = %d %s %s, want %d as a problem", a.Status, a.Header.Get("Content-Type"), a.Body, tc.status)
				}
				if got := a.Header.Get("Retry-After"); got != tc.header {
					t.Errorf("Retry-After = %q, want %q", got, tc.header)
				}
				if a.Header.Get("RateLimit") == "" {
					t.Error("no RateLimit header")
				}
			})
		})
	}
}

// Each exchange leaves exactly one line in the log, and it tells the story.
func TestOneEventPerExchange(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.ask(t, request("POST", "/v2/pods", "key_research", podH100, "X-Request-Id: story-1",
			"User-Agent: x\", \"level\":\"INFO\", \"msg\":\"approved"))
		events := d.logs.Exchanges(t)
		if len(events) != 1 {
			t.Fatalf("%d events, want 1: %s", len(events), d.logs)
		}
		want := map[string]any{
			"request_id": "story-1", "door": d.name, "dialect": "v2", "operation": "createPod", "http.response.status_code": 403.0, "outcome": "refused",
			"org": "acme", "team": "research", "key": "key_research", "refusal": "forbidden", "stage": "evaluate policies", "limit_source": "redis",
		}
		for key, value := range want {
			if diff := cmp.Diff(value, events[0][key]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", key, diff)
			}
		}
	})
}

// Guessing keys is slow, and whose key is right gets on from the same address, not seen
// there before either.
func TestGuessingKeysIsSlow(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		if d.name == "envoy" {
			return // the minimal Envoy tells no peer address
		}
		for i := range 20 {
			if a := d.ask(t, request("GET", "/v2/pods", fmt.Sprintf("key_guess_%d", i), "")); a.Status != 401 {
				t.Fatalf("guess %d: %d, want 401", i+1, a.Status)
			}
		}
		for _, key := range []string{"key_guess_20", ""} {
			a := d.ask(t, request("GET", "/v2/pods", key, ""))
			if a.Status != 429 || a.Header.Get("Retry-After") != "2" || a.Header.Get("RateLimit") != "" {
				t.Errorf("%q: %d, Retry-After %q, RateLimit %q; want 429 after 2 s and no limits told", key, a.Status, a.Header.Get("Retry-After"), a.Header.Get("RateLimit"))
			}
		}
		for _, r := range []string{
			request("GET", "/v2/pods", "key_platform", ""),
			request("GET", "/v1/pods", "key_research", ""),
			request("POST", "/graphql", "key_research", `{"query":"{ myself { id } }"}`),
		} {
			if a := d.ask(t, r); a.Status != 200 || strings.Contains(a.Body, "errors") {
				t.Errorf("a right key: %d %s, want 200", a.Status, a.Body)
			}
		}
		d.advance(time.Minute)
		if a := d.ask(t, request("GET", "/v2/pods", "key_guess_20", "")); a.Status != 401 {
			t.Errorf("a guess later: %d %s, want 401", a.Status, a.Body)
		}
	})
}

// Behind a load balancer all callers have one address, which can be exempted.
func TestALoadBalancerIsNotSlowedDown(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", func(d *door) {
		d.text = strings.Replace(configuration, "limits: {timeout: 10s}", `limits: {timeout: 10s, anonymous_exempt: ["127.0.0.0/8"]}`, 1)
	})
	for i := range 30 {
		if a := d.ask(t, request("GET", "/v2/pods", fmt.Sprintf("key_guess_%d", i), "")); a.Status != 401 {
			t.Fatalf("guess %d: %d, want 401", i+1, a.Status)
		}
	}
}

// A class of operations has its own quota, whatever door and dialect a call
// comes through.
func TestClassesCountWhatACallBecomes(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		v1 := request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`)
		graphql := request("POST", "/graphql", "key_research",
			`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", cloudType: SECURE}) { id } }"}`)
		for i, r := range []string{request("POST", "/v2/pods", "key_research", pod4090), v1, graphql} {
			if a := d.ask(t, r); a.Status >= 300 || strings.Contains(a.Body, "errors") {
				t.Fatalf("create %d: %d %s", i+1, a.Status, a.Body)
			}
		}
		before := left(d.ask(t, request("GET", "/v2/pods", "key_research", "")))
		refused := d.ask(t, request("POST", "/v2/pods", "key_research", pod4090))
		if refused.Status != 429 || refused.Header.Get("Retry-After") != "40" || !strings.Contains(refused.Body, "class") {
			t.Errorf("fourth create: %d, Retry-After %q, %s", refused.Status, refused.Header.Get("Retry-After"), refused.Body)
		}
		if a := d.ask(t, request("GET", "/v2/pods", "key_research", "")); a.Status != 200 {
			t.Errorf("a read: %d, want 200", a.Status)
		}
		// Two reads since: the refused call took nothing of the key.
		read := d.ask(t, request("GET", "/v2/pods", "key_research", ""))
		if got := read.Header.Get("RateLimit"); left(read) != before-2 || strings.Contains(got, "creates") {
			t.Errorf("two reads after %d units were left: RateLimit %q, want %d and no class", before, got, before-2)
		}
		made := d.ask(t, request("POST", "/v2/pods", "key_platform", pod4090))
		if made.Status != 201 {
			t.Errorf("another key: %d, want 201", made.Status)
		}
		wantPolicy := `"minute";q=600;w=60, "hour";q=3000;w=3600, "day";q=50000;w=86400, "creates-minute";q=3;w=60`
		if got, state := made.Header.Get("RateLimit-Policy"), made.Header.Get("RateLimit"); got != wantPolicy || !strings.HasSuffix(state, `, "creates-minute";r=2;t=40`) {
			t.Errorf("RateLimit-Policy %q, RateLimit %q; want %q, two creates left", got, state, wantPolicy)
		}
	}, func(d *door) {
		d.text = strings.Replace(configuration, "    teams: [{id: research}", `    classes: [{id: creates, operations: [createPod, createEndpoint, createCluster], limits: {minute: 3}}]
    teams: [{id: research}`, 1)
	})
}

// Near the ceiling of the platform account, one team cannot take all that remains.
func TestTeamsShareAnAccountThatRunsLow(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		if err := d.platform.SetQuota("acme", platform.Quota{Minute: 50, Hour: 1000, Day: 1000}); err != nil {
			t.Fatal(err)
		}
		list := func(key string) int { return d.ask(t, request("GET", "/v2/pods", key, "")).Status }
		if list("key_platform") != 200 { // the other team is active
			t.Fatal("platform: refused at once")
		}
		served := 0
		for list("key_research") == 200 {
			served++
		}
		if got := list("key_platform"); got != 200 || served >= 49 || served < 38 {
			t.Errorf("after research was served %d times, platform got %d; want something kept for it", served, got)
		}
		for _, c := range d.platform.Calls() {
			if c.Status == 429 {
				t.Error("the platform had to refuse")
			}
		}
	}, func(d *door) {
		d.text = strings.Replace(configuration, "limits: {timeout: 10s}", "limits: {timeout: 10s, fair_share: {enabled: true}}", 1)
	})
}

// Price collectors send no key; where it is allowed they see the catalog and
// nothing else.
func TestAnonymousCatalogQuestions(t *testing.T) {
	t.Parallel()
	ask := func(t *testing.T, d *door, query string) answer {
		t.Helper()
		return d.ask(t, request("POST", "/graphql", "", `{"query":"`+query+`"}`))
	}
	eachDoor(t, func(t *testing.T, d *door) {
		if a := ask(t, d, "{ gpuTypes { id } }"); a.Status != 200 || !strings.Contains(a.Body, "NVIDIA L4") || a.Header.Get("RateLimit") != "" {
			t.Errorf("catalog: %d %.200s, RateLimit %q", a.Status, a.Body, a.Header.Get("RateLimit"))
		}
		if a := ask(t, d, "{ pod(input: {podId: \\\"x\\\"}) { id } }"); a.Status != 401 {
			t.Errorf("pod: %d %s, want 401", a.Status, a.Body)
		}
		for _, c := range d.platform.Calls() {
			if c.Account != "globex" || !strings.HasPrefix(c.Path, "/v2/catalog/") {
				t.Errorf("%s %s as %q reached the platform", c.Method, c.Path, c.Account)
			}
		}
	}, func(d *door) { d.text = "legacy: {keyless: {org: globex}}\n" + configuration })
	eachDoor(t, func(t *testing.T, d *door) {
		if a := ask(t, d, "{ gpuTypes { id } }"); a.Status != 401 {
			t.Errorf("by default: %d, want 401", a.Status)
		}
	})
}
