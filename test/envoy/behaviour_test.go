package envoy

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

const (
	pod4090 = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA GeForce RTX 4090"}}`
	podH100 = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA H100 80GB HBM3"}}`
)

// behaviour is one case of the table.
type behaviour struct {
	name    string
	request string
	status  int
	// plain is the HTTP door's status where it differs, and why says why it may.
	plain int
	why   string
	// want are parts of the body, header lines that must be there ("Name:
	// part").
	want, header []string
	// sent is how many requests reach the platform, price lists aside.
	sent int
	// envoys says that Envoy answers by itself, so that the ids are missing.
	envoys bool
	// line is the status in line where the gateway's listener, or Envoy, refuses
	// a request before it is an exchange, so that the ids are missing there.
	line int
}

// inLine is the case as it is in line.
func (c behaviour) inLine() behaviour {
	if c.line != 0 {
		c.status, c.envoys, c.header, c.sent = c.line, true, nil, 0
	}
	return c
}

var limits = []string{`Ratelimit: "minute";r=`, `Ratelimit-Policy: "minute";q=6000;w=60`}

// bodyOf makes a JSON document of n bytes.
func bodyOf(n int) string { return `{"name":"` + strings.Repeat("x", n-len(`{"name":""}`)) + `"}` }

// table has the answers that a caller in front of Envoy may expect.
func table() []behaviour {
	post := func(body string, header ...string) string {
		return request("POST", "/v2/pods", "key_research", body, header...)
	}
	get := func(target string) string { return request("GET", target, "key_research", "") }
	chunks := "Transfer-Encoding: chunked"
	return []behaviour{
		// What works.
		{name: "list", request: get("/v2/pods"), status: 200, sent: 1, header: limits},
		{name: "create", request: post(pod4090), status: 201, sent: 1, header: limits, want: []string{`"status":"PROVISIONING"`}},
		{name: "create, chunked", request: post(world.Chunked(pod4090[:5], pod4090[5:]), chunks), status: 201, sent: 1},
		{
			name: "create, chunked with trailers", status: 201, sent: 1,
			request: post(strings.TrimSuffix(world.Chunked(pod4090), "\r\n")+"X-Trailer: 1\r\n\r\n", chunks),
		},
		{name: "create, asking first", request: post(pod4090, "Expect: 100-continue"), status: 201, sent: 1},
		{name: "patch of an unknown pod", request: request("PATCH", "/v2/pods/nope1234", "key_research", `{"name":"b"}`), status: 404, sent: 1, header: limits},
		{name: "delete of an unknown pod", request: request("DELETE", "/v2/pods/nope1234", "key_research", ""), status: 404, sent: 1},
		{name: "empty chunked body on a GET", request: request("GET", "/v2/pods", "key_research", "0\r\n\r\n", chunks), status: 200, sent: 1},
		{name: "API description", request: request("GET", "/v2/openapi.json", "", ""), status: 200, want: []string{`"openapi":"3.1`}},
		{name: "request id adopted", request: request("GET", "/v2/pods", "key_research", "", "X-Request-Id: abc-1"), status: 200, sent: 1, header: []string{"X-Request-Id: abc-1"}},

		// A length that is known comes before everything, a body of unknown length after the key.
		{name: "too large", request: request("POST", "/v2/pods", "", bodyOf(102401)), status: 413, want: []string{`"status":413`}},
		{name: "too large, chunked", request: post(world.Chunked(bodyOf(102401)), chunks), status: 413, want: []string{`"status":413`}, header: limits},
		{name: "too large, chunked, no key", request: request("POST", "/v2/pods", "", world.Chunked(bodyOf(102401)), chunks), status: 401},
		{name: "larger than Envoy holds", request: request("POST", "/v2/pods", "", bodyOf(1<<20)), status: 413, want: []string{`"status":413`}},
		{name: "larger than Envoy holds, chunked", request: post(world.Chunked(bodyOf(1<<20)), chunks), status: 413, want: []string{`"status":413`}, header: limits},
		{name: "as large as may be", request: post(bodyOf(102400)), status: 422, want: []string{"missing property"}},

		// Who calls.
		{name: "no key", request: request("GET", "/v2/pods", "", ""), status: 401, header: []string{"Www-Authenticate: Bearer"}},
		{name: "unknown key", request: request("POST", "/v2/pods", "key_nobody", pod4090), status: 401},
		{
			name: "two Authorization headers", request: request("GET", "/v2/pods", "key_research", "", "Authorization: Bearer key_platform"), status: 401,
			plain: 400, why: "Envoy joins fields of one name; the pair is no key",
		},
		{
			name: "two equal Authorization headers", request: request("GET", "/v2/pods", "key_research", "", "Authorization: Bearer key_research"), status: 401,
			plain: 400, why: "Envoy joins fields of one name; the pair is no key",
		},

		// Where to.
		{name: "unknown path", request: get("/v2/nope"), status: 404, header: limits},
		{name: "other method", request: request("PUT", "/v2/pods", "key_research", ""), status: 405, header: append([]string{"Allow: GET, POST"}, limits...)},
		{name: "TRACE", request: request("TRACE", "/v2/pods", "key_research", ""), status: 405},
		{name: "CONNECT", request: request("CONNECT", "gateway.test:443", "key_research", ""), status: 400, line: 404},
		{name: "method override ignored", request: request("GET", "/v2/pods", "key_research", "", "X-HTTP-Method-Override: DELETE"), status: 200, sent: 1},
		{name: "dot segments", request: get("/v2/pods/../account/ssh-keys"), status: 400},
		{name: "escaped dot segments", request: get("/v2/pods/%2e%2e/account/ssh-keys"), status: 400},
		{name: "escaped slash", request: get("/v2/pods/a%2fb"), status: 400},
		{name: "backslash", request: get(`/v2/pods\x`), status: 400},
		{name: "empty segments", request: get("//v2//pods"), status: 404},
		{name: "way out of the old dialect", request: get("/v1/../v2/pods"), status: 400},
		{name: "way into the old dialect", request: get("/v2/../v1/pods"), status: 400},
		{name: "absolute target", request: get("http://evil.test/v2/pods"), status: 404, plain: 200, envoys: true, why: "allow_absolute_url is off, and that is Envoy's answer"},
		{name: "fragment", request: get("/v2/pods#x"), status: 400, envoys: true},
		{name: "broken escape in the query", request: get("/v2/pods?a=%zz"), status: 400, line: 400},

		// The form of the message.
		{
			name: "websocket", request: request("GET", "/v2/pods", "key_research", "", "Connection: Upgrade", "Upgrade: websocket"), status: 403,
			plain: 400, envoys: true, why: "Envoy refuses upgrades nobody enabled before any filter sees them",
		},
		{name: "h2c offer ignored", request: request("GET", "/v2/pods", "key_research", "", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"), status: 200, sent: 1},
		{name: "underscore in a name", request: request("GET", "/v2/pods", "key_research", "", "X_Forwarded_For: 127.0.0.1"), status: 400},
		{name: "folded header", request: request("GET", "/v2/pods", "key_research", "", "X-Note: a\r\n b: c"), status: 200, sent: 1},
		{name: "byte outside ASCII", request: request("GET", "/v2/pods", "key_research", "", "X-Note: \xff"), status: 400, line: 400, want: []string{"outside printable ASCII"}},
		{name: "too many headers", request: request("GET", "/v2/pods", "key_research", "", strings.Split(strings.Repeat("A: b\n", 150)+"C: d", "\n")...), status: 431, line: 431},
		{
			name: "two Host headers", request: request("GET", "/v2/pods", "key_research", "", "Host: other.test"), status: 200, sent: 1, line: 400,
			plain: 400, why: "Envoy joins them; neither is used for anything",
		},
		{name: "no media type", request: post(pod4090, "Content-Type:"), status: 415},
		{name: "two media types", request: post(pod4090, "Content-Type: application/json", "Content-Type: text/plain"), status: 415},
		{name: "content coding", request: post(pod4090, "Content-Encoding: gzip"), status: 415},

		// The body, and policies.
		{name: "no body", request: post(""), status: 400, header: limits},
		{name: "body on a GET", request: request("GET", "/v2/pods", "key_research", "{}"), status: 200, sent: 1},
		{name: "duplicate name", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"gpu":{"id":"NVIDIA H200"}}`), status: 400, want: []string{"gpu"}},
		{name: "unknown property", request: post(`{"name":"a","image":"i","gpu":{"id":"NVIDIA L4"},"bogus":1}`), status: 422, header: limits, want: []string{"bogus"}},
		{name: "forbidden GPU", request: post(podH100), status: 403, header: limits, want: []string{"gpu_allow_list"}},

		// The platform's own refusals.
		{name: "unknown pod", request: get("/v2/pods/nope1234"), status: 404, sent: 1, header: append([]string{"Content-Type: application/problem+json"}, limits...)},
		{name: "credential the platform does not know", request: request("GET", "/v2/pods", "key_wrong", ""), status: 502, sent: 1, want: []string{"platform key"}},
	}
}

// TestBehaviour plays the table through Envoy and through the HTTP door of the
// same gateway.
func TestBehaviour(t *testing.T) { play(t, open(t), false) }

// play plays the table. In line, Envoy sends to the HTTP door.
func play(t *testing.T, w *way, inLine bool) {
	t.Helper()
	for _, c := range table() {
		plainly := c.status
		if inLine {
			c = c.inLine()
		}
		t.Run(c.name, func(t *testing.T) {
			var a, plain answer
			calls := w.sent(func() { a = w.send(t, c.request) })
			checkAnswer(t, c, a)
			checkCalls(t, calls)
			if len(calls) != c.sent {
				t.Errorf("%d requests at the platform, want %d: %+v", len(calls), c.sent, calls)
			}
			direct := w.sent(func() { plain = world.Ask(t, w.plain, c.request) })
			if len(direct) > 1 && direct[0].Operation == "listPods" && direct[1].Operation == "createPod" {
				direct = direct[1:] // Envoy's stream has not ended, so the gateway first looks for the pod of the same create
			}
			want := plainly
			if c.plain != 0 {
				want = c.plain
			}
			if plain.Status != want {
				t.Errorf("HTTP door: status = %d, want %d", plain.Status, want)
			}
			if c.plain != 0 || c.envoys {
				return
			}
			if diff := cmp.Diff(comparable(plain), comparable(a)); diff != "" {
				t.Errorf("answers differ (-http +envoy):\n%s", diff)
			}
			if diff := cmp.Diff(written(direct), written(calls)); diff != "" {
				t.Errorf("requests at the platform differ (-http +envoy):\n%s", diff)
			}
		})
	}
	w.searchLogs(t)
}

// searchLogs fails if a log holds a secret.
func (w *way) searchLogs(t *testing.T) {
	t.Helper()
	for name, text := range map[string]string{"Envoy's log": w.log.String(), "the access log": w.access.String(), "the gateway's log": w.logs.String()} {
		text = strings.ReplaceAll(text, "Authorization: Bearer KEY", "") // the hint for callers without a key
		for _, secret := range []string{canary, "Bearer ", "Bearer+", "api_key=", "key_nobody"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %q", name, secret)
			}
		}
	}
}

func checkAnswer(t *testing.T, c behaviour, a answer) {
	t.Helper()
	if a.Status != c.status {
		t.Errorf("status = %d, want %d; body %s", a.Status, c.status, a.Body)
	}
	for _, part := range c.want {
		if !strings.Contains(a.Body, part) {
			t.Errorf("body lacks %q: %s", part, a.Body)
		}
	}
	for _, line := range c.header {
		name, part, _ := strings.Cut(line, ": ")
		if got := a.Header.Get(name); got == "" || !strings.Contains(got, part) {
			t.Errorf("header %s = %q, want %q in it", name, got, part)
		}
	}
	if got := a.Header.Get("X-Tollgate-Decision"); (got == "") != c.envoys {
		t.Errorf("header X-Tollgate-Decision = %q", got)
	}
	if a.Header.Get("X-Request-Id") == "" && !c.envoys { // Envoy's own answers have one in line
		t.Error("no header X-Request-Id")
	}
	for name := range a.Header {
		if name == "Server" || strings.HasPrefix(name, "X-Envoy") {
			t.Errorf("header %s reached the caller", name)
		}
	}
	if strings.Contains(a.Body, canary) {
		t.Errorf("the platform key is in the body: %s", a.Body)
	}
}

// sentHeaders are all the headers the platform may ever see.
var sentHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "User-Agent": true, "X-Request-Id": true,
	"Authorization": true, "Content-Type": true, "Content-Length": true, "Last-Event-Id": true,
}

// checkCalls looks at the form of what reached the platform.
func checkCalls(t *testing.T, calls []platform.Call) {
	t.Helper()
	for _, call := range calls {
		if call.Operation == "getOpenAPI" {
			continue // the gateway reads it for itself, without a key
		}
		if got := call.Header.Values("Authorization"); len(got) != 1 || !strings.HasPrefix(got[0], "Bearer pk-") {
			t.Errorf("Authorization at the platform = %q, want the organisation's key once", got)
		}
		for name := range call.Header {
			if !sentHeaders[name] {
				t.Errorf("header %s = %q reached the platform", name, call.Header[name])
			}
		}
	}
}

// written writes calls without the parts that differ by nature: where they were sent,
// identifiers made afresh, and the length of nothing, which the Envoy door tells where a
// body was announced and none came.
func written(calls []platform.Call) []string {
	var out []string
	for _, c := range calls {
		h := c.Header.Clone()
		h.Del("X-Request-Id")
		if len(c.Body) == 0 {
			h.Del("Content-Length")
		}
		var b strings.Builder
		_, _ = io.WriteString(&b, c.Method+" "+c.Path+"?"+c.RawQuery+"\n")
		_ = h.Write(&b)
		out = append(out, b.String()+"\n"+string(c.Body))
	}
	return out
}

var (
	decisionID = regexp.MustCompile(`"decision":"[0-9A-Z]{26}"`)
	podID      = regexp.MustCompile(`"id":"[0-9a-z]{10,}"`)
	remaining  = regexp.MustCompile(`\b([rt])=\d+`)
	createdAt  = regexp.MustCompile(`"createdAt":"[^"]*"`)
	podList    = regexp.MustCompile(`\{"pods":\[.*`)
)

// comparable strips what may differ between two runs of one exchange. Envoy
// joins media types, which the refusal words differently. The HTTP door alone compresses, so its long answers have Vary.
func comparable(a answer) answer {
	h := a.Header.Clone()
	for _, name := range []string{"X-Request-Id", "X-Tollgate-Decision", "Date", "Content-Length", "Connection", "Vary"} {
		h.Del(name)
	}
	for _, v := range h["Ratelimit"] {
		h.Set("Ratelimit", remaining.ReplaceAllString(v, "$1=N"))
	}
	a.Header = h
	a.Body = decisionID.ReplaceAllString(a.Body, `"decision":"ID"`)
	a.Body = podID.ReplaceAllString(a.Body, `"id":"ID"`)
	a.Body = createdAt.ReplaceAllString(a.Body, `"createdAt":"NOW"`)
	a.Body = podList.ReplaceAllString(a.Body, `{"pods":[...]}`)
	if a.Status == http.StatusUnsupportedMediaType {
		a.Body = ""
	}
	return a
}

// Codec errors are answered by nobody: the filter holds Envoy's reply while the
// codec closes the connection. What matters is that nothing is forwarded and
// the connection ends.
func TestBrokenMessagesEndTheConnection(t *testing.T) {
	t.Parallel()
	w := open(t)
	for name, raw := range map[string]string{
		"lower-case method":               request("get", "/v2/pods", "key_research", ""),
		"HTTP/1.0":                        strings.Replace(request("GET", "/v2/pods", "key_research", ""), "HTTP/1.1", "HTTP/1.0", 1),
		"length and chunks":               request("POST", "/v2/pods", "key_research", world.Chunked(pod4090), "Transfer-Encoding: chunked", "Content-Length: 3"),
		"two lengths":                     request("POST", "/v2/pods", "key_research", pod4090, "Content-Length: 67", "Content-Length: 3"),
		"other transfer coding":           request("POST", "/v2/pods", "key_research", world.Chunked(pod4090), "Transfer-Encoding: gzip, chunked"),
		"NUL in a header":                 request("GET", "/v2/pods", "key_research", "", "X-Note: a\x00b"),
		"space before the colon":          request("GET", "/v2/pods", "key_research", "", "X-Note : a"),
		"more headers than Envoy takes":   request("GET", "/v2/pods", "key_research", "", strings.Split(strings.Repeat("A: b\n", 250)+"C: d", "\n")...),
		"headers larger than Envoy takes": request("GET", "/v2/pods", "key_research", "", "A: "+strings.Repeat("b", 70000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := world.Dial(t, w.addr)
			if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, raw) // Envoy may close before it has read all
			got, _ := io.ReadAll(conn)
			if len(got) > 0 && !strings.HasPrefix(string(got), "HTTP/1.1 4") {
				t.Errorf("answer = %.200q", got)
			}
		})
	}
	t.Cleanup(func() {
		if calls := w.platform.Calls(); len(calls) > 0 {
			t.Errorf("%d requests reached the platform: %+v", len(calls), calls)
		}
	})
}
