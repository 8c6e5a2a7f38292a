package route_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/route"
)

func table(t testing.TB) *route.Table {
	t.Helper()
	tb, err := route.NewTable([]route.Route{
		{ID: "listPods", Dialect: route.V2, Method: http.MethodGet, Pattern: "/v2/pods"},
		{ID: "createPod", Dialect: route.V2, Method: http.MethodPost, Pattern: "/v2/pods"},
		{ID: "getPod", Dialect: route.V2, Method: http.MethodGet, Pattern: "/v2/pods/{id}"},
		{ID: "getGpuType", Dialect: route.V2, Method: http.MethodGet, Pattern: "/v2/catalog/gpus/{id}"},
		{ID: "getWorkerLogs", Dialect: route.V2, Method: http.MethodGet, Pattern: "/v2/serverless/{id}/workers/{workerId}/logs"},
		{ID: "getRegistry", Dialect: route.V2, Method: http.MethodGet, Pattern: "/v2/registries/{id}"},
		{ID: "listDelegations", Dialect: route.V2, Method: http.MethodGet, Pattern: "/v2/registries/delegations"},
		{ID: "putKeys", Dialect: route.V2, Method: http.MethodPut, Pattern: "/v2/account/ssh-keys"},
		{ID: "v1.getPod", Dialect: route.V1, Method: http.MethodGet, Pattern: "/v1/pods/{podId}"},
		{ID: "graphql", Dialect: route.GraphQL, Method: http.MethodPost, Pattern: "/graphql"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

func TestMatch(t *testing.T) {
	tb := table(t)
	for name, tc := range map[string]struct {
		method, path string
		want         string
		params       map[string]string
	}{
		"collection":        {"GET", "/v2/pods", "listPods", nil},
		"method decides":    {"POST", "/v2/pods", "createPod", nil},
		"parameter":         {"GET", "/v2/pods/p1", "getPod", map[string]string{"id": "p1"}},
		"escaped space":     {"GET", "/v2/catalog/gpus/NVIDIA%20L4", "getGpuType", map[string]string{"id": "NVIDIA L4"}},
		"two parameters":    {"GET", "/v2/serverless/e/workers/w/logs", "getWorkerLogs", map[string]string{"id": "e", "workerId": "w"}},
		"literal wins":      {"GET", "/v2/registries/delegations", "listDelegations", nil},
		"v1 trailing slash": {"GET", "/v1/pods/p1/", "v1.getPod", map[string]string{"podId": "p1"}},
		"v1 two slashes":    {"GET", "/v1//pods/p1", "v1.getPod", map[string]string{"podId": "p1"}},
		"graphql":           {"POST", "/graphql", "graphql", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := tb.Match(tc.method, tc.path)
			if err != nil {
				t.Fatalf("Match: %v", err)
			}
			if m.Route.ID != tc.want || !cmp.Equal(m.Params, tc.params) {
				t.Errorf("Match = %s %v, want %s %v", m.Route.ID, m.Params, tc.want, tc.params)
			}
		})
	}
}

func TestMatchNotFound(t *testing.T) {
	tb := table(t)
	for _, path := range []string{
		"/", "/v2", "/v2/", "/v2/pods/", "/v2/pods/p1/", "//v2/pods", "/v2//pods", "/V2/pods", "/v2/Pods",
		"/v2/%70ods", "/v2/pods/%65dakugmnck", "/v2/pods/a%2Db", "/v2/pods/a%5f", "/v2/pods/%7E1", "/v3/pods", "/v2/notebooks", "/graphql/", "/metrics", "/admin/limits", "/v2/pods/p1/x",
	} {
		if m, err := tb.Match("GET", path); !errors.Is(err, route.ErrNotFound) {
			t.Errorf("Match(%q) = %v, %v, want ErrNotFound", path, m.Route, err)
		}
	}
}

func TestMatchMethodNotAllowed(t *testing.T) {
	tb := table(t)
	for _, method := range []string{"DELETE", "get", "POSTX", "TRACE", "CONNECT", "HEAD", ""} {
		_, err := tb.Match(method, "/v2/pods")
		me, ok := errors.AsType[*route.MethodError](err)
		if !ok {
			t.Fatalf("Match(%q) = %v, want a MethodError", method, err)
		}
		if diff := cmp.Diff([]string{"GET", "POST"}, me.Allow); diff != "" {
			t.Errorf("Allow (-want +got):\n%s", diff)
		}
	}
}

// Each of these reaches another route in some parser.
func TestMatchRefusesSecondSpellings(t *testing.T) {
	tb := table(t)
	for _, path := range []string{
		"", "v2/pods", "*", "http://evil/v2/pods",
		"/v2/pods/../account/ssh-keys", "/v2/pods/./p1", "/v2/pods/..", "/v2/pods/%2e%2e/account/ssh-keys",
		"/v2/pods/.%2E/x", "/v2/pods/a%2fb", "/v2/pods/a%2F..%2Faccount", "/v2/pods/a\\b", "/v2/pods/a%5cb",
		"/v2/pods;v=1/p1", "/v2/pods/p1%3bx", "/v2/pods#/x", "/v2/pods/%23", "/v2/pods%00", "/v2/pods/p%0d%0aX:y",
		"/v2/pods/%c0%ae", "/v2/pods/%252e", "/v2/pods/%zz", "/v2/pods/%2", "/v2/pods/ü", "/v2/pods/a b", "/v2/pods/%ff",
		"/v2/pods/" + strings.Repeat("a", 2000),
	} {
		m, err := tb.Match("GET", path)
		if _, ok := errors.AsType[*route.PathError](err); !ok {
			t.Errorf("Match(%q) = %v, %v, want a PathError", path, m.Route, err)
		}
	}
}

// The rest of a path passes as it is, unless it has a dot segment for some reader. What is before it has one spelling.
func TestMatchTheRest(t *testing.T) {
	tb, err := route.NewTable([]route.Route{{ID: "call", Dialect: route.Run, Method: route.AnyMethod, Pattern: "/lb/{id}/{path...}"}, {ID: "listPods", Dialect: route.V2, Method: "GET", Pattern: "/v2/pods"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, rest := range []string{
		"", "a", "a/b/", "/", "/a//b", "a%2Fb", "a%2fb", "a;v=1", "a;v=1/b;w", "~user", "%7Euser", "%41", "a%20b", "%C3%A9", "%00", "%0d%0a", "a\\b", "a:b@c,d", `"<>^|{}`,
		"...", "a..", "..a", ".a", "a.b", "%2e%2ea", "100%25", "%252F", strings.Repeat("a", 8<<10),
	} {
		m, err := tb.Match("PUT", "/lb/e1/"+rest)
		if err != nil || m.Params["id"] != "e1" || m.Params["path"] != rest {
			t.Errorf("Match(%q) = %v, %v, want it as it is", rest, m.Params, err)
		}
	}
	for _, path := range []string{
		"/lb/e1/..", "/lb/e1/.", "/lb/e1/../e2", "/lb/e1/a/../../e2/x", "/lb/e1/%2e%2e/e2", "/lb/e1/.%2E/e2", "/lb/e1/a%2f..%2f..%2fe2", "/lb/e1/..%5ce2", "/lb/e1/..\\e2",
		"/lb/e1/..;/e2", "/lb/e1/..;a=b/e2", "/lb/e1/..%3b/e2", "/lb/e1/%252e%252e/e2", "/lb/e1/%25252e./e2", "/lb/e1/%25zz/%252e%252e/e2", "/lb/e1/%2", "/lb/e1/%zz", "/lb/e1/a b", "/lb/e1/\u00e9", "/lb/e1/a#b",
		"/lb/e1/" + strings.Repeat("a", 8<<10+1), "/lb/../v2/pods", "/lb/e1%2fe2/x", "/lb/%2e%2e/x", "/lb/e1;/x", "/lb/e1%2f..%2fe2/x", "/lb;/e1/x",
	} {
		m, err := tb.Match("GET", path)
		if _, ok := errors.AsType[*route.PathError](err); !ok {
			t.Errorf("Match(%.80q) = %v, %v, want a PathError", path, m.Params, err)
		}
	}
}

func TestNewTableFindsConflicts(t *testing.T) {
	for name, routes := range map[string][]route.Route{
		"same place":       {{ID: "a", Method: "GET", Pattern: "/x/{id}"}, {ID: "b", Method: "GET", Pattern: "/x/{id}"}},
		"two names":        {{ID: "a", Method: "GET", Pattern: "/x/{id}"}, {ID: "b", Method: "PUT", Pattern: "/x/{key}"}},
		"relative pattern": {{ID: "a", Method: "GET", Pattern: "x"}},
		"empty segment":    {{ID: "a", Method: "GET", Pattern: "/x//y"}},
	} {
		if _, err := route.NewTable(routes); err == nil {
			t.Errorf("%s: err = nil, want the conflict", name)
		}
	}
}

func TestParseQuery(t *testing.T) {
	got, err := route.ParseQuery("a=1&b=x%20y&a=2&c")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"a": {"1", "2"}, "b": {"x y"}, "c": {""}}
	if diff := cmp.Diff(want, map[string][]string(got)); diff != "" {
		t.Errorf("ParseQuery (-want +got):\n%s", diff)
	}
	for _, raw := range []string{"a=1;b=2", "a=%zz", "a=%", "a=%00", "a=%ff", "a=1#x", strings.Repeat("a&", 100), "x=" + strings.Repeat("a", 9000)} {
		if q, err := route.ParseQuery(raw); err == nil {
			t.Errorf("ParseQuery(%.20q) = %v, want an error", raw, q)
		}
	}
}

func FuzzMatch(f *testing.F) {
	tb := table(f)
	f.Add("/v2/pods/%2e%2e/account/ssh-keys")
	f.Add("/v2/catalog/gpus/NVIDIA%20L4")
	f.Fuzz(func(t *testing.T, path string) {
		m, err := tb.Match("GET", path)
		if err != nil {
			return
		}
		for name, v := range m.Params {
			if v == "" || v == "." || v == ".." || strings.ContainsAny(v, "/\\\x00%") {
				t.Errorf("Match(%q): parameter %s = %q", path, name, v)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	tb := table(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tb.Match("GET", "/v2/pods/abcdefgh"); err != nil {
			b.Fatal(err)
		}
	}
}
