package envoy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/tollgate-dev/tollgate/test/world"
)

// runs are the settings of the run interface.
const runs = `platform: {base_url: "PLATFORM", run_url: "RUNS", lb_url: "http://{id}.localhost:LBPORT"}
public_lb_url: "https://{id}.lb.gateway.test"
`

// serving is the configuration of a fleet that serves the run interface.
func serving() string {
	return strings.Replace(configuration, `platform: {base_url: "PLATFORM"}`, runs, 1) + groups
}

// eachTopology plays a test through an Envoy of each topology, configured by the
// gateway and by nothing else.
func eachTopology(t *testing.T, text string, play func(t *testing.T, f *fleet, w *way)) {
	t.Helper()
	for _, group := range []string{edge, mesh} {
		t.Run(group, func(t *testing.T) {
			f := newFleet(t, text)
			w := f.way(t, group)
			play(t, f, w)
			if open := w.dump(t).open(group); len(open) > 0 {
				t.Errorf("the door is open: %v", open)
			}
			if t.Failed() {
				return
			}
			// Only the run interface goes past the filter.
			w.send(t, request("GET", "/v2/pods", "key_research", ""))
			door := map[string]string{edge: "http", mesh: "envoy"}[group]
			for _, e := range w.logs.Exchanges(t) {
				if e["operation"] == "listPods" && e["door"] != door || e["dialect"] == "run" && e["door"] != "http" {
					t.Errorf("%v came by the door %v", e["operation"], e["door"])
				}
			}
		})
	}
}

// endpoint makes an endpoint through Envoy and returns its id.
func (w *way) endpoint(t *testing.T, kind, scaling string) string {
	t.Helper()
	a := w.send(t, request("POST", "/v2/serverless", "key_platform",
		`{"name":"llm","image":"i","type":"`+kind+`","gpu":{"pools":["ADA_24"]},"workers":{"min":1,"max":1},"scaling":`+scaling+`}`))
	_, rest, found := strings.Cut(a.Body, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	if a.Status != 201 || !found {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return id
}

// Jobs pass, large ones too, and refusals are the gateway's.
func TestRunsThroughEnvoy(t *testing.T) {
	t.Parallel()
	text := strings.Replace(serving(), "    policies:\n", "    policies:\n      - {policy: run_limits, params: {max_tokens: 100}}\n", 1)
	eachTopology(t, text, func(t *testing.T, f *fleet, w *way) {
		base := "/v2/" + w.endpoint(t, "QUEUE", `{"type":"QUEUE_DELAY","queueDelay":4}`)
		large := `{"input":{"x":"` + strings.Repeat("x", 9<<20) + `"}}`
		for name, tc := range map[string]struct {
			method, target, key, body string
			status                    int
			want                      string
		}{
			"run":             {"POST", "/run", "key_platform", `{"input":{}}`, 200, `"status":"IN_QUEUE"`},
			"a large one":     {"POST", "/run", "key_platform", large, 200, `"status":"IN_QUEUE"`},
			"too large":       {"POST", "/run", "key_platform", large + strings.Repeat(" ", 2<<20), 413, "exceeds 10485760 bytes"},
			"health":          {"GET", "/health", "key_platform", "", 200, `"jobs":`},
			"too many tokens": {"POST", "/openai/v1/chat/completions", "key_platform", `{"model":"llm","max_tokens":101,"messages":[{"role":"user","content":"a"}]}`, 403, "101 exceeds the limit of 100"},
			"no key":          {"POST", "/run", "", `{"input":{}}`, 401, `{"error":"missing key: send `},
			"no operation":    {"GET", "/status", "key_platform", "", 404, `{"error":"no operation`},
			"an upgrade":      {"GET", "/health", "key_platform", "", 403, ""},
		} {
			t.Run(name, func(t *testing.T) {
				raw := request(tc.method, base+tc.target, tc.key, tc.body)
				if name == "an upgrade" {
					raw = strings.Replace(raw, "\r\n\r\n", "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 1)
				}
				if a := w.send(t, raw); a.Status != tc.status || !strings.Contains(a.Body, tc.want) {
					t.Errorf("%d %s, want %d and %q", a.Status, a.Body, tc.status, tc.want)
				}
			})
		}
		sent := 0
		for _, c := range f.platform.CallsTo("run") {
			if h := c.Header; h.Get("Authorization") != "Bearer pk-acme-"+canary || h.Get("X-Forwarded-For") != "" {
				t.Errorf("the platform was sent %v", h)
			}
			sent = max(sent, len(c.Body))
		}
		if sent != len(large) {
			t.Errorf("the largest job has %d bytes, want %d", sent, len(large))
		}
	})
}

// Events of a chat pass one by one: each arrives before the next is made.
func TestStreamsThroughEnvoy(t *testing.T) {
	t.Parallel()
	program(t)
	given := make(chan string)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for e := range given {
			_, _ = io.WriteString(w, e)
			_ = http.NewResponseController(w).Flush()
			if strings.Contains(e, "[DONE]") {
				return
			}
		}
	}))
	t.Cleanup(model.Close)
	eachTopology(t, strings.Replace(serving(), "RUNS", model.URL, 1), func(t *testing.T, _ *fleet, w *way) {
		conn := world.Dial(t, w.addr)
		body := `{"model":"llm","stream":true,"messages":[{"role":"user","content":"a"}]}`
		if _, err := io.WriteString(conn, request("POST", "/v2/llm/openai/v1/chat/completions", "key_platform", body)); err != nil {
			t.Fatal(err)
		}
		given <- "data: 0\n\n"
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v, %v", res, err)
		}
		defer func() { _ = res.Body.Close() }()
		events := bufio.NewReader(res.Body)
		for i := range 20 {
			if i > 0 {
				given <- fmt.Sprintf("data: %d\n\n", i)
			}
			got, err := events.ReadString('\n')
			if want := fmt.Sprintf("data: %d\n", i); err != nil || got != want {
				t.Fatalf("event %d: %q, %v", i, got, err)
			}
			if _, err := events.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		given <- "data: [DONE]\n\n"
		if rest, err := io.ReadAll(events); err != nil || string(rest) != "data: [DONE]\n\n" {
			t.Errorf("the end of the stream: %q, %v", rest, err)
		}
	})
}

// WebSockets pass to load-balanced endpoints, by path and by host name.
func TestWebSocketsThroughEnvoy(t *testing.T) {
	t.Parallel()
	eachTopology(t, serving(), func(t *testing.T, _ *fleet, w *way) {
		id := w.endpoint(t, "LOAD_BALANCER", `{"type":"REQUEST_COUNT","requestCount":4}`)
		for _, at := range []struct{ target, host string }{{"/lb/" + id + "/x", ""}, {"/x", id + ".lb.gateway.test:8443"}} {
			conn, status, err := dial(t, w, at.target, at.host, "Bearer key_platform")
			if err != nil || status != 101 {
				t.Fatalf("%s: %d, %v", at.target, status, err)
			}
			for i := range 10 {
				want := fmt.Sprint("message ", i)
				if err := conn.Write(t.Context(), websocket.MessageText, []byte(want)); err != nil {
					t.Fatal(err)
				}
				if _, got, err := conn.Read(t.Context()); err != nil || string(got) != want {
					t.Fatalf("%s: %q, %v; want %q", at.target, got, err, want)
				}
			}
			if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
				t.Errorf("%s: %v", at.target, err)
			}
		}
		if _, status, err := dial(t, w, "/lb/"+id+"/x", "", ""); err == nil || status != 401 {
			t.Errorf("without a key: %d, %v", status, err)
		}
	})
}

// dial opens a WebSocket and returns the status of the answer; the error is why there
// is none.
func dial(t *testing.T, w *way, target, host, authorization string) (*websocket.Conn, int, error) {
	t.Helper()
	conn, res, err := websocket.Dial(t.Context(), "ws://"+w.addr+target, &websocket.DialOptions{
		Host: host, HTTPHeader: http.Header{"Authorization": {authorization}},
	})
	if res == nil {
		return nil, 0, err
	}
	if res.Body != nil {
		_ = res.Body.Close()
	}
	return conn, res.StatusCode, err
}
