package dev_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/dev"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// stack is an emulator whose workers run functions, and a gateway on default settings
// with a key that has no role.
type stack struct {
	platform *platform.Instance
	gateway  *dev.Gateway
}

// newStack starts one. settings are those of the organisation.
func newStack(t *testing.T, settings string, change ...func(*platform.Options)) *stack {
	t.Helper()
	options := platform.Options{
		Worker: platform.Worker{Python: python(t).Path()},
		Timing: platform.Timing{ColdStart: 50 * time.Millisecond, Job: time.Millisecond},
	}
	for _, c := range change {
		c(&options)
	}
	p := platform.RunT(t, platform.WithOptions(options))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.RunURL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return newStackOf(t, p, `, run_url: "`+p.RunURL+`", lb_url: "http://{id}.localhost:`+port+`"`, settings)
}

// newStackOf starts one over a platform, where runs are the addresses of its run interface.
func newStackOf(t *testing.T, p *platform.Instance, runs, settings string) *stack {
	t.Helper()
	cfg := world.Configuration(t, `
platform: {base_url: "`+p.URL+`"`+runs+`}
redis: {embedded: true}
orgs:
  - id: acme
    credential: {env: KEY}
    `+settings+`
    keys: [{id: a, sha256: SHA256(key_of_nobody)}]
`, map[string]string{"KEY": platform.DefaultKey})
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr())})
	s := httptest.NewServer(g.Handler())
	t.Cleanup(s.Close)
	return &stack{platform: p, gateway: &dev.Gateway{URL: s.URL, Key: "key_of_nobody", HTTP: s.Client()}}
}

// console is the output for the developer.
type console struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// served is a project that is served.
type served struct {
	*dev.Session
	server  *dev.Server
	state   *dev.State
	url     string
	console *console
}

func state(t *testing.T, dir string) *dev.State {
	t.Helper()
	s, err := dev.OpenState(dir, "me@here")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *stack) serve(t *testing.T, dir string, change ...func(*dev.Settings)) *served {
	t.Helper()
	out := &console{}
	set := dev.Settings{User: "me", Cold: time.Minute, Now: time.Now, Out: out}
	for _, c := range change {
		c(&set)
	}
	kept := state(t, dir)
	session := dev.NewSession(s.gateway, kept, python(t), set)
	web := httptest.NewUnstartedServer(nil)
	hosts, err := dev.Hosts("localhost", web.Listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	server, err := dev.NewServer(session, read(t, dir), hosts)
	if err != nil {
		t.Fatal(err)
	}
	web.Config.Handler = server
	web.Start()
	t.Cleanup(web.Close)
	return &served{Session: session, server: server, state: kept, url: web.URL, console: out}
}

// ask makes a call and returns status and body. Headers are name and value in turn; Host
// is one of them.
func (s *served) ask(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req) //nolint:forbidigo // a developer's client
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(raw))
}

// wants makes a call whose answer has a status and contains a text.
func (s *served) wants(t *testing.T, method, path, body string, status int, text string) {
	t.Helper()
	if code, got := s.ask(t, method, path, body); code != status || !strings.Contains(got, text) {
		t.Errorf("%s %s %s: %d %s, want %d and %q\n%s", method, path, body, code, got, status, text, s.console)
	}
}

// endpoints are the names of those at the platform.
func (s *stack) endpoints(t *testing.T) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.gateway.URL+"/v2/serverless", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.gateway.Key)
	res, err := s.gateway.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var list struct{ Serverless, Endpoints []struct{ Name string } }
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range append(list.Serverless, list.Endpoints...) {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

const (
	queue = from + `
@Endpoint(name="q", gpu=GpuGroup.ADA_24)
async def q(text: str, times: int = 2):
    """Repeat a text."""
    import os
    print("at work")
    if text == "fail": raise ValueError("no")
    if text == "object": return os.stat(".")
    if text == "key": return sorted(os.environ)
    return {"said": text * times, "set": sorted({1}), "pair": (1, 2)}
`
	classes = from + `
@Endpoint(name="c", cpu="cpu3c-1-2")
class Counter:
    """Counts."""
    def __init__(self, start=1): self.n = start
    def up(self, by: int): return self.n + by
    def zero(self): return 0
`
	web = from + `
api = Endpoint(name="w", cpu="cpu3c-2-4")
@api.get("/items/{id}")
def get(id: int, full: bool = False): return {"id": id, "full": full}
@api.post("/items")
def post(item: dict): return item
@api.put("/items/{id}")
def put(id: int, name: str): return [id, name]
@api.delete("/items/{id}")
def delete(id: int): return None
@api.patch("/items")
def patch(a: int, b: int = 1): return a + b
`
)

// The statements of the platform's specification about the toolkit's server.
func TestStatements(t *testing.T) { //nolint:tparallel // each part goes by what those before it made
	t.Parallel()
	s := newStack(t, "labels: [{name: dev}]")
	dir := write(t, map[string]string{"q.py": queue, "deep/c.py": classes, "w.py": web, ".env": "TOLLGATE_KEY=x\nPRIVATE=y\n"})
	d := s.serve(t, dir)
	t.Run("1 health at / and /ping", func(t *testing.T) {
		d.wants(t, "GET", "/", "", 200, `"docs":"/docs"`)
		d.wants(t, "GET", "/ping", "", 200, `"healthy"`)
	})
	t.Run("2 an explorer at /docs, with first lines of docstrings", func(t *testing.T) {
		d.wants(t, "GET", "/docs", "", 200, "/docs/dev.js")
		d.wants(t, "GET", "/docs/dev.js", "", 200, "/openapi.json")
		d.wants(t, "GET", "/openapi.json", "", 200, `"summary":"Repeat a text."`)
	})
	t.Run("3 a queue function takes its parameters in a wrapper", func(t *testing.T) {
		d.wants(t, "POST", "/q/runsync", `{"input":{"text":"ab"}}`, 200, `"output":{"said":"abab","set":[1],"pair":[1,2]},"status":"COMPLETED"`)
		d.wants(t, "POST", "/q/runsync", `{"text":"ab"}`, 400, `wrapped in \"input\"`)
		d.wants(t, "POST", "/q/runsync", ``, 400, `{\"input\": {\"text\": ...`)
	})
	t.Run("4 methods of a class have their names in the path", func(t *testing.T) {
		d.wants(t, "POST", "/deep/c/up/runsync", `{"input":{"by":4}}`, 200, `"output":5`)
		d.wants(t, "POST", "/deep/c/zero/runsync", ``, 200, `"output":0`)
	})
	t.Run("5 load-balanced routes take the payload direct, with five methods", func(t *testing.T) {
		d.wants(t, "GET", "/w/items/7?full=true", "", 200, `{"id":7,"full":true}`)
		d.wants(t, "POST", "/w/items", `{"x":1}`, 200, `{"x":1}`)
		d.wants(t, "PUT", "/w/items/3", `{"name":"n"}`, 200, `[3,"n"]`)
		d.wants(t, "DELETE", "/w/items/3", "", 200, `null`)
		d.wants(t, "PATCH", "/w/items", `{"a":1}`, 200, `2`)
	})
	t.Run("6 no credentials are asked for, and .env is not forwarded", func(t *testing.T) {
		if code, got := d.ask(t, "POST", "/q/runsync", `{"input":{"text":"key"}}`); code != 200 || strings.Contains(got, "PRIVATE") || strings.Contains(got, "TOLLGATE_KEY") {
			t.Errorf("%d %s", code, got)
		}
		for _, call := range s.platform.Calls() {
			if bytes.Contains(call.Body, []byte("PRIVATE")) || bytes.Contains(call.Body, []byte(s.gateway.Key)) {
				t.Errorf("the platform was sent %s", call.Body)
			}
		}
	})
	t.Run("7 endpoints are made at the first call, as live-", func(t *testing.T) {
		for _, name := range []string{"live-q", "live-c", "live-w"} {
			if got := strings.Count(s.endpoints(t), name); got != 1 {
				t.Errorf("%d endpoints %s of %s", got, name, s.endpoints(t))
			}
		}
		if n := len(s.platform.CallsTo("createEndpoint")); n != 3 {
			t.Errorf("%d creates, want 3", n)
		}
	})
	t.Run("8 what a function prints is shown, and what it raises is 500", func(t *testing.T) {
		d.wants(t, "POST", "/q/runsync", `{"input":{"text":"fail"}}`, 500, "no")
		if !strings.Contains(d.console.String(), "live-q | at work\n") {
			t.Errorf("console:\n%s", d.console)
		}
	})
	t.Run("9 wrong input is 400, an unknown route 404", func(t *testing.T) {
		d.wants(t, "POST", "/q/runsync", `{"input":{"text":1}}`, 400, "text: must be a string, not 1")
		d.wants(t, "POST", "/q/runsync", `{"input":{"txt":"a","text":"b"}}`, 400, "txt: q has no such parameter")
		d.wants(t, "POST", "/w/items", `{"x":1,"x":2}`, 400, "specified twice")
		d.wants(t, "GET", "/w/items/7?full=maybe", "", 400, "full: must be a boolean")
		d.wants(t, "POST", "/nothing/runsync", `{}`, 404, "no route")
		d.wants(t, "GET", "/q/runsync", "", 405, "POST")
		d.wants(t, "POST", "/q/runsync", `{"input":{"text":"object"}}`, 502, "it holds a")
	})
	t.Run("10 list tells Active from Inactive, and undeploy removes", func(t *testing.T) {
		list, err := d.List(t.Context())
		if err != nil || len(list) != 3 || list[0].Status != "Active" {
			t.Fatalf("%v %+v", err, list)
		}
		for _, e := range list {
			if err := d.Remove(t.Context(), strings.TrimPrefix(e.Name, "live-")); err != nil {
				t.Error(err)
			}
		}
		if got := s.endpoints(t); got != "" {
			t.Errorf("there still are %s", got)
		}
		d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, `"said":"aa"`)
	})
}

// Calls that race for an endpoint make it once. An unchanged one is taken over by the
// next session, a changed one updated, and one of another kind made anew.
func TestEndpointsAreMadeOnce(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	dir := write(t, map[string]string{"q.py": queue})
	d := s.serve(t, dir)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa") })
	}
	group.Wait()
	creates := func(want, updates int, names string) {
		t.Helper()
		if n, m := len(s.platform.CallsTo("createEndpoint")), len(s.platform.CallsTo("updateEndpoint")); n != want || m != updates || s.endpoints(t) != names {
			t.Errorf("%d creates and %d updates, want %d and %d; endpoints %s\n%s", n, m, want, updates, s.endpoints(t), d.console)
		}
	}
	creates(1, 0, "live-q")
	d = s.serve(t, dir)
	d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa")
	creates(1, 0, "live-q")
	put(t, dir, "q.py", strings.Replace(queue, "ADA_24)", "ADA_24, idle_timeout=5, env={'A':'b'})", 1))
	d.server.Serve(read(t, dir))
	d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa")
	creates(1, 1, "live-q")
	put(t, dir, "q.py", strings.Replace(queue, "gpu=GpuGroup.ADA_24", "cpu='cpu3c-2-4'", 1))
	d.server.Serve(read(t, dir))
	d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa")
	creates(2, 1, "live-q")
	list, err := d.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %+v", err, list)
	}
	// Removed behind the session's back, it is made again by the next call.
	other := s.serve(t, dir)
	if err := other.Remove(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa")
	creates(3, 1, "live-q")
}

// A refusal names the policy, and how to ask for approval where that is possible.
func TestRefusalsNameThePolicy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ settings, want string }{
		"policy":     {"policies: [{policy: gpu_allow_list, params: {gpus: [NVIDIA L4]}}]", "gpu_allow_list: "},
		"approvable": {"policies: [{policy: gpu_allow_list, approvable: true, params: {gpus: [NVIDIA L4]}}]", "tollgate approvals grant acme ap-"},
		"budget":     {"budget: {per_hour: 0.10}", "per_hour"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, c.settings)
			d := s.serve(t, write(t, map[string]string{"q.py": queue}))
			code, got := d.ask(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`)
			if code != 403 && code != 402 || !strings.Contains(got, c.want) || !strings.Contains(d.console.String(), "live-q: at most ") || s.endpoints(t) != "" {
				t.Errorf("%d %s; endpoints %q\n%s", code, got, s.endpoints(t), d.console)
			}
		})
	}
}

// A browser can neither be led here by another name nor call from another page, reads
// included.
func TestHostileBrowsers(t *testing.T) { //nolint:tparallel // parts of one server, each of a moment
	t.Parallel()
	s := newStack(t, "")
	d := s.serve(t, write(t, map[string]string{"w.py": web}))
	for name, c := range map[string]struct {
		method string
		header []string
		want   int
	}{
		"another name":           {"POST", []string{"Host", "evil.example"}, 421},
		"another name and port":  {"GET", []string{"Host", "evil.example:8888"}, 421},
		"another port":           {"GET", []string{"Host", "localhost:1"}, 421},
		"a page elsewhere":       {"POST", []string{"Origin", "https://evil.example"}, 403},
		"a page elsewhere reads": {"GET", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"a page of another port": {"GET", []string{"Sec-Fetch-Site", "same-site"}, 403},
		"a page of no origin":    {"POST", []string{"Origin", "null"}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			if code, got := d.ask(t, c.method, "/w/items/1", `{}`, c.header...); code != c.want {
				t.Errorf("%d %s, want %d", code, got, c.want)
			}
		})
	}
	if got := s.endpoints(t); got != "" {
		t.Errorf("it rented %s", got)
	}
	if code, got := d.ask(t, "GET", "/w/items/1", "", "Sec-Fetch-Site", "same-origin"); code != 200 {
		t.Errorf("its own page: %d %s", code, got)
	}
}

// Files may change, break and go while calls run: a call ends as it began, and a broken
// file names its fault.
func TestReload(t *testing.T) {
	t.Parallel()
	s := newStack(t, "")
	dir := write(t, map[string]string{"q.py": queue, "w.py": web})
	d := s.serve(t, dir)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "aa") })
	}
	put(t, dir, "q.py", "def (")
	d.server.Serve(read(t, dir))
	group.Wait()
	d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 503, "q.py:1:5: invalid syntax")
	d.wants(t, "GET", "/w/items/7", "", 200, `"id":7`)
	put(t, dir, "q.py", strings.Replace(queue, "text * times", "text + '!'", 1))
	put(t, dir, "w.py", "")
	d.server.Serve(read(t, dir))
	d.wants(t, "POST", "/q/runsync", `{"input":{"text":"a"}}`, 200, "a!")
	d.wants(t, "GET", "/w/items/7", "", 404, "no route")
}
