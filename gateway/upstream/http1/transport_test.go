package http1_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/upstream/http1"
)

// Answers are read as http.Transport reads them, but an answer with two
// readings is refused.
func TestAnswers(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, tc := range map[string]struct {
		method, answer string
		status         int
		body           string
		fails          bool // for both
		strict         bool // fails here alone
	}{
		"length":                 {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", false, false},
		"no reason":              {"GET", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", false, false},
		"chunked":                {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", 200, "{}", false, false},
		"chunked with a trailer": {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n", 200, "{}", false, false},
		"until it closes":        {"GET", "HTTP/1.1 200 OK\r\n\r\n{}", 200, "{}", false, false},
		"HTTP/1.0":               {"GET", "HTTP/1.0 200 OK\r\n\r\n{}", 200, "{}", false, false},
		"long":                   {"GET", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(long), long), 200, long, false, false},
		"a long head":            {"GET", "HTTP/1.1 200 OK\r\nX: " + long[:20<<10] + "\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", false, false},
		"none to HEAD":           {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", 200, "", false, false},
		"none with 204":          {"POST", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", false, false},
		"none with 304":          {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", 304, "", false, false},
		"behind hints":           {"GET", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", false, false},
		"an error to a body":     {"POST", "HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\n{}", 422, "{}", false, false},

		"nothing":                   {"POST", "", 0, "", true, false},
		"half a head":               {"POST", "HTTP/1.1 200 OK\r\nContent-Le", 0, "", true, false},
		"too short":                 {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", 200, "{}", true, false},
		"chunks that break off":     {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", 200, "{}", true, false},
		"a head without end":        {"GET", "HTTP/1.1 200 OK\r\nX: " + long + "\r\n\r\n", 0, "", true, false},
		"hints without end":         {"GET", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 10), 0, "", true, false},
		"not HTTP":                  {"GET", "SSH-2.0-OpenSSH\r\n\r\n", 0, "", true, false},
		"HTTP/2":                    {"GET", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", 0, "", false, true},
		"two lengths":               {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 0, "", true, false},
		"a length with a sign":      {"GET", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}", 0, "", true, false},
		"another coding":            {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n{}", 0, "", true, false},
		"a space before the colon":  {"GET", "HTTP/1.1 200 OK\r\nX : y\r\nContent-Length: 2\r\n\r\n{}", 0, "", false, true},
		"a folded line":             {"GET", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", 0, "", false, true},
		"the same length twice":     {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 0, "", false, true},
		"framed twice":              {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 0, "", false, true},
		"lines that end with LF":    {"GET", "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", 0, "", false, true},
		"one line that does":        {"GET", "HTTP/1.1 200 OK\r\nX: y\nContent-Length: 2\r\n\r\n{}", 0, "", false, true},
		"it switches protocols":     {"GET", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", 0, "", false, true},
		"a status below all others": {"GET", "HTTP/1.1 042 What\r\nContent-Length: 2\r\n\r\n{}", 0, "", false, true},
	} {
		d := server(t, func(_ int64, p *peer) {
			if _, ok := p.request(); ok {
				p.say(tc.answer)
			}
		})
		for client, rt := range clients(t, d) {
			t.Run(name+"/"+client, func(t *testing.T) {
				fails := tc.fails || tc.strict && client == "lean"
				if tc.strict && !fails {
					return // what http.Transport makes of it is its own
				}
				body := ""
				if tc.method == http.MethodPost {
					body = "{}"
				}
				status, got, err := call(t.Context(), rt, tc.method, body)
				if (err != nil) != fails || status != tc.status || got != tc.body {
					t.Errorf("status %d, body of %d bytes, %v; want %d, %d bytes, fails: %t", status, len(got), err, tc.status, len(tc.body), fails)
				}
				if errors.Is(err, http1.ErrUnsent) || tc.strict && !errors.Is(err, http1.ErrMalformed) {
					t.Errorf("err = %v", err)
				}
			})
		}
	}
}

// A connection is used again only when nothing speaks against it.
func TestConnectionsAreReused(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	for name, tc := range map[string]struct {
		first string
		ends  bool // behind the first answer
		dials int64
	}{
		"as it should be":         {ok, false, 1},
		"a long head":             {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 20<<10) + "\r\nContent-Length: 2\r\n\r\n{}", false, 1},
		"more behind a long head": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 20<<10) + "\r\nContent-Length: 2\r\n\r\n{}" + ok, false, 2},
		"a chunked answer":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", false, 1},
		"no body":                 {"HTTP/1.1 204 No Content\r\n\r\n", false, 1},
		"its server has left":     {ok, true, 2},
		"its server is to leave":  {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", false, 2},
		"HTTP/1.0":                {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", false, 2},
		"more than was asked for": {ok + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen", false, 2},
		"a body where none is":    {"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}", false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{})
			var asked atomic.Int64
			d := server(t, func(n int64, p *peer) {
				answer := tc.first
				for i := 0; ; i++ {
					if _, more := p.request(); !more {
						return
					}
					asked.Add(1)
					if n > 0 || i > 0 {
						answer = ok
					}
					p.say(answer)
					if tc.ends && n == 0 {
						_ = p.Close()
						close(closed)
						return
					}
				}
			})
			rt := newLean(t, d)
			if _, _, err := call(t.Context(), rt, http.MethodPost, "{}"); err != nil {
				t.Fatal(err)
			}
			if tc.ends {
				<-closed
			}
			if _, got, err := call(t.Context(), rt, http.MethodPost, "{}"); err != nil || got != "{}" {
				t.Errorf("second call: %q, %v", got, err)
			}
			if got := d.count.Load(); got != tc.dials {
				t.Errorf("%d connections, want %d", got, tc.dials)
			}
			if got := asked.Load(); got != 2 {
				t.Errorf("the server was asked %d times, want 2", got)
			}
		})
	}
}

// What came on an idle connection later is no answer to the next request.
func TestUnsolicitedAnswers(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			more, said := make(chan struct{}), make(chan struct{})
			script := func(n int64, w io.Writer) {
				_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright")
				if n == 0 {
					<-more
					_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
					close(said)
				}
			}
			var n atomic.Int64
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { _ = c.Close() })
				script(n.Add(1)-1, c)
			}))
			if secure {
				s.StartTLS()
			} else {
				s.Start()
			}
			defer s.Close()
			d := &dialer{addr: s.Listener.Addr().String()}
			rt := newLean(t, d)
			if secure {
				rt.TLSClientConfig = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, MinVersion: tls.VersionTLS12}
			}
			for i := range 2 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.Replace(s.URL, "127.0.0.1", "example.com", 1), http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				res, err := rt.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if string(got) != "right" || err != nil {
					t.Errorf("call %d: %q, %v", i, got, err)
				}
				if i == 0 {
					close(more)
					<-said
				}
			}
			if got := d.count.Load(); got != 2 {
				t.Errorf("%d connections, want 2", got)
			}
		})
	}
}

// A request whose answer is lost is not sent again if that could do harm.
func TestLostAnswers(t *testing.T) {
	for method, want := range map[string]struct {
		asked int64
		fails bool
	}{
		http.MethodGet: {3, false}, http.MethodHead: {3, false}, http.MethodPost: {2, true}, http.MethodDelete: {2, true},
	} {
		t.Run(method, func(t *testing.T) {
			var asked atomic.Int64
			d := server(t, func(n int64, p *peer) {
				for i := 0; ; i++ {
					if _, ok := p.request(); !ok {
						return
					}
					asked.Add(1)
					if n == 0 && i == 1 {
						return
					}
					p.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			})
			rt := newLean(t, d)
			if _, _, err := call(t.Context(), rt, method, ""); err != nil {
				t.Fatal(err)
			}
			_, _, err := call(t.Context(), rt, method, "")
			if (err != nil) != want.fails || errors.Is(err, http1.ErrUnsent) || asked.Load() != want.asked {
				t.Errorf("err = %v, asked %d times; want an error: %t, %d times", err, asked.Load(), want.fails, want.asked)
			}
		})
	}
}

// A fresh connection that ends without an answer is no reason to send again.
func TestFreshConnectionsAreNotRetried(t *testing.T) {
	d := server(t, func(_ int64, p *peer) { p.request() })
	if _, _, err := call(t.Context(), newLean(t, d), http.MethodGet, ""); err == nil || d.count.Load() != 1 {
		t.Errorf("err = %v after %d connections, want an error after 1", err, d.count.Load())
	}
}

// The end of the context ends the exchange, wherever it is.
func TestContextEnds(t *testing.T) {
	for name, answer := range map[string]string{
		"before the answer": "", "in the head": "HTTP/1.1 200 OK\r\nX", "in the body": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("the caller left")
			d := server(t, func(_ int64, p *peer) {
				p.request()
				p.say(answer)
				cancel(why)
				_, _ = io.Copy(io.Discard, p.in)
				close(gone)
			})
			if _, _, err := call(ctx, newLean(t, d), http.MethodPost, "{}"); !errors.Is(err, why) {
				t.Errorf("err = %v, want %v", err, why)
			}
			<-gone // the server sees it
		})
	}
}

func TestResponseHeaderTimeout(t *testing.T) {
	for name, body := range map[string]string{"short": "{}", "long": strings.Repeat("x", 1<<20)} {
		d := server(t, func(_ int64, p *peer) {
			p.request()
			_, _ = io.Copy(io.Discard, p.in)
		})
		rt := newLean(t, d)
		rt.ResponseHeaderTimeout = 100 * time.Millisecond
		_, _, err := call(t.Context(), rt, http.MethodPost, body)
		if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Timeout() || errors.Is(err, http1.ErrUnsent) {
			t.Errorf("%s: err = %v, want a timeout", name, err)
		}
	}
}

// The deadline of the head is none for the body.
func TestBodiesOutlastTheHeadersTimeout(t *testing.T) {
	const timeout = 300 * time.Millisecond
	d := server(t, func(_ int64, p *peer) {
		p.request()
		p.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{")
		<-time.After(2 * timeout)
		p.say("}")
	})
	rt := newLean(t, d)
	rt.ResponseHeaderTimeout = timeout
	if _, got, err := call(t.Context(), rt, http.MethodGet, ""); err != nil || got != "{}" {
		t.Errorf("%q, %v", got, err)
	}
}

// The server may answer without having read all.
func TestEarlyAnswers(t *testing.T) {
	d := server(t, func(_ int64, p *peer) {
		_, _ = http.ReadRequest(p.in)
		p.say("HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\n\r\n{}")
		_, _ = io.Copy(io.Discard, p.in)
	})
	waits, more := io.Pipe()
	defer func() { _ = more.CloseWithError(errors.New("over")) }()
	for client, rt := range clients(t, d) {
		for name, body := range map[string]io.Reader{"waits": waits, "does not end": &endless{closed: make(chan struct{})}} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://platform.test/", body)
			if err != nil {
				t.Fatal(err)
			}
			res, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatalf("%s, %s: %v", client, name, err)
			}
			got, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusRequestEntityTooLarge || string(got) != "{}" || err != nil {
				t.Errorf("%s, %s: status %d, %q, %v", client, name, res.StatusCode, got, err)
			}
		}
	}
}

// TLS is judged as ever, and HTTP/2 not offered.
func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	d := &dialer{addr: s.Listener.Addr().String()}
	rt := newLean(t, d)
	rt.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	for host, want := range map[string]string{"https://example.com/": "HTTP/1.1", "https://example.org/": ""} {
		for range 3 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, host, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			res, err := rt.RoundTrip(req)
			if want == "" {
				if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || !errors.Is(err, http1.ErrUnsent) {
					t.Errorf("%s: err = %v, want that the certificate is another's", host, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if string(got) != want || err != nil {
				t.Errorf("%s: %q, %v", host, got, err)
			}
		}
	}
	if got := d.count.Load(); got != 1+3 {
		t.Errorf("%d connections, want 1 and 3 that failed", got)
	}
}

// No more connections are kept than allowed, nor for longer.
func TestIdleConnections(t *testing.T) {
	gone := make(chan struct{}, 10)
	d := server(t, func(_ int64, p *peer) {
		p.request()
		p.say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
		p.request()
		gone <- struct{}{}
	})
	rt := newLean(t, d)
	rt.MaxIdle, rt.IdleTimeout = 1, 50*time.Millisecond
	var open []*http.Response
	for range 3 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://platform.test/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := rt.RoundTrip(req) //nolint:bodyclose // below
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, res) //nolint:bodyclose // below
	}
	for _, res := range open {
		_, _ = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	for range 3 {
		<-gone
	}
}
