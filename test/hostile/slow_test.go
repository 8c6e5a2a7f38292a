package hostile

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSlowBodies: a caller that does not send its body is answered in time, and its
// connection is not kept waiting for the rest.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	s := open(t, bodyWithin(100*time.Millisecond))
	for name, tc := range map[string]struct {
		raw    string
		status int
	}{
		"nothing of it":          {head + "Content-Length: 20\r\n\r\n", 400},
		"a part of it":           {head + "Content-Length: 20\r\n\r\n{", 400},
		"half a chunk":           {chunked + "20\r\n{", 400},
		"too large, nothing":     {head + "Content-Length: 200000\r\n\r\n", 413},
		"too large, a part":      {head + "Content-Length: 200000\r\n\r\n{", 413},
		"much too large":         {head + "Content-Length: 900000000\r\n\r\n", 413},
		"expecting to be called": {head + "Expect: 100-continue\r\nContent-Length: 200000\r\n\r\n", 413},
	} {
		conn := s.dial(t)
		if _, err := conn.Write([]byte(tc.raw)); err != nil {
			t.Fatal(err)
		}
		// The connection's own half stays open: only the gateway can end it.
		got := answers(t, conn)
		_ = conn.Close()
		if len(got) != 1 || got[0].Status != tc.status {
			t.Errorf("%s: answers %+v, want one %d", name, got, tc.status)
		}
	}
	s.recorder.untouched(t)
}

// TestSlowReaders: a caller that does not take its answer keeps no connection to the
// platform.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	s := open(t, writeWithin(100*time.Millisecond), answering(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		line := append(bytes.Repeat([]byte("x"), 32<<10), '\n')
		for r.Context().Err() == nil {
			if _, err := w.Write(line); err != nil {
				break
			}
		}
		close(left)
	}))
	conn := s.dial(t)
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(request("GET", "/v2/pods/pod1/logs", k1, ""))); err != nil {
		t.Fatal(err)
	}
	select {
	case <-left:
	case <-time.After(patience):
		t.Error("the platform's connection is still held by a caller that does not read")
	}
}

// TestMoneyCanBeEndedOverABound: of an address over its connections, stops and deletes
// with a right key go on, in any dialect, and nothing else does.
func TestMoneyCanBeEndedOverABound(t *testing.T) {
	t.Parallel()
	s := open(t, holding(1))
	hoard := s.dial(t)
	defer func() { _ = hoard.Close() }()
	if _, err := hoard.Write([]byte(request("GET", "/v2/pods", k1, "", "Connection: keep-alive"))); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(hoard), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	s.recorder.take()
	ends := 0
	for _, tc := range []struct {
		method, target, key, body string
		status                    int
	}{
		{"DELETE", "/v2/pods/pod1", k1, "", 204},
		{"POST", "/v2/pods/pod1/action", k1, `{"action":"stop"}`, 201}, // as the platform here answers all posts
		{"POST", "/v1/pods/pod1/stop", k1, "", 200},
		{"POST", "/graphql", k1, `{"query":"mutation { podTerminate(input: {podId: \"pod1\"}) }"}`, 200},
		{"DELETE", "/v2/pods/pod1", "key_of_nobody", "", 401},
		{"POST", "/v2/pods/pod1/action", k1, `{"action":"start"}`, 429},
		{"POST", "/graphql", k1, `{"query":"mutation { podResume(input: {podId: \"pod1\"}) { id } }"}`, 429},
		{"POST", "/v2/pods", k1, allowed, 429},
		{"GET", "/v2/pods/pod1", k1, "", 429},
		{"GET", "/docs", "", "", 429},
	} {
		if a := s.ask(t, request(tc.method, tc.target, tc.key, tc.body)); a.Status != tc.status || !a.Last {
			t.Errorf("%s %s %s: %d %s, want %d", tc.method, tc.target, tc.body, a.Status, a.Body, tc.status)
		}
	}
	for _, c := range s.recorder.take() {
		if c.Method == http.MethodDelete || strings.Contains(c.Body, `"stop"`) {
			ends++
		} else if c.Method != http.MethodGet {
			t.Errorf("%s %s %s has reached the platform", c.Method, c.Target, c.Body)
		}
	}
	if ends != 4 {
		t.Errorf("%d stops and deletes have reached the platform, want 4", ends)
	}
}

// TestHoardedConnections: an address that holds all the connections it may gets no
// more, the ones it has go on, and each it gives up makes room for another.
func TestHoardedConnections(t *testing.T) {
	t.Parallel()
	s := open(t, holding(3))
	hoard := []*net.TCPConn{s.dial(t), s.dial(t), s.dial(t)}
	for _, conn := range hoard[1:] {
		defer func() { _ = conn.Close() }()
	}
	raw := []byte(request("GET", "/v2/pods", k1, "", "Connection: keep-alive"))
	for _, conn := range hoard { // answered: so all three have been accepted
		if _, err := conn.Write(raw); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	refused := s.dial(t)
	defer func() { _ = refused.Close() }()
	if got, err := http.ReadResponse(bufio.NewReader(refused), nil); err != nil || got.StatusCode != 429 || got.Header.Get("Retry-After") == "" || !got.Close { //nolint:bodyclose // ends with its connection
		t.Errorf("the fourth connection: %+v, %v; want 429 with Retry-After, and its end", got, err)
	}
	if !strings.Contains(s.logs.String(), "too many connections") {
		t.Error("the log does not tell of it")
	}
	_ = hoard[0].Close()
	for range 1000 { // the gateway hears of it in its own time
		conn := s.dial(t)
		var res *http.Response
		_, err := conn.Write(raw)
		if err == nil {
			res, err = http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // ends with its connection
		}
		_ = conn.Close()
		if err == nil && res.StatusCode == 200 {
			return
		}
	}
	t.Error("a place that was given up stays taken")
}
