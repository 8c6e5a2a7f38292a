package runs

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/world"
)

// balancedAt is the setting of load-balanced endpoints at an address of loopback.
func balancedAt(t *testing.T, address string) option {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return func(r *rig) {
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
