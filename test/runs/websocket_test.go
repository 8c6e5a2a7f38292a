package runs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/world"
)

// balanced makes a load-balanced endpoint through the gateway and returns its id.
func (r *rig) balanced(t *testing.T) string {
	t.Helper()
	made := r.want(t, 201, "POST", "/v2/serverless", `{"name":"web","image":"i","type":"LOAD_BALANCER","gpu":{"pools":["ADA_24"]},"workers":{"min":1,"max":1},"scaling":{"type":"REQUEST_COUNT","requestCount":4}}`)
	return fmt.Sprint(made["id"])
}

// dial opens a WebSocket as a client of the field does. It returns the answer without its body;
// the error is the reason for there being no WebSocket.
func (r *rig) dial(t *testing.T, target, host string) (*websocket.Conn, world.Answer, error) {
	t.Helper()
	conn, res, err := websocket.Dial(t.Context(), "ws://"+r.addr+target, &websocket.DialOptions{
		Host: host, HTTPHeader: http.Header{"Authorization": {"Bearer key_research"}}, Subprotocols: []string{"echo"},
		CompressionMode: websocket.CompressionContextTakeover,
	})
	var answer world.Answer
	if res != nil {
		answer = world.Answer{Status: res.StatusCode, Header: res.Header}
		if res.Body != nil {
			_ = res.Body.Close()
		}
	}
	if err == nil {
		conn.SetReadLimit(1 << 20)
		t.Cleanup(func() { _ = conn.CloseNow() })
	}
	return conn, answer, err
}

// echo sends a message and reads it back.
func echo(t *testing.T, conn *websocket.Conn, kind websocket.MessageType, message string) {
	t.Helper()
	if err := conn.Write(t.Context(), kind, []byte(message)); err != nil {
		t.Fatal(err)
	}
	gotKind, got, err := conn.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if gotKind != kind || string(got) != message {
		t.Fatalf("read %v of %d bytes, want %v of %d", gotKind, len(got), kind, len(message))
	}
}

// emulated is the emulator's load-balanced endpoints, by path and by host name.
func emulated(t *testing.T) option {
	t.Helper()
	return func(r *rig) {
		balancedAt(t, r.platform.RunURL)(r)
		top(`public_lb_url: "https://{id}.lb.gateway.test"`)(r)
	}
}

// TestWebSockets: messages pass both ways, by path and by host name.
func TestWebSockets(t *testing.T) {
	r := newRig(t, emulated(t))
	id := r.balanced(t)
	for name, at := range map[string]struct{ target, host string }{
		"path": {"/lb/" + id + "/socket?a=1", ""}, "host": {"/socket?a=1", strings.ToUpper(id) + ".LB.gateway.test:443"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, res, err := r.dial(t, at.target, at.host)
			if err != nil {
				t.Fatal(err)
			}
			if conn.Subprotocol() != "echo" || res.Header.Get("X-Tollgate-Decision") == "" {
				t.Errorf("subprotocol %q, answer %v", conn.Subprotocol(), res.Header)
			}
			for i := range 10 {
				echo(t, conn, websocket.MessageText, fmt.Sprintf("message %d", i))
			}
			echo(t, conn, websocket.MessageBinary, strings.Repeat("\x00\xff", 400<<10))
			if err := conn.Close(websocket.StatusNormalClosure, "enough"); err != nil {
				t.Error(err)
			}
		})
	}
	r.close()
	for _, call := range r.platform.CallsTo("balanced") {
		if call.Path != "/socket" || call.Header.Get("Authorization") != "Bearer pk-acme-"+canary {
			t.Errorf("the worker was asked %s with %v", call.Path, call.Header)
		}
	}
	ended := 0
	world.Until(t, "both are recorded", func() bool {
		ended = strings.Count(r.logs.String(), `"http.response.status_code":101`)
		return ended == 2
	})
	for _, e := range r.logs.Exchanges(t) {
		if e["http.response.status_code"] == 101.0 && (e["outcome"] != "ok" || e["http.response.body.size"].(float64) < 1e6/2 || e["http.request.body.size"].(float64) < 1e6/2) {
			t.Errorf("event %v", e)
		}
	}
}

// TestEndpointsByHostName: a host name is another spelling of the path, for every
// method, and records name it.
func TestEndpointsByHostName(t *testing.T) {
	r := newRig(t, emulated(t))
	id := r.balanced(t)
	urls, _ := r.want(t, 200, "GET", "/v2/serverless/"+id, "")["requestUrls"].(map[string]any)
	if diff := cmp.Diff("https://"+id+".lb.gateway.test", urls["base"]); diff != "" {
		t.Errorf("the record's address (-want +got):\n%s", diff)
	}
	ask := func(method, target, host, key string) world.Answer {
		raw := strings.Replace(world.Request(method, target, key, ""), "Host: gateway.test", "Host: "+host, 1)
		if !strings.Contains(raw, "Host: "+host) {
			t.Fatalf("no such host in %q", raw)
		}
		return world.Ask(t, r.addr, raw)
	}
	for _, method := range []string{"GET", "DELETE", "OPTIONS", "PATCH"} {
		got := ask(method, "/v2/pods?x=1", id+".lb.gateway.test", "key_research")
		if got.Status != 200 || decoded(t, got.Body)["path"] != "/v2/pods" || decoded(t, got.Body)["method"] != method {
			t.Errorf("%s: %d %s", method, got.Status, got.Body)
		}
	}
	for name, tc := range map[string]struct {
		target, host, key string
		status            int
	}{
		"no key":      {"/x", id + ".lb.gateway.test", "", 401},
		"two names":   {"/x", "a." + id + ".lb.gateway.test", "key_research", 404},
		"no name":     {"/x", ".lb.gateway.test", "key_research", 404},
		"odd name":    {"/x", "a%2fb.lb.gateway.test", "key_research", 404},
		"dots":        {"/../x", id + ".lb.gateway.test", "key_research", 400},
		"the gateway": {"/v2/pods", "lb.gateway.test", "key_research", 200},
	} {
		t.Run(name, func(t *testing.T) {
			if a := ask("GET", tc.target, tc.host, tc.key); a.Status != tc.status {
				t.Errorf("%d %s, want %d", a.Status, a.Body, tc.status)
			}
		})
	}
}

// handshake is the request for a WebSocket as RFC 6455 has it, but for the replaced parts.
func handshake(target, key string, replace ...string) string {
	raw := world.Request("GET", target, key, "", "Connection: Upgrade", "Upgrade: websocket",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
	return strings.NewReplacer(replace...).Replace(raw)
}

// TestRefusedUpgrades: an upgrade passes to a worker alone, and in one form alone.
func TestRefusedUpgrades(t *testing.T) {
	r := newRig(t, emulated(t), policies(`policies: [{policy: run_endpoints, params: {endpoints: [nothing]}}]`))
	for name, tc := range map[string]struct {
		raw    string
		status int
	}{
		"REST API":        {handshake("/v2/pods", "key_research"), 400},
		"a job":           {handshake("/v2/e1/health", "key_research"), 400},
		"chat":            {handshake("/v2/e1/openai/v1/models", "key_research"), 400},
		"GraphQL":         {handshake("/graphql", "key_research"), 400},
		"no route":        {handshake("/lb/", "key_research"), 400},
		"no key":          {handshake("/lb/e1/x", ""), 401},
		"denied":          {handshake("/lb/e1/x", "key_research"), 403},
		"h2c":             {handshake("/lb/e1/x", "key_research", "Upgrade: websocket", "Upgrade: h2c"), 403},
		"h2c beside":      {handshake("/lb/e1/x", "key_research", "Upgrade: websocket", "Upgrade: h2c, websocket"), 400},
		"TLS":             {handshake("/lb/e1/x", "key_research", "Upgrade: websocket", "Upgrade: TLS/1.2"), 403},
		"twice":           {handshake("/lb/e1/x", "key_research", "Upgrade: websocket", "Upgrade: websocket\r\nUpgrade: websocket"), 400},
		"no Connection":   {handshake("/lb/e1/x", "key_research", "Connection: Upgrade\r\n", ""), 400},
		"another version": {handshake("/lb/e1/x", "key_research", "Version: 13", "Version: 8"), 400},
		"short key":       {handshake("/lb/e1/x", "key_research", "bXBsZSBub25jZQ==", "bXBsZSBub25j"), 400},
		"another method":  {handshake("/lb/e1/x", "key_research", "GET ", "POST "), 400},
		"with a body":     {handshake("/lb/e1/x", "key_research", "\r\n\r\n", "\r\nContent-Length: 1\r\n\r\nx"), 400},
	} {
		t.Run(name, func(t *testing.T) {
			conn := world.Dial(t, r.addr)
			if _, err := io.WriteString(conn, tc.raw); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != tc.status || res.Close != (name != "h2c" && name != "TLS") {
				t.Errorf("%d %v, closed %v; want %d", res.StatusCode, res.Header, res.Close, tc.status)
			}
		})
	}
	if calls := r.platform.Calls(); len(calls) > 0 {
		t.Errorf("calls reached the platform: %v", calls)
	}
}

// TestWorkersThatMisagree: an answer that does not open the requested WebSocket opens none.
func TestWorkersThatMisagree(t *testing.T) {
	const right = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
	for name, tc := range map[string]struct {
		answer, raw string
		status      int
	}{
		"wrong accept":     {"101 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n", handshake("/lb/e1/x", "key_research"), 502},
		"no accept":        {"101 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", handshake("/lb/e1/x", "key_research"), 502},
		"another protocol": {"101 OK\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n" + right, handshake("/lb/e1/x", "key_research"), 502},
		"unasked":          {"101 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + right, world.Request("GET", "/lb/e1/x", "key_research", ""), 502},
		"unasked h2c":      {"101 OK\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n", handshake("/lb/e1/x", "key_research", "websocket", "h2c"), 502},
		"refusal":          {"426 No\r\nUpgrade: websocket\r\nContent-Length: 0\r\n", handshake("/lb/e1/x", "key_research"), 426},
	} {
		t.Run(name, func(t *testing.T) {
			worker := world.Listen(t)
			go func() {
				for {
					conn, err := worker.Accept()
					if err != nil {
						return
					}
					if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
						_, _ = io.WriteString(conn, "HTTP/1.1 "+tc.answer+"\r\nGET /v2/pods HTTP/1.1\r\n\r\n")
					}
					_, _ = io.Copy(io.Discard, conn)
					_ = conn.Close()
				}
			}()
			defer func() { _ = worker.Close() }()
			r := newRig(t, balancedAt(t, "http://"+worker.Addr().String()))
			a := world.Ask(t, r.addr, tc.raw)
			if a.Status != tc.status || strings.Contains(a.Body, "GET ") {
				t.Errorf("%d %q, want %d", a.Status, a.Body, tc.status)
			}
		})
	}
}

// TestWebSocketsEnd for every reason that ends other streams, with an event that says so.
func TestWebSocketsEnd(t *testing.T) {
	change := func(t *testing.T, r *rig, edit func(string) string) {
		t.Helper()
		r.text = edit(r.text)
		if err := r.gateway.Swap(r.configuration(t)); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		text    string
		end     func(t *testing.T, r *rig, conn *websocket.Conn)
		outcome string
	}{
		"key revoked": {"", func(t *testing.T, r *rig, _ *websocket.Conn) {
			t.Helper()
			change(t, r, func(s string) string { return strings.Replace(s, "SHA256(key_research)", "SHA256(another)", 1) })
		}, "terminated"},
		"key lapses": {"", func(t *testing.T, r *rig, _ *websocket.Conn) {
			t.Helper()
			cfg := r.configuration(t)
			cfg.Orgs[0].Keys[0].Digests = cfg.Orgs[0].Keys[0].Accepted()
			cfg.Orgs[0].Keys[0].Digest = identity.Digest{}
			cfg.Orgs[0].Keys[0].Digests[0].NotAfter = time.Now().Add(-time.Second)
			if err := r.gateway.Swap(cfg); err != nil {
				t.Fatal(err)
			}
		}, "terminated"},
		"other policies": {"", func(t *testing.T, r *rig, _ *websocket.Conn) {
			t.Helper()
			change(t, r, func(s string) string {
				return strings.Replace(s, "POLICIES", "policies: [{policy: run_endpoints, params: {endpoints: [none]}}]", 1)
			})
		}, "terminated"},
		"idle": {"timeouts: {run: 300ms}", func(*testing.T, *rig, *websocket.Conn) {}, "terminated"},
		"caller leaves": {"", func(t *testing.T, _ *rig, conn *websocket.Conn) {
			t.Helper()
			if err := conn.CloseNow(); err != nil {
				t.Error(err)
			}
		}, "ok"},
		"worker leaves": {"", func(_ *testing.T, r *rig, _ *websocket.Conn) { r.platform.Close() }, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := []option{emulated(t)}
			if tc.text != "" {
				opts = append(opts, top(tc.text))
			}
			r := newRig(t, opts...)
			conn, _, err := r.dial(t, "/lb/"+r.balanced(t)+"/socket", "")
			if err != nil {
				t.Fatal(err)
			}
			echo(t, conn, websocket.MessageText, "hello")
			tc.end(t, r, conn)
			if _, _, err := conn.Read(t.Context()); err == nil {
				t.Error("the WebSocket goes on")
			}
			world.Until(t, "the event", func() bool { return strings.Contains(r.logs.String(), `"http.response.status_code":101`) })
			for _, e := range r.logs.Exchanges(t) {
				if e["http.response.status_code"] == 101.0 && e["outcome"] != tc.outcome {
					t.Errorf("event %v, want outcome %s", e, tc.outcome)
				}
			}
		})
	}
}

// TestWebSocketsAreBounded: one too many is 503, and room comes back.
func TestWebSocketsAreBounded(t *testing.T) {
	r := newRig(t, emulated(t), top("run: {websockets: 1}"))
	target := "/lb/" + r.balanced(t) + "/socket"
	first, _, err := r.dial(t, target, "")
	if err != nil {
		t.Fatal(err)
	}
	_, res, err := r.dial(t, target, "")
	if err == nil || res.Status != 503 || res.Header.Get("Retry-After") == "" {
		t.Fatalf("a second: %v, %v; want 503", res, err)
	}
	_ = first.CloseNow()
	world.Until(t, "there is room again", func() bool {
		conn, _, err := r.dial(t, target, "")
		return err == nil && conn.CloseNow() == nil
	})
}

// TestNothingStandsBehindAnUpgrade: a caller that does not wait for the answer is given none, and
// its bytes reach neither the worker nor the gateway.
func TestNothingStandsBehindAnUpgrade(t *testing.T) {
	reached := make(chan string, 1)
	asked, answer := make(chan struct{}), make(chan struct{})
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-answer
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			reached <- err.Error()
			return
		}
		_, message, err := conn.Read(context.WithoutCancel(r.Context()))
		reached <- fmt.Sprint(string(message), " ", err != nil)
	}))
	t.Cleanup(worker.Close)
	r := newRig(t, balancedAt(t, worker.URL))
	r.run(t)
	conn := world.Dial(t, r.addr)
	if _, err := io.WriteString(conn, handshake("/lb/e1/x", "key_research")+world.Request("GET", "/v2/pods", "key_research", "")); err != nil {
		t.Fatal(err)
	}
	<-asked
	close(answer)
	if got, err := io.ReadAll(conn); len(got) > 0 && !errors.Is(err, net.ErrClosed) {
		t.Errorf("read %q, %v; want nothing", got, err)
	}
	if got := <-reached; got != " true" {
		t.Errorf("the worker read %q", got)
	}
	if n := len(r.platform.CallsTo("listPods")); n != 0 {
		t.Errorf("%d requests were smuggled", n)
	}
}
