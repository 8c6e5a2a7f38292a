package envoy

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// The platform gets the request that the chain built, not the caller's.
func TestThePlatformGetsWhatTheChainBuilt(t *testing.T) {
	w := open(t)
	noise := []string{
		"Accept: text/html", "Accept-Encoding: gzip, br", "Cookie: a=b", "User-Agent: caller/1", "Referer: http://a.test/", "X-Note: hello",
		"X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.test", "Forwarded: for=203.0.113.7", "Via: 1.1 caller",
		"X-Envoy-Original-Path: /v2/account", "X-Envoy-Decorator-Operation: x", "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"X-Original-Url: /v2/account", "Te: trailers", "Proxy-Authorization: Basic eDp5",
	}
	headers := http.Header{
		"Accept": {"application/json, application/problem+json"}, "Accept-Encoding": {"identity"}, "User-Agent": {"tollgate/test"},
		"Authorization": {"Bearer pk-acme-" + canary}, "X-Request-Id": {"id-1"},
	}
	withBody := headers.Clone()
	withBody["Content-Type"] = []string{"application/json"}
	body := `{"gpu":{"id":"NVIDIA L4"},"image":"img:1","name":"a"}`
	spaced := "\n" + `{ "name" : "a", "image":"img:1", "gpu": {"id":"\u004eVIDIA L4"} }` + "\n"
	for _, tc := range []struct {
		name, request, method, target string
		header                        http.Header
		body                          string
	}{
		{
			"query put in order, unknown parameters left out",
			request("GET", "/v2/catalog/templates?zzz=1&source=%6ffficial&bogus=x", "key_research", "", append(noise, "X-Request-Id: id-1")...),
			"GET", "/v2/catalog/templates?source=official", headers, "",
		},
		{
			"an escape the path requires",
			request("GET", "/v2/catalog/gpus/NVIDIA%20L4", "key_research", "", append(noise, "X-Request-Id: id-1")...),
			"GET", "/v2/catalog/gpus/NVIDIA%20L4?", headers, "",
		},
		{
			"body written anew",
			request("POST", "/v2/pods", "key_research", spaced, append(noise, "X-Request-Id: id-1")...),
			"POST", "/v2/pods?", withBody, body,
		},
		{
			"chunked body written anew, in one piece",
			request("POST", "/v2/pods?bogus=1", "key_research", world.Chunked(spaced[:7], spaced[7:]), append(noise, "X-Request-Id: id-1", "Transfer-Encoding: chunked")...),
			"POST", "/v2/pods?", withBody, body,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := len(w.platform.Calls())
			if a := w.send(t, tc.request); a.Status >= 300 {
				t.Fatalf("answer = %d %s", a.Status, a.Body)
			}
			calls := slices.DeleteFunc(w.platform.Calls()[before:], func(c platform.Call) bool {
				return c.Host != "platform.example" && c.Method == http.MethodGet // what the gateway itself looked up
			})
			if len(calls) != 1 {
				t.Fatalf("%d requests at the platform, want 1: %+v", len(calls), calls)
			}
			c := calls[0]
			if got, want := c.Method+" "+c.Path+"?"+c.RawQuery, tc.method+" "+strings.TrimSuffix(tc.target, "?"); strings.TrimSuffix(got, "?") != want {
				t.Errorf("request = %s, want %s", got, want)
			}
			want := tc.header.Clone()
			if tc.body != "" {
				want.Set("Content-Length", strconv.Itoa(len(tc.body)))
			}
			if diff := cmp.Diff(want, c.Header); diff != "" {
				t.Errorf("headers at the platform (-want +got):\n%s", diff)
			}
			if string(c.Body) != tc.body {
				t.Errorf("body = %s, want %s", c.Body, tc.body)
			}
		})
	}
}

// legacyByHTTP adds routes that send the old dialects to the HTTP door, past the
// filter.
func legacyByHTTP(w *way) {
	w.shape = func(b *bootstrap) {
		past := func(match node) node {
			return node{
				"match": match, "route": node{"cluster": "tollgate_http", "timeout": "120s"},
				"typed_per_filter_config": node{"envoy.filters.http.ext_proc": node{
					"@type": "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute", "disabled": true,
				}},
			}
		}
		b.setRoutes(append([]any{past(node{"prefix": "/v1/"}), past(node{"path": "/graphql"})}, b.routes()...))
		clusters := b.at("static_resources")
		clusters["clusters"] = append(clusters["clusters"].([]any), map[string]any{"name": "tollgate_http", "connect_timeout": "1s"})
		b.point("tollgate_http", w.plain)
	}
}

// A caller cannot make Envoy repeat a call, wait longer or go elsewhere, in the
// routes of the filter and in those without it.
func TestCallersDoNotSteerEnvoy(t *testing.T) {
	w := open(t, legacyByHTTP)
	steer := []string{
		"X-Envoy-Retry-On: 5xx,gateway-error,retriable-4xx,reset", "X-Envoy-Max-Retries: 5", "X-Envoy-Hedge-On-Per-Try-Timeout: true",
		"X-Envoy-Upstream-Rq-Timeout-Ms: 1", "X-Envoy-Upstream-Rq-Per-Try-Timeout-Ms: 1", "X-Envoy-Original-Dst-Host: 127.0.0.1:1",
		"X-Envoy-Internal: true", "X-Envoy-Expected-Rq-Timeout-Ms: 1",
	}
	for _, tc := range []struct {
		name, request, operation string
		status                   int
	}{
		{"v2", request("GET", "/v2/catalog/gpus/NVIDIA%20L4", "key_research", "", steer...), "getGpuType", 503},
		{"v1", request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`, steer...), "createPod", 503},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := w.platform.AddFault(platform.Fault{Kind: platform.FaultStatus, Status: 503, Operation: tc.operation})
			defer w.platform.RemoveFault(id)
			before := len(w.logs.Exchanges(t))
			a := w.send(t, tc.request)
			if n := len(w.recorded(t, before+1)) - before; a.Status != tc.status || n != 1 {
				t.Errorf("answer = %d in %d exchanges, want %d in one: %s", a.Status, n, tc.status, a.Body)
			}
		})
	}
	for _, cluster := range []string{"platform", "tollgate_http"} {
		if n := w.stat(t, "cluster."+cluster+".upstream_rq_retry"); n != 0 {
			t.Errorf("%d retries to %s", n, cluster)
		}
		if n := w.stat(t, "cluster."+cluster+".upstream_rq_total"); n != 1 {
			t.Errorf("%d requests to %s, want 1", n, cluster)
		}
	}
}

// recorded returns the events when there are that many: Envoy passes an answer on before
// it ends the gateway's part.
func (w *way) recorded(t *testing.T, n int) []map[string]any {
	t.Helper()
	world.Until(t, fmt.Sprintf("%d exchanges are recorded", n), func() bool { return len(w.logs.Exchanges(t)) >= n })
	return w.logs.Exchanges(t)
}

// The peer is the connected address, not one that the caller names.
func TestThePeerIsWhoConnected(t *testing.T) {
	w := open(t)
	w.send(t, request("GET", "/v2/pods", "key_research", "", "X-Forwarded-For: 203.0.113.7", "X-Real-Ip: 203.0.113.7"))
	events := w.recorded(t, 1)
	if len(events) != 1 || events[0]["client.address"] != "127.0.0.1" {
		t.Errorf("events = %v, want one with peer 127.0.0.1", events)
	}
}

// Every exchange leaves one event, refused or not.
func TestOneEventPerExchange(t *testing.T) {
	w := open(t)
	requests := []string{
		request("GET", "/v2/pods", "key_research", ""),
		request("POST", "/v2/pods", "key_research", podH100),
		request("POST", "/v2/pods", "key_research", world.Chunked(bodyOf(1<<20)), "Transfer-Encoding: chunked"),
		request("GET", "/v2/pods/nope1234", "key_research", ""),
	}
	for i, r := range requests {
		w.send(t, r)
		w.recorded(t, i+1)
	}
	var got []string
	for _, e := range w.logs.Exchanges(t) {
		got = append(got, fmt.Sprint(e["door"], " ", e["operation"], " ", e["http.response.status_code"], " ", e["outcome"]))
	}
	want := []string{"envoy listPods 200 ok", "envoy createPod 403 refused", "envoy createPod 413 refused", "envoy getPod 404 upstream"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// The sixth call of a minute is refused, and says when to come back.
func TestLimits(t *testing.T) {
	w := open(t)
	for range 5 {
		if a := w.send(t, request("GET", "/v2/pods", "key_tiny", "")); a.Status != 200 {
			t.Fatalf("answer = %d %s", a.Status, a.Body)
		}
	}
	calls := w.sent(func() {
		for name, raw := range map[string]string{
			"v2":      request("POST", "/v2/pods", "key_tiny", pod4090),
			"v1":      request("GET", "/v1/pods", "key_tiny", ""),
			"graphql": request("POST", "/graphql", "key_tiny", `{"query":"{ myself { id } }"}`),
		} {
			a := w.send(t, raw)
			if a.Status != 429 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Header.Get("RateLimit"), `"minute";r=0`) {
				t.Errorf("%s: answer = %d %v", name, a.Status, a.Header)
			}
		}
	})
	if len(calls) != 0 {
		t.Errorf("refused calls reached the platform: %+v", calls)
	}
}

// The old dialects are answered as immediate responses, or by the HTTP door
// where routes lead to it.
func TestOldDialects(t *testing.T) {
	const deploy = `{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"img:1\", gpuTypeId: \"%s\", cloudType: SECURE}) { id desiredStatus } }"}`
	for _, way := range []struct {
		name string
		opts []option
		door string
	}{
		{name: "as immediate responses", door: "envoy"},
		{name: "by the HTTP door", door: "http", opts: []option{legacyByHTTP}},
	} {
		t.Run(way.name, func(t *testing.T) {
			w := open(t, way.opts...)
			for _, tc := range []struct {
				name, request string
				status, sent  int
				want          []string
			}{
				{"v1 create", request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`), 201, 1, []string{`"desiredStatus":"RUNNING"`}},
				{"v1 create, chunked", request("POST", "/v1/pods", "key_research", world.Chunked(`{"name":"a","imageName":"img:1",`, `"gpuTypeIds":["NVIDIA L4"]}`), "Transfer-Encoding: chunked"), 201, 1, []string{`"desiredStatus":"RUNNING"`}},
				{"v1 list", request("GET", "/v1/pods", "key_research", ""), 200, 1, []string{`"desiredStatus"`}},
				{"v1 forbidden", request("POST", "/v1/pods", "key_research", `{"imageName":"img:1","gpuTypeIds":["NVIDIA H100 80GB HBM3"]}`), 403, 0, []string{`"message":`, "gpu_allow_list"}},
				{"v1 without a key", request("GET", "/v1/pods", "", ""), 401, 0, []string{`"message":"Unauthorized"`}},
				{"v1 too large", request("POST", "/v1/pods", "", bodyOf(102401)), 413, 0, []string{`"message":`}},
				{"graphql deploy", request("POST", "/graphql", "key_research", fmt.Sprintf(deploy, "NVIDIA L4")), 200, 1, []string{`"desiredStatus":"RUNNING"`}},
				{"graphql by api_key", request("POST", "/graphql?api_key=key_research", "", fmt.Sprintf(deploy, "NVIDIA L4")), 200, 1, []string{`"desiredStatus":"RUNNING"`}},
				{"graphql forbidden", request("POST", "/graphql", "key_research", fmt.Sprintf(deploy, "NVIDIA H100 80GB HBM3")), 200, 0, []string{`"errors":`, "gpu_allow_list"}},
				{"graphql without a key", request("POST", "/graphql", "", fmt.Sprintf(deploy, "NVIDIA L4")), 401, 0, []string{`"errors":`}},
			} {
				t.Run(tc.name, func(t *testing.T) {
					var a answer
					calls := w.sent(func() { a = w.send(t, tc.request) })
					checkAnswer(t, behaviour{status: tc.status, want: tc.want}, a)
					checkCalls(t, calls)
					if len(calls) != tc.sent {
						t.Errorf("%d requests at the platform, want %d", len(calls), tc.sent)
					}
				})
			}
			doors := make(map[string]bool)
			for _, e := range w.logs.Exchanges(t) {
				doors[fmt.Sprint(e["door"])] = true
			}
			if diff := cmp.Diff(map[string]bool{way.door: true}, doors); diff != "" {
				t.Errorf("doors (-want +got):\n%s", diff)
			}
			w.searchLogs(t)
		})
	}
}

// A broken answer of the platform reaches callers as a clear refusal.
func TestAPlatformInTrouble(t *testing.T) {
	w := open(t)
	for _, tc := range []struct {
		name   string
		fault  platform.Fault
		status int
		after  string
	}{
		{"capacity", platform.Fault{Kind: platform.FaultCapacity}, 400, ""},
		{"balance", platform.Fault{Kind: platform.FaultBalance}, 402, ""},
		{"forbidden", platform.Fault{Kind: platform.FaultForbidden}, 403, ""},
		{"rate limit", platform.Fault{Kind: platform.FaultRateLimit, RetryAfter: 7}, 429, "7"},
		{"500", platform.Fault{Kind: platform.FaultStatus, Status: 500, Detail: "you sent Bearer pk-acme-" + canary}, 500, ""},
		{"503", platform.Fault{Kind: platform.FaultStatus, Status: 503}, 503, ""},
		{"401", platform.Fault{Kind: platform.FaultStatus, Status: 401}, 502, ""},
		{"hangs up", platform.Fault{Kind: platform.FaultDrop}, 504, "5"}, // it may have been carried out
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.fault.Operation, tc.fault.Times = "createPod", 1
			w.platform.AddFault(tc.fault)
			var a answer
			calls := w.sent(func() { a = w.send(t, request("POST", "/v2/pods", "key_research", pod4090)) })
			checkAnswer(t, behaviour{status: tc.status, header: append([]string{"Content-Type: application/problem+json"}, limits...)}, a)
			if got := a.Header.Get("Retry-After"); got != tc.after {
				t.Errorf("Retry-After = %q, want %q", got, tc.after)
			}
			if len(calls) != 1 {
				t.Errorf("%d requests at the platform, want 1", len(calls))
			}
		})
	}
	if i := slices.IndexFunc(w.logs.Exchanges(t), func(e map[string]any) bool { return e["outcome"] == "fault" }); i >= 0 {
		t.Errorf("event %v says the gateway was at fault", w.logs.Exchanges(t)[i])
	}
}
