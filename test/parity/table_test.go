package parity

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/world"
)

var decisionID = regexp.MustCompile(`"decision":"[0-9A-Z]{26}"`)

const (
	pod4090 = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA GeForce RTX 4090"}}`
	podH100 = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA H100 80GB HBM3"}}`
)

// behaviour is one case of the table.
type behaviour struct {
	name    string
	request string
	status  int
	// want are parts of the body, header lines that must be there ("Name:
	// part"), noHeader names that must not.
	want     []string
	header   []string
	noHeader []string
	// sent is how many requests reach the platform, catalog reads aside.
	sent int
	// door restricts a case to the door in which it can happen.
	door string
}

var limits = []string{"Ratelimit: \"minute\";r=599;t=40", "Ratelimit-Policy: \"minute\";q=600;w=60"}

// twice are those of a call of a legacy dialect that reads the catalog and creates.
var twice = []string{strings.Replace(limits[0], "599", "598", 1), limits[1]}

// table lists the answers that callers may expect. Each case meets a fresh gateway.
func table() []behaviour {
	big := `{"name":"` + strings.Repeat("x", 102401-len(`{"name":""}`)) + `"}`
	deep := `{"name":"a","image":"i","env":` + strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60) + `}`
	post := func(body string, header ...string) string {
		return request("POST", "/v2/pods", "key_research", body, header...)
	}
	get := func(target string) string { return request("GET", target, "key_research", "") }
	return []behaviour{
		// What works.
		{
			name: "create a pod", request: post(pod4090), status: 201, sent: 1,
			want: []string{`"status":"PROVISIONING"`, `"cost":0.44`}, header: append([]string{"Content-Type: application/json", "X-Tollgate-Decision: "}, limits...),
		},
		{name: "media type with charset", request: post(pod4090, "Content-Type: application/json; charset=UTF-8"), status: 201, sent: 1},
		{name: "chunked body", request: post(world.Chunked(pod4090[:5], pod4090[5:]), "Transfer-Encoding: chunked"), status: 201, sent: 1},
		{name: "list", request: get("/v2/pods"), status: 200, sent: 1, want: []string{noPods}, header: limits},
		{name: "default of a parameter that needs another", request: get("/v2/catalog/gpus?count=1"), status: 200, want: []string{`"gpus":[`}},
		{name: "default of a parameter that needs another, one type", request: get("/v2/catalog/gpus/NVIDIA%20L4?count=1"), status: 200, want: []string{`"id":"NVIDIA L4"`}},
		{name: "count without include", request: get("/v2/catalog/gpus?count=2"), status: 400, want: []string{"requires 'include'"}},
		{
			name: "default that the platform refuses", status: 200,
			request: request("POST", "/v2/serverless", "key_platform", `{"name":"e","image":"i","type":"QUEUE","gpu":{"pools":["ADA_24"]},"scaling":{"type":"REQUEST_COUNT","requestCount":1},"workers":{"min":0,"max":3,"idleTimeout":10}}`, "Tollgate-Dry-Run: true"),
			want:    []string{`"verdict":"allowed"`},
		},
		{name: "catalog id with a space", request: get("/v2/catalog/gpus/NVIDIA%20L4"), status: 200, want: []string{`"id":"NVIDIA L4"`}},
		{name: "exempt caller", request: request("GET", "/v2/pods", "key_exempt", ""), status: 200, sent: 1, noHeader: []string{"RateLimit", "RateLimit-Policy"}},
		{name: "every GPU for the platform team", request: request("POST", "/v2/pods", "key_platform", podH100), status: 201, sent: 1},
		{name: "unknown query parameter dropped", request: get("/v2/pods?includeClusterPods=true&bogus=1"), status: 200, sent: 1},
		{name: "request id adopted", request: request("GET", "/v2/pods", "key_research", "", "X-Request-Id: abc-1"), status: 200, sent: 1, header: []string{"X-Request-Id: abc-1"}},
		{name: "request id of ours for a bad one", request: request("GET", "/v2/pods", "key_research", "", "X-Request-Id: a b"), status: 200, sent: 1, header: []string{"X-Request-Id: 0"}},
		{name: "h2c offer ignored", request: request("GET", "/v2/pods", "key_research", "", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"), status: 200, sent: 1},

		// A length that is known comes before everything, a body of unknown length after the key.
		{name: "body too large", request: request("POST", "/v2/pods", "", big), status: 413, noHeader: []string{"RateLimit"}, want: []string{`"status":413`}},
		{name: "body too large, chunked, no key", request: request("POST", "/v2/pods", "", world.Chunked(big), "Transfer-Encoding: chunked"), status: 401},
		{name: "body too large, chunked", request: post(world.Chunked(big), "Transfer-Encoding: chunked"), status: 413, header: limits},
		{name: "body too large on an unknown path", request: request("POST", "/nowhere", "", big), status: 413},
		{name: "body of the limit's size is judged", request: post(`{"name":"` + strings.Repeat("x", 102400-len(`{"name":""}`)) + `"}`), status: 422, want: []string{"missing property 'image'"}},

		// Who calls.
		{name: "no key", request: request("GET", "/v2/pods", "", ""), status: 401, want: []string{`"detail":"missing key: send it in the header Authorization: Bearer KEY"`}, noHeader: []string{"RateLimit", "RateLimit-Policy"}, header: []string{"Www-Authenticate: Bearer"}},
		{name: "no key, v1", request: request("GET", "/v1/pods", "", ""), status: 401, want: []string{`missing key: send `}},
		{name: "no key, GraphQL", request: request("POST", "/graphql", "", `{"query":"{ myself { id } }"}`), status: 401, want: []string{`missing key: send `}},
		{name: "unknown key", request: request("GET", "/v2/pods", "key_nobody", ""), status: 401, want: []string{`"detail":"unknown key"`}, noHeader: []string{"RateLimit"}},
		{name: "basic credentials", request: request("GET", "/v2/pods", "", "", "Authorization: Basic a2V5OmtleQ=="), status: 401, want: []string{"missing key: send "}},
		{name: "bearer with two spaces", request: request("GET", "/v2/pods", "", "", "Authorization: Bearer  key_research"), status: 200, sent: 1},
		{name: "two keys in one header", request: request("GET", "/v2/pods", "", "", "Authorization: Bearer key_research,key_platform"), status: 401},
		{name: "two Authorization headers", request: request("GET", "/v2/pods", "key_research", "", "Authorization: Bearer key_platform"), status: 400, want: []string{"more than one credential"}},
		{name: "two credentials", request: request("GET", "/v2/pods?api_key=key_research", "key_research", ""), status: 400, want: []string{"more than one credential"}},
		{name: "two credentials, v1", request: request("GET", "/v1/pods?%61pi_key=key_tiny", "key_research", ""), status: 400, want: []string{`"message":`}},
		{name: "api_key is for GraphQL only", request: request("GET", "/v2/pods?api_key=key_research", "", ""), status: 401},
		{name: "unknown path without a key", request: request("GET", "/v2/nope", "", ""), status: 401},

		// The reference.
		{name: "reference page", request: request("GET", "/docs", "", ""), status: 200, header: []string{"Content-Type: text/html; charset=utf-8"}},
		{name: "reference script", request: request("GET", "/docs/docs.js", "", ""), status: 200},
		{name: "unknown part of the reference", request: get("/docs/other.js"), status: 404},
		{name: "access without a key", request: request("GET", "/docs/access", "", ""), status: 401},
		{name: "access", request: get("/docs/access"), status: 200, header: append([]string{"Cache-Control: no-store"}, limits...)},

		// Where to.
		{name: "unknown path", request: get("/v2/nope"), status: 404, header: limits, want: []string{`"detail":"no operation has this path"`}},
		{name: "path without a version", request: get("/pods"), status: 404, want: []string{`no operation has this path, did you mean /v2/pods?`}},
		{name: "path of v1 without a version", request: request("POST", "/endpoints", "key_research", "{}"), status: 404, want: []string{`did you mean /v1/endpoints?`}},
		{name: "path without a version, other method", request: request("PUT", "/pods/x/", "key_research", ""), status: 404, want: []string{`did you mean /v2/pods/x?`}},
		{name: "future version", request: get("/v3/pods"), status: 404},
		{name: "admin path on the data port", request: get("/admin/status"), status: 404},
		{name: "other method", request: request("PUT", "/v2/pods", "key_research", ""), status: 405, header: append([]string{"Allow: GET, POST"}, limits...)},
		{name: "lower-case method", request: request("get", "/v2/pods", "key_research", ""), status: 405},
		{name: "TRACE", request: request("TRACE", "/v2/pods", "key_research", ""), status: 405},
		{name: "method override ignored", request: request("GET", "/v2/pods", "key_research", "", "X-HTTP-Method-Override: DELETE"), status: 200, sent: 1},
		{name: "dot segments", request: get("/v2/pods/../account/ssh-keys"), status: 400},
		{name: "escaped dot segments", request: get("/v2/pods/%2e%2e/account/ssh-keys"), status: 400},
		{name: "escaped slash", request: get("/v2/pods/a%2fb"), status: 400},
		{name: "escaped letter", request: get("/v2/catalog/gpus/NVIDIA%20L%34"), status: 404, header: limits},
		{name: "double escape", request: get("/v2/pods/%252e"), status: 400},
		{name: "backslash", request: get(`/v2/pods\x`), status: 400},
		{name: "empty segments", request: get("//v2//pods"), status: 404},
		{name: "trailing slash", request: get("/v2/pods/"), status: 404, want: []string{"did you mean /v2/pods?"}},
		{name: "matrix parameter", request: get("/v2/pods;v=1"), status: 400},
		{name: "other case", request: get("/V2/PODS"), status: 404},
		{name: "ill-formed id", request: get("/v2/pods/a*b"), status: 400},
		{name: "absolute target", request: get("http://evil.test/v2/pods"), status: 200, sent: 1, door: "http"},
		{name: "repeated query parameter", request: get("/v2/pods?includeClusterPods=true&includeClusterPods=false"), status: 400},
		{name: "ill-typed query parameter", request: get("/v2/pods?includeClusterPods=maybe"), status: 422},
		{name: "semicolon in the query", request: get("/v2/pods?a=1;b=2"), status: 400},
		{name: "broken escape in the query", request: get("/v2/pods?a=%zz"), status: 400},

		// The form of the message.
		{name: "HTTP/1.0", request: strings.Replace(get("/v2/pods"), "HTTP/1.1", "HTTP/1.0", 1), status: 200, sent: 1, door: "http"},
		{name: "websocket upgrade", request: request("GET", "/v2/pods", "key_research", "", "Connection: Upgrade", "Upgrade: websocket"), status: 400},
		{name: "header name with underscore", request: request("GET", "/v2/pods", "key_research", "", "X_Forwarded_For: 127.0.0.1"), status: 400},
		{name: "header value outside ASCII", request: request("GET", "/v2/pods", "key_research", "", "X-Note: \xff"), status: 400},
		{name: "missing media type", request: post(pod4090, "Content-Type:"), status: 415},
		{name: "form media type", request: post(pod4090, "Content-Type: application/x-www-form-urlencoded"), status: 415},
		{name: "other charset", request: post(pod4090, "Content-Type: application/json; charset=utf-16"), status: 415},
		{name: "two media types", request: post(pod4090, "Content-Type: application/json", "Content-Type: text/plain"), status: 415},
		{name: "content coding", request: post(pod4090, "Content-Encoding: gzip"), status: 415},
		{name: "identity coding", request: post(pod4090, "Content-Encoding: identity"), status: 415},

		// The body.
		{name: "no body", request: post(""), status: 400, header: limits},
		{name: "empty body of a patch", request: request("PATCH", "/v2/pods/p1", "key_research", ""), status: 400},
		{name: "body on a GET", request: request("GET", "/v2/pods", "key_research", `{"a":1}`), status: 400},
		{name: "body on a DELETE", request: request("DELETE", "/v2/pods/p1", "key_research", `{"action":"start"}`), status: 400},
		{name: "null", request: post("null"), status: 422, want: []string{`"errors":["$: `}},
		{name: "array", request: post("[]"), status: 422},
		{name: "string", request: post(`"x"`), status: 422},
		{name: "truncated", request: post(`{"name":"a"`), status: 400},
		{name: "trailing document", request: post(pod4090 + podH100), status: 400},
		{name: "duplicate name", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"gpu":{"id":"NVIDIA H200"}}`), status: 400, want: []string{"gpu"}},
		{name: "duplicate name, nested", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","id":"NVIDIA H200"}}`), status: 400},
		{name: "duplicate name, escaped", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"\u0067pu":{"id":"NVIDIA H200"}}`), status: 400},
		{name: "name differing in case", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"GPU":{"id":"NVIDIA H200"}}`), status: 422, want: []string{"GPU"}},
		{name: "invalid UTF-8", request: post("{\"name\":\"a\xff\"}"), status: 400},
		{name: "lone surrogate", request: post(`{"name":"a\ud800"}`), status: 400},
		{name: "byte order mark", request: post("\xef\xbb\xbf" + pod4090), status: 400},
		{name: "deep nesting", request: post(deep), status: 400},
		{name: "number bomb", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":1e1000000}}`), status: 400},
		{name: "fractional count", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":1.5}}`), status: 422},
		{name: "huge count", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":184467440737095517}}`), status: 422},
		{name: "count below one", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":0}}`), status: 422, want: []string{"$.gpu.count"}},
		{name: "count as text", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":"2"}}`), status: 422},
		{
			name: "unknown property", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"bogus":1}`), status: 422,
			want: []string{`"title":"Unprocessable Entity"`, `"errors":[`, "bogus"}, header: append([]string{"Content-Type: application/problem+json"}, limits...),
		},
		{name: "several violations", request: post(`{"gpu":{"id":1}}`), status: 422, want: []string{"name", "image", "$.gpu.id"}},
		{name: "neither gpu nor cpu", request: post(`{"name":"a","image":"i"}`), status: 400},
		{name: "gpu and cpu", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"cpu":{"id":"cpu3c","vcpuCount":2}}`), status: 400},

		// Policies.
		{
			name: "GPU not on the allow-list", request: post(podH100), status: 403, header: append([]string{"Content-Type: application/problem+json"}, limits...),
			want: []string{"gpu_allow_list", "NVIDIA H100 80GB HBM3", `"field":"/gpu/id"`, `"title":"Forbidden"`},
		},
		{name: "id with a trailing space", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4 "}}`), status: 422, want: []string{"did you mean NVIDIA L4?"}},
		{name: "id in other case", request: post(`{"name":"a","image":"i","gpu":{"id":"nvidia l4"}}`), status: 422, want: []string{"did you mean NVIDIA L4?"}},
		{name: "too many GPUs", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4","count":3}}`), status: 403, want: []string{"gpu_count", `"field":"/gpu/count"`}},
		{
			name: "GPU by a short name", request: post(`{"name":"a","image":"i","gpu":{"id":"L4","count":3}}`), status: 422,
			want: []string{`"detail":"GPU type L4 is not in the catalog; did you mean NVIDIA L4?","errors":["$.gpu.id: GPU type L4 is not`},
		},
		{
			name: "GPU of a cluster by a short name", status: 422,
			request: request("POST", "/v2/clusters", "key_research", `{"name":"c","image":"i","type":"TRAINING","compute":{"gpuTypeId":"h100","gpuCountPerPod":1,"podCount":2}}`),
			want:    []string{`"$.compute.gpuTypeId: GPU type h100 is not in the catalog; did you mean NVIDIA H100 `},
		},
		{
			name: "GPU in place of a pool", status: 422,
			request: request("POST", "/v2/serverless", "key_research", `{"name":"e","image":"i","type":"QUEUE","gpu":{"pools":["RTX 4090"],"excludedTypes":["L4"]}}`),
			want:    []string{`pool RTX 4090 is not in the catalog; did you mean ADA_24?`, `"$.gpu.excludedTypes[0]: GPU type L4 is not in the catalog; did you mean NVIDIA L4?"`},
		},
		{
			name: "GPU by a short name, v1", status: 400, request: request("POST", "/v1/pods", "key_research", `{"imageName":"i","gpuTypeIds":["L4"],"gpuCount":3}`),
			want: []string{`gpuTypeIds: L4 is not in the catalog; did you mean NVIDIA L4?`},
		},
		{
			name: "GPU by a short name, GraphQL", status: 200,
			request: request("POST", "/graphql", "key_research", `{"query":"mutation { podFindAndDeployOnDemand(input: {imageName: \"i\", gpuTypeId: \"L4\", gpuCount: 3}) { id } }"}`),
			want:    []string{`L4 is not in the catalog; did you mean NVIDIA L4?`},
		},
		{
			name: "GPU of a cluster by a short name, GraphQL", status: 200,
			request: request("POST", "/graphql", "key_research", `{"query":"mutation { createCluster(input: {clusterName: \"c\", gpuTypeId: \"L4\", podCount: 2, gpuCountPerPod: 8, type: TRAINING}) { id } }"}`),
			want:    []string{`L4 is not in the catalog; did you mean NVIDIA L4?`},
		},
		{name: "misspelt member", request: post(`{"name":"a","iamge":"i"}`), status: 422, want: []string{`additional properties 'iamge' not allowed, did you mean 'image'?`}},
		{
			name: "misspelt member, v1", status: 400, request: request("POST", "/v1/pods", "key_research", `{"imageNam":"i"}`),
			want: []string{`not in input schema: 'imageNam', did you mean 'imageName'?`},
		},
		{
			name: "misspelt member, GraphQL", status: 400,
			request: request("POST", "/graphql", "key_research", `{"query":"mutation { podFindAndDeployOnDemand(input: {imageNam: \"i\"}) { id } }"}`),
			want:    []string{`Did you mean \"imageName\"?`},
		},
		{
			name: "misspelt field, GraphQL", status: 400, request: request("POST", "/graphql", "key_research", `{"query":"{ gpuTypes { displayNam } }"}`),
			want: []string{`Did you mean \"displayName\"?`},
		},
		{name: "two denials", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L40","count":3}}`), status: 403, want: []string{"gpu_count", "gpu_allow_list"}},
		{name: "price ceiling", request: request("POST", "/v2/pods", "key_platform", `{"name":"a","image":"i","gpu":{"id":"NVIDIA B200","count":8}}`), status: 403, want: []string{"price_ceiling"}},
		{name: "unknown GPU has no price", request: request("POST", "/v2/pods", "key_platform", `{"name":"a","image":"i","gpu":{"id":"NVIDIA Z9"}}`), status: 403, want: []string{"price_ceiling"}},

		// Public and local.
		{name: "API description without a key", request: request("GET", "/v2/openapi.json", "", ""), status: 200, noHeader: []string{"RateLimit"}, want: []string{`"openapi":"3.1`}},
		{name: "API description with a key", request: get("/v2/openapi.json"), status: 200, header: limits},
		{name: "API description with a bad key", request: request("GET", "/v2/openapi.json", "key_nobody", ""), status: 401},

		// The platform's own refusals.
		{name: "unknown pod", request: get("/v2/pods/nope1234"), status: 404, sent: 1, header: append([]string{"Content-Type: application/problem+json"}, limits...)},
		{name: "start of an unknown pod", request: request("POST", "/v2/pods/nope1234/action", "key_research", `{"action":"start"}`), status: 404, sent: 1},
		{name: "credential the platform does not know", request: request("GET", "/v2/pods", "key_wrong", ""), status: 502, sent: 1, want: []string{"platform key"}},

		// The old dialects.
		{
			name: "v1 create", request: request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`), status: 201, sent: 1,
			want: []string{`"desiredStatus":"RUNNING"`, `"gpuCount":1`}, header: append([]string{"Deprecation: @", `Link: `, "Content-Type: application/json"}, twice...),
		},
		{name: "v1 list", request: request("GET", "/v1/pods", "key_research", ""), status: 200, sent: 1, want: []string{"[]"}},
		{
			name: "v1 forbidden GPU", request: request("POST", "/v1/pods", "key_research", `{"imageName":"img:1","gpuTypeIds":["NVIDIA H100 80GB HBM3"]}`), status: 403,
			want: []string{`"message":`, "gpu_allow_list"}, header: twice,
		},
		{name: "v1 without a key", request: request("GET", "/v1/pods", "", ""), status: 401, want: []string{`"message":"Unauthorized"`}, noHeader: []string{"RateLimit"}},
		{name: "v1 unknown path", request: request("GET", "/v1/nope", "key_research", ""), status: 404, want: []string{`"message":`}},
		{name: "v1 wrong method", request: request("PUT", "/v1/pods", "key_research", ""), status: 405, want: []string{`"message":`}},
		{name: "v1 body too large", request: request("POST", "/v1/pods", "", big), status: 413, want: []string{`"message":`}},
		{name: "v1 duplicate name", request: request("POST", "/v1/pods", "key_research", `{"imageName":"i","gpuTypeIds":["NVIDIA L4"],"gpuTypeIds":["NVIDIA H200"]}`), status: 400, want: []string{`"message":`}},
		{
			name: "graphql deploy", request: request("POST", "/graphql", "key_research",
				`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", cloudType: SECURE}) { id desiredStatus } }"}`),
			status: 200, sent: 1, want: []string{`"desiredStatus":"RUNNING"`}, header: twice,
		},
		{name: "graphql by api_key", request: request("POST", "/graphql?api_key=key_research", "", `{"query":"{ pod(input: {podId: \"nope1234\"}) { id } }"}`), status: 200, sent: 1, want: []string{`"pod":null`}, header: limits},
		{name: "graphql two credentials", request: request("POST", "/graphql?api_key=key_research", "key_platform", `{"query":"{ __typename }"}`), status: 400, want: []string{`"errors":`}},
		{
			name: "graphql forbidden GPU", request: request("POST", "/graphql", "key_research",
				`{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"img:1\", gpuTypeId: \"NVIDIA H100 80GB HBM3\", cloudType: SECURE}) { id } }"}`),
			status: 200, want: []string{`"errors":`, "gpu_allow_list"}, header: twice,
		},
		{name: "graphql without a key", request: request("POST", "/graphql", "", `{"query":"{ myself { id } }"}`), status: 401, want: []string{`"errors":`}},
		{name: "graphql by GET", request: request("GET", "/graphql?query=x", "key_research", ""), status: 405, want: []string{`"errors":`}},
		{name: "graphql duplicate variable name", request: request("POST", "/graphql", "key_research", `{"query":"{ __typename }","variables":{"a":1,"a":2}}`), status: 400, want: []string{`"errors":`}},
	}
}

// TestBehaviour plays the table through both doors and compares them.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	for _, c := range table() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seen := make(map[string]answer)
			sent := make(map[string][]string)
			for _, name := range []string{"http", "envoy"} {
				if c.door != "" && c.door != name {
					continue
				}
				d := openDoor(t, name)
				a := d.ask(t, c.request)
				checkAnswer(t, name, c, a)
				checkSent(t, name, c, d)
				seen[name], sent[name] = comparable(a), platformCalls(d)
			}
			if c.door != "" {
				return
			}
			if diff := cmp.Diff(seen["http"], seen["envoy"]); diff != "" {
				t.Errorf("answers differ (-http +envoy):\n%s", diff)
			}
			if diff := cmp.Diff(sent["http"], sent["envoy"]); diff != "" {
				t.Errorf("requests at the platform differ (-http +envoy):\n%s", diff)
			}
		})
	}
}

func checkAnswer(t *testing.T, door string, c behaviour, a answer) {
	t.Helper()
	if a.Status != c.status {
		t.Errorf("%s door: status = %d, want %d; body %s", door, a.Status, c.status, a.Body)
	}
	for _, part := range c.want {
		if !strings.Contains(a.Body, part) {
			t.Errorf("%s door: body lacks %q: %s", door, part, a.Body)
		}
	}
	for _, line := range c.header {
		name, part, _ := strings.Cut(line, ": ")
		if got := a.Header.Get(name); got == "" || !strings.Contains(got, part) {
			t.Errorf("%s door: header %s = %q, want %q in it", door, name, got, part)
		}
	}
	for _, name := range c.noHeader {
		if got := a.Header.Values(name); len(got) > 0 {
			t.Errorf("%s door: header %s = %q, want none", door, name, got)
		}
	}
	for _, name := range []string{"X-Request-Id", "X-Tollgate-Decision"} {
		if a.Header.Get(name) == "" {
			t.Errorf("%s door: no %s", door, name)
		}
	}
	if a.Status >= http.StatusBadRequest && strings.Contains(a.Body, canary) {
		t.Errorf("%s door: the platform key is in the body: %s", door, a.Body)
	}
}

// checkSent counts what reached the platform and looks at its form.
func checkSent(t *testing.T, name string, c behaviour, d *door) {
	t.Helper()
	n := 0
	for _, call := range d.platform.Calls() {
		if !strings.HasPrefix(call.Path, "/v2/catalog") {
			n++
		}
		if got := call.Header.Values("Authorization"); len(got) != 1 || !strings.HasPrefix(got[0], "Bearer pk-") {
			t.Errorf("%s door: Authorization at the platform = %q, want the organisation's key once", name, got)
		}
		for header := range call.Header {
			if !sentHeaders[header] {
				t.Errorf("%s door: header %s reached the platform", name, header)
			}
		}
		if strings.Contains(call.RawQuery, "bogus") || strings.Contains(call.RawQuery, "api_key") {
			t.Errorf("%s door: query %q reached the platform", name, call.RawQuery)
		}
	}
	if n != c.sent {
		t.Errorf("%s door: %d requests at the platform, want %d", name, n, c.sent)
	}
}

// sentHeaders are all the headers the platform may ever see.
var sentHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "User-Agent": true, "X-Request-Id": true,
	"Authorization": true, "Content-Type": true, "Content-Length": true, "Last-Event-Id": true,
}
