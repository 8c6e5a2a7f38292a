package hostile

import (
	"encoding/json"
	"strings"
	"testing"
)

// refusal is a request that must be refused without a byte for the platform.
type refusal struct {
	raw    string
	status int
}

// refusals plays a table of well-framed requests.
func refusals(t *testing.T, s *site, table map[string]refusal) {
	t.Helper()
	for name, tc := range table {
		a := s.ask(t, tc.raw)
		if a.Status != tc.status {
			t.Errorf("%s: answer %d %s, want %d", name, a.Status, a.Body, tc.status)
		}
		if !json.Valid([]byte(a.Body)) {
			t.Errorf("%s: body %q, want JSON", name, a.Body)
		}
		s.recorder.untouched(t)
	}
}

// TestPaths: every operation has one spelling.
func TestPaths(t *testing.T) {
	t.Parallel()
	s := open(t)
	table := make(map[string]refusal)
	for path, status := range map[string]int{
		// Segments that other parsers fold.
		"/v2/pods/../account/ssh-keys":         400,
		"/v2/pods/./pod1":                      400,
		"/v2/pods/%2e%2e/account/ssh-keys":     400,
		"/v2/pods/%2E%2E/account/ssh-keys":     400,
		"/v2/pods/.%2e/account/ssh-keys":       400,
		"/v2/pods/a%2f..%2f..%2faccount":       400,
		"/v2/pods/a%5c..%5caccount":            400,
		`/v2/pods\..\account`:                  400,
		"/v2/pods/%252e%252e/account/ssh-keys": 400,
		"/v2/pods/%c0%ae%c0%ae/account":        400,
		"/v2/pods/..;/account/ssh-keys":        400,
		"/v2/pods;v=1/pod1":                    400,
		"/v2/pods;v=1":                         400,
		"/v2/pods%3bv=1":                       400,
		"/v2/pods%00":                          400,
		"/v2/pods%0d%0aX:y":                    400,
		"/v2/pods%23x":                         400,
		"/v2/pods%3fx=y":                       400,
		"/v2/%70ods":                           404,
		"//v2//pods":                           404,
		"//v2/pods":                            404,
		"/v2/pods/":                            404,
		"/v2/pods/pod1/":                       404,
		"/v2//pods":                            404,
		"/V2/PODS":                             404,
		"/v2/Pods":                             404,
		"/":                                    404,

		// Ids.
		"/v2/pods/*":                              400,
		"/v2/pods/a%20b":                          400,
		"/v2/pods/" + strings.Repeat("a", 500):    400,
		"/v2/pods/" + strings.Repeat("a", 10<<10): 400,
		"/v2/pods/a,b":                            400,
		"/v2/pods/a:b":                            400,

		// Paths that do not exist, or not here.
		"/v2/notebooks":             404,
		"/v2/account/api-keys":      404,
		"/v3/pods":                  404,
		"/v2":                       404,
		"/v2/openapi.json/":         404,
		"/v2/openapi.yaml":          404,
		"/graphql/":                 404,
		"/pods":                     404,
		"/v1/v2/pods":               404,
		"/v2/v1/pods":               404,
		"/admin/status":             404,
		"/admin/limits":             404,
		"/metrics":                  404,
		"/readyz":                   404,
		"/livez":                    404,
		"/debug/pprof/":             404,
		"/debug/vars":               404,
		"/.well-known/openid":       404,
		"/v1/openapi.json/../pods":  400,
		"/v1/pods/%2e%2e/templates": 400,

		// Queries.
		"/v2/pods?a=1;b=2":                           400,
		"/v2/pods?a=%00":                             400,
		"/v2/pods?a=%0d%0aX:y":                       400,
		"/v2/pods?a=%ff":                             400,
		"/v2/billing/pods?podId=mine&podId=theirs":   400,
		"/v2/billing/pods?podId=mine&pod%49d=theirs": 400,
		"/v2/billing/pods?" + strings.Repeat("a=x&", 10_000/4) + "podId=theirs": 400,
		"/v2/pods?" + strings.Repeat("a", 9000):                                 400,
	} {
		table[path[:min(len(path), 60)]] = refusal{request("GET", path, k1, ""), status}
	}
	for path, status := range map[string]int{
		"/v2/pods/../account/ssh-keys":     400,
		"/v2/pods/%2e%2e/account/ssh-keys": 400,
		"/v2/account/ssh-keys/":            404,
	} {
		table["PUT "+path] = refusal{request("PUT", path, k1, `{"keys":[]}`), status}
	}
	refusals(t, s, table)
}

// TestMethods: none but the listed ones, spelled as listed.
func TestMethods(t *testing.T) {
	t.Parallel()
	s := open(t)
	table := make(map[string]refusal)
	for _, method := range []string{"get", "Get", "POSTX", "TRACE", "TRACK", "CONNECT", "OPTIONS", "PUT", "PROPFIND", "PURGE", "QUERY", "*"} {
		table[method] = refusal{request(method, "/v2/pods", k1, ""), 405}
	}
	table["GET of the mutation route"] = refusal{request("GET", "/graphql?query=mutation%7BpodTerminate(input:%7BpodId:%22x%22%7D)%7D", k1, ""), 405}
	table["anonymous"] = refusal{request("TRACE", "/v2/pods", "", ""), 401}
	refusals(t, s, table)
}

// TestQueriesAreRebuilt: the platform sees the parameters that are its own,
// once each, in our spelling.
func TestQueriesAreRebuilt(t *testing.T) {
	t.Parallel()
	s := open(t)
	for target, want := range map[string]string{
		"/v2/pods?%69ncludeClusterPods=true":                          "/v2/pods?includeClusterPods=true",
		"/v2/pods?includeClusterPods=1":                               "/v2/pods?includeClusterPods=true",
		"/v2/pods?includeClusterPods=true&_method=DELETE&apikey=x":    "/v2/pods?includeClusterPods=true",
		"/v2/pods?IncludeClusterPods=true":                            "/v2/pods",
		"/v2/billing/pods?podId[]=theirs&podId=mine":                  "/v2/billing/pods?podId=mine",
		"/v2/billing/pods?podId=mine%26podId%3Dtheirs":                "/v2/billing/pods?podId=mine%26podId%3Dtheirs",
		"/v2/pods?&&includeClusterPods=true&":                         "/v2/pods?includeClusterPods=true",
		"/v2/catalog/gpus/NVIDIA%20A40":                               "/v2/catalog/gpus/NVIDIA%20A40",
		"/v2/catalog/gpus?include=AVAILABILITY&product=POD&count=%31": "/v2/catalog/gpus?count=1&include=AVAILABILITY&product=POD",
	} {
		a := s.ask(t, request("GET", target, k1, ""))
		calls := s.recorder.take()
		if a.Status >= 400 && len(calls) == 0 {
			continue // refused is as good as rebuilt
		}
		if len(calls) != 1 || calls[0].Target != want {
			t.Errorf("%s: answer %d, the platform got %+v, want %s", target, a.Status, calls, want)
		}
	}
}
