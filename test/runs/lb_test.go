package runs

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// balancedAt is the setting of load-balanced endpoints at an address of loopback. If that is not the platform's, it has each endpoint.
func balancedAt(t *testing.T, address string) option {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return func(r *rig) {
		if address != r.platform.RunURL {
			r.platform.AddFault(platform.Fault{Operation: "getEndpoint", Kind: platform.FaultMalformed, Body: `{"id":"e1","type":"LOAD_BALANCER"}`})
		}
		r.text = strings.Replace(r.text, `run_url: "RUNS"`, `run_url: "RUNS", lb_url: "http://{id}.localhost:`+port+`"`, 1)
	}
}

// TestLoadBalancedEndpoints: a record's address leads to the worker.
func TestLoadBalancedEndpoints(t *testing.T) {
	r := newRig(t, top(`public_url: "https://gateway.test"`), func(r *rig) { balancedAt(t, r.platform.RunURL)(r) })
	made := r.want(t, 201, "POST", "/v2/serverless", `{"name":"web","image":"i","type":"LOAD_BALANCER","gpu":{"pools":["ADA_24"]},"workers":{"min":1,"max":1},"scaling":{"type":"REQUEST_COUNT","requestCount":4}}`)
	urls, _ := made["requestUrls"].(map[string]any)
	base, _ := urls["base"].(string)
	path, ours := strings.CutPrefix(base, "https://gateway.test")
	if !ours || !strings.HasPrefix(path, "/lb/") {
		t.Fatalf("requestUrls: %v", urls)
	}
	got := r.want(t, 200, "PUT", path+"/some/path?b=2&a=1", `not JSON`)
	if got["method"] != "PUT" || got["path"] != "/some/path" || got["body"] != "not JSON" {
		t.Errorf("the worker was asked %v", got)
	}
	if a := r.ask(t, "GET", path+"/x", "", ""); a.Status != 401 || !strings.HasPrefix(a.Body, `{"error":`) {
		t.Errorf("a stranger: %d %s", a.Status, a.Body)
	}
	if a := r.ask(t, "GET", path+"/../x", "key_research", ""); a.Status != 400 {
		t.Errorf("dots: %d %s", a.Status, a.Body)
	}
}

// TestNoHostButOwnEndpoints: only hosts of the organisation's own endpoints get a call, and with it the platform key.
func TestNoHostButOwnEndpoints(t *testing.T) {
	r := newRig(t, func(r *rig) { balancedAt(t, r.platform.RunURL)(r) })
	id := r.balanced(t)
	r.platform.ResetCalls()
	for _, target := range []string{"/lb/nosuch/v2/pods", "/lb/api/v2/pods", "/lb/p-image-t2i/runsync", "/lb/" + id + "x/ping"} {
		if a := r.ask(t, "POST", target, "key_research", `{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"}}`); a.Status != 404 || !strings.HasPrefix(a.Body, `{"error":`) {
			t.Errorf("%s: %d %s", target, a.Status, a.Body)
		}
	}
	for range 3 {
		r.want(t, 200, "GET", "/lb/"+id+"/x", "")
	}
	if n, all := len(r.platform.CallsTo("balanced")), len(r.platform.Calls()); n != 3 || all != 8 {
		t.Errorf("workers got %d calls and the platform %d, want 3 and 8", n, all)
	}
	if n := len(r.platform.CallsTo("getEndpoint")); n != 5 {
		t.Errorf("endpoints were read %d times, want once for each unknown ID and once for the endpoint", n)
	}
}

// TestHead: the caller gets the length of the body that the worker would send to a GET.
func TestHead(t *testing.T) {
	status := http.StatusOK
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			t.Errorf("the worker was asked %s, want HEAD", r.Method)
		}
		w.Header().Set("Content-Length", "1234")
		w.WriteHeader(status)
	}))
	t.Cleanup(worker.Close)
	r := newRig(t, balancedAt(t, worker.URL), policies(`policies: []`))
	for _, status = range []int{http.StatusOK, http.StatusNotFound} {
		a := r.ask(t, "HEAD", "/lb/e1/p", "key_research", "")
		if a.Status != status || a.Header.Get("Content-Length") != "1234" || a.Body != "" {
			t.Errorf("%d %v %q, want %d and the worker's Content-Length", a.Status, a.Header, a.Body, status)
		}
	}
}

// TestWhatWorkersSee: workers see everything but the gateway's own headers, and so do callers.
func TestWhatWorkersSee(t *testing.T) {
	var seen *http.Request
	var body string
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen, body = r, string(b)
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("X-Worker", "w1")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	}))
	t.Cleanup(worker.Close)
	r := newRig(t, balancedAt(t, worker.URL), policies(`policies: [{policy: run_endpoints, params: {endpoints: [e1]}}]`))
	a := r.ask(t, "PATCH", "/lb/e1/a%20b/?q=1&p=%41", "key_research", world.Chunked("one", "two"),
		"Transfer-Encoding: chunked", "Content-Type: text/plain", "X-Custom: yes", "Cookie: c=d", "X-Forwarded-For: 10.0.0.1", "X-Forwarded-Client-Cert: Hash=00", "Content-Encoding: gzip")
	if a.Status != http.StatusTeapot || a.Body != "short and stout" || a.Header.Get("X-Worker") != "w1" || a.Header.Get("Set-Cookie") != "" {
		t.Errorf("the caller sees %d %v %q", a.Status, a.Header, a.Body)
	}
	if a.Header.Get("Content-Security-Policy") != "sandbox" || a.Header.Get("X-Tollgate-Decision") == "" {
		t.Errorf("the gateway's own headers: %v", a.Header)
	}
	host, _, _ := strings.Cut(seen.Host, ".")
	if seen.Method != "PATCH" || seen.RequestURI != "/a%20b/?q=1&p=%41" || host != "e1" || body != "onetwo" {
		t.Errorf("the worker sees %s %s at %s, %q", seen.Method, seen.RequestURI, seen.Host, body)
	}
	h := seen.Header
	if h.Get("Authorization") != "Bearer pk-acme-"+canary || h.Get("X-Custom") != "yes" || h.Get("Content-Encoding") != "gzip" || h.Get("Cookie")+h.Get("X-Forwarded-For")+h.Get("X-Forwarded-Client-Cert") != "" {
		t.Errorf("the worker sees %v", h)
	}
	seen = nil
	if a := r.ask(t, "GET", "/lb/e2/x", "key_research", ""); a.Status != 403 || seen != nil {
		t.Errorf("a denied endpoint: %d %s", a.Status, a.Body)
	}
	if a := r.ask(t, "POST", "/lb/e1/x", "key_research", "x", "Content-Length: 31457281"); a.Status != 413 || seen != nil {
		t.Errorf("declared too large: %d %s", a.Status, a.Body)
	}
}

// TestPathsPassAsTheyAre: the worker gets the path that was sent, at its own host, and policies judge that path.
func TestPathsPassAsTheyAre(t *testing.T) {
	var seen *http.Request
	worker := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r }))
	t.Cleanup(worker.Close)
	r := newRig(t, balancedAt(t, worker.URL), policies(`policies: []`))
	for _, path := range []string{
		"/a%2Fb", "/a%2fb;v=1/~x", "/%7Euser/%41", "/caf%C3%A9", "/a;b=c;d", "//e2.run.platform.test/x", "//", "///x", "/a//b/", "/http://e2.run.platform.test/x", "/a:b@c", `/"<^|{}>`, "/a%252Fb",
	} {
		seen = nil
		if a := r.ask(t, "GET", "/lb/e1"+path+"?q=%2F", "key_research", ""); a.Status != 200 || seen == nil {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
			continue
		}
		if host, _, _ := strings.Cut(seen.Host, "."); seen.RequestURI != path+"?q=%2F" || host != "e1" {
			t.Errorf("%s: the worker sees %s at %s", path, seen.RequestURI, seen.Host)
		}
	}
	dir := t.TempDir()
	const own = `package policies.seen

deny contains sprintf("path %s, params %s", [input.request.path, input.request.params.path]) if input.request.operation == "callEndpoint"
`
	if err := os.WriteFile(filepath.Join(dir, "seen.rego"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	judged := newRig(t, balancedAt(t, worker.URL), policies("rego: "+dir+"\n    policies: [{policy: seen}]"))
	seen = nil
	if a := judged.ask(t, "GET", "/lb/e1//a%2Fb;v=1/%7Ex", "key_research", ""); a.Status != 403 || seen != nil || !strings.Contains(a.Body, "path /lb/e1//a%2Fb;v=1/%7Ex, params /a%2Fb;v=1/%7Ex") {
		t.Errorf("judged: %d %s, want 403 with the path as it was sent", a.Status, a.Body)
	}
	for _, path := range []string{"/../x", "/%2e%2e/x", "/..%2fx", "/..;/x", "/a%2f..%2f..%2fe2/x", "//../e2"} {
		seen = nil
		if a := r.ask(t, "GET", "/lb/e1"+path, "key_research", ""); a.Status != 400 || seen != nil {
			t.Errorf("%s: %d %s, sent on: %t; want 400", path, a.Status, a.Body, seen != nil)
		}
	}
}

// TestWorkersGetNoKeyOfACaller: headers that hold a key are removed, and a key in the path or the query is refused. The same holds for the members of
// a job but its input, and for paths and queries of the run interface.
func TestWorkersGetNoKeyOfACaller(t *testing.T) {
	const imported = "rpa_Zx9kQ2vLm4TgH8sWb1YcE6dN3pRuJ5aF"
	var seen *http.Request
	var body string
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen, body = r, string(b)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"j1","status":"IN_QUEUE"}`)
	}))
	t.Cleanup(worker.Close)
	with := func(settings string) *rig {
		return newRig(t, balancedAt(t, worker.URL), func(r *rig) { r.runs = worker.URL }, policies(settings+"policies: []"), func(r *rig) {
			r.text = strings.Replace(r.text, "    keys:\n", "    keys:\n      - {id: imported, team: research, sha256: SHA256("+imported+"), roles: [operator], limits: {minute: 600}}\n", 1)
		})
	}
	r := with("")
	a := r.ask(t, "POST", "/lb/e1/x?q=1", imported, imported, "X-Api-Key: "+imported, "X-Backup: Basic user:"+imported, "X-Glued: a"+imported+"b", "X-Other: yes", "Content-Type: text/plain")
	if told := a.Header.Get("X-Tollgate-Warning"); a.Status != 200 || !strings.Contains(told, "removed from the headers because of a gateway key or token: X-Api-Key, X-Backup, X-Glued") {
		t.Errorf("headers: %d %s, warning %q", a.Status, a.Body, told)
	}
	if h := seen.Header; h.Get("X-Api-Key")+h.Get("X-Backup")+h.Get("X-Glued") != "" || h.Get("X-Other") != "yes" || body != imported {
		t.Errorf("the worker sees %v and %q", h, body)
	}
	for _, tc := range []struct{ method, target, body, at string }{
		{"GET", "/lb/e1/" + imported, "", "path"},
		{"GET", "/lb/e1/%72pa_Zx9kQ2vLm4TgH8sWb1YcE6dN3pRuJ5aF", "", ""},
		{"GET", "/lb/e1/x?token=" + imported, "", "query"},
		{"GET", "/lb/e1/x?token=%72pa_Zx9kQ2vLm4TgH8sWb1YcE6dN3pRuJ5aF", "", "query"},
		{"POST", "/v2/e1/run", `{"input":{},"webhook":"https://h.example/?k=` + imported + `"}`, "$.webhook"},
		{"GET", "/v2/e1/status/" + imported, "", "path"},
	} {
		seen = nil
		a := r.ask(t, tc.method, tc.target, imported, tc.body)
		if seen != nil || a.Status < 400 || tc.at != "" && a.Status != http.StatusUnprocessableEntity || strings.Contains(a.Body, imported) {
			t.Errorf("%s %s: %d %s, sent on: %t; want 422", tc.method, tc.target, a.Status, a.Body, seen != nil)
		}
	}
	if a := r.ask(t, "POST", "/v2/e1/run", imported, `{"input":{"key":"`+imported+`"}}`); a.Status != 200 || !strings.Contains(body, imported) {
		t.Errorf("the input of a job: %d %s; the worker got %s", a.Status, a.Body, body)
	}
	seen = nil
	if a := with("keys_in_bodies: refuse\n    ").ask(t, "GET", "/lb/e1/x", imported, "", "X-Api-Key: "+imported); a.Status != http.StatusUnprocessableEntity || seen != nil {
		t.Errorf("a header, refused: %d %s", a.Status, a.Body)
	}
}

// TestWorkersDoNotReachTheOrigin: a worker's response has no effect on the origin of the consoles, on callers' browsers or on caches and proxies
// in front of the gateway. Its other headers pass.
func TestWorkersDoNotReachTheOrigin(t *testing.T) {
	removed := map[string]string{
		"Clear-Site-Data": `"*"`, "Refresh": "0;url=https://evil.example", "Service-Worker-Allowed": "/", "Set-Cookie": "__Host-tollgate_session=x; Path=/; Secure", "Set-Cookie2": "a=b",
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": "true", "Access-Control-Allow-Headers": "*", "Access-Control-Allow-Private-Network": "true", "Access-Control-Anything-New": "1",
		"Strict-Transport-Security": "max-age=0", "Public-Key-Pins": "x", "Expect-CT": "enforce", "Alt-Svc": `h3="evil:443"`, "NEL": "{}", "Report-To": "{}", "Reporting-Endpoints": `d="https://evil.example"`,
		"Link": "</ui/logout>; rel=preload", "Speculation-Rules": `"https://evil.example"`, "X-DNS-Prefetch-Control": "on", "WWW-Authenticate": "Basic", "Authentication-Info": "x",
		"Accept-CH": "Sec-CH-UA", "Critical-CH": "Sec-CH-UA", "Origin-Agent-Cluster": "?1", "Use-As-Dictionary": `match="/*"`, "Permissions-Policy": "x", "Set-Login": "logged-in",
		"Content-Security-Policy-Report-Only": "report-uri https://evil.example", "Timing-Allow-Origin": "*", "Secure-Session-Registration": "x", "Sec-Session-Registration": "x",
		"Attribution-Reporting-Register-Source": "{}", "Cache-Control": "max-age=60, public", "Surrogate-Control": "max-age=60", "CDN-Cache-Control": "max-age=60",
		"X-Accel-Redirect": "/secret", "X-Sendfile": "/etc/passwd", "SourceMap": "https://evil.example",
	}
	kept := map[string]string{
		"X-Worker": "w1", "Etag": `"x"`, "Content-Language": "de", "Content-Disposition": "inline", "X-Accel-Buffering": "no", "Server-Timing": "a", "Vary": "Accept", "X-Frame-Options": "DENY",
		"Content-Type": "text/html", "Retry-After": "1", "Openai-Processing-Ms": "3",
	}
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, set := range []map[string]string{removed, kept} {
			for name, value := range set {
				w.Header().Set(name, value)
			}
		}
		w.Header().Set("Content-Security-Policy", "default-src *")
		if r.URL.Path == "/untyped" {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<html><script>alert(1)</script></html>")
			return
		}
		if r.URL.Path == "/long" {
			_, _ = io.WriteString(w, strings.Repeat("x", 100<<10))
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(worker.Close)
	r := newRig(t, balancedAt(t, worker.URL))
	if a := r.ask(t, "GET", "/lb/e1/untyped", "key_research", ""); a.Status != 200 || a.Header.Values("Content-Type") != nil {
		t.Errorf("a body without a type: %d %q, want 200 without a type", a.Status, a.Header.Values("Content-Type"))
	}
	for _, path := range []string{"/short", "/long"} {
		a := r.ask(t, "GET", "/lb/e1"+path, "key_research", "")
		for name := range removed {
			if got := a.Header.Values(name); len(got) > 0 {
				t.Errorf("%s: %s: %q reaches the caller", path, name, got)
			}
		}
		for name, want := range kept {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s: %q, want %q", path, name, got, want)
			}
		}
		if got := a.Header.Values("Content-Security-Policy"); len(got) != 1 || got[0] != "sandbox" {
			t.Errorf("%s: Content-Security-Policy: %q, want sandbox", path, got)
		}
	}
}
