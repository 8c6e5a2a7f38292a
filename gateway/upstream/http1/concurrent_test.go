package http1_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/upstream/http1"
)

// Addresses are dialled as http.Transport dials them.
func TestAddresses(t *testing.T) {
	for _, url := range []string{
		"http://platform.test", "https://platform.test", "http://platform.test:81", "https://Platform.test.:81", "http://127.0.0.1", "https://[::1]",
		"http://[::1]:81", "http://[fe80::1%25eth0]", "http://[fe80::1%25eth0]:81",
	} {
		var asked []string
		dial := func(_ context.Context, network, addr string) (net.Conn, error) {
			asked = append(asked, network+" "+addr)
			return nil, errors.New("no")
		}
		for _, rt := range []http.RoundTripper{&http.Transport{DialContext: dial}, &http1.Transport{DialContext: dial}} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if res, err := rt.RoundTrip(req); err == nil {
				_ = res.Body.Close()
				t.Error("err = nil")
			}
		}
		if len(asked) != 2 || asked[0] != asked[1] {
			t.Errorf("%s: dialled %q, want twice the same", url, asked)
		}
	}
}

// What bounds the parts of one request is no bound of the next, which may come later.
func TestDeadlinesEndWithTheirRequest(t *testing.T) {
	for name, size := range map[string]int{"in one part": 100, "in parts": 30 << 10, "in many": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dials := 0
				rt := &http1.Transport{MaxIdle: 1, IdleTimeout: 90 * time.Second, ResponseHeaderTimeout: time.Minute}
				rt.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					dials++
					return obliging(ctx, network, addr)
				}
				for i := range 3 {
					if _, got, err := call(t.Context(), rt, http.MethodPost, strings.Repeat("x", size)); err != nil || got != "{}" {
						t.Errorf("call %d: %q, %v", i, got, err)
					}
					time.Sleep(89 * time.Second)
				}
				if dials != 1 {
					t.Errorf("%d connections, want 1", dials)
				}
				rt.CloseIdleConnections()
			})
		})
	}
}

// Long bodies, which another goroutine writes, leave their connection usable.
func TestLongBodiesKeepTheirConnection(t *testing.T) {
	d := server(t, func(_ int64, p *peer) {
		for {
			if _, ok := p.request(); !ok {
				return
			}
			p.say("HTTP/1.1 204 No Content\r\n\r\n")
		}
	})
	for client, rt := range clients(t, d) {
		before := d.count.Load()
		for range 100 {
			if _, _, err := call(t.Context(), rt, http.MethodPost, strings.Repeat("x", 100<<10)); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.count.Load() - before; got != 1 {
			t.Errorf("%s: %d connections, want 1", client, got)
		}
	}
}

// Where no more connections are kept, the one that was idle for the longest goes: those
// to a host that is no longer asked must not keep out the others'.
func TestOldConnectionsMakeRoom(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer s.Close()
	d := &dialer{addr: s.Listener.Addr().String()}
	for client, rt := range clients(t, d) { // they keep four
		before := d.count.Load()
		var open []func()
		for range 4 {
			open = append(open, begin(t, rt, "http://old.test/"))
		}
		for _, finish := range open {
			finish()
		}
		for range 3 {
			begin(t, rt, "http://new.test/")()
		}
		begin(t, rt, "http://old.test/")()
		if got := d.count.Load() - before; got != 5 {
			t.Errorf("%s: %d connections, want 4 and 1", client, got)
		}
	}
}

// begin sends a GET. The returned function reads the answer to its end.
func begin(t *testing.T, rt http.RoundTripper, url string) (finish func()) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := rt.RoundTrip(req) //nolint:bodyclose // by what is returned
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if got, err := io.ReadAll(res.Body); err != nil || string(got) != "{}" {
			t.Errorf("%q, %v", got, err)
		}
		_ = res.Body.Close()
	}
}

// Connections in use while the idle ones are closed, as by a reload, are closed when
// they become idle.
func TestConnectionsInUseAreClosedLater(t *testing.T) {
	ended := make(chan struct{})
	d := server(t, func(_ int64, p *peer) {
		if _, ok := p.request(); ok {
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
		p.request()
		ended <- struct{}{}
	})
	for _, rt := range clients(t, d) {
		finish := begin(t, rt, "http://platform.test/")
		rt.(interface{ CloseIdleConnections() }).CloseIdleConnections()
		finish()
		<-ended // or the test hangs
	}
}

// What TLS has read ahead of an answer is none to the next request.
func TestUnsolicitedAnswersReadAhead(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	d := server(t, func(n int64, p *peer) {
		held := &holding{Conn: p.Conn}
		c := tls.Server(held, s.TLS)
		if _, ok := (&peer{c, bufio.NewReader(c)}).request(); !ok {
			return
		}
		held.holds = true
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		if n == 0 {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
		}
		_, _ = p.Write(held.held)
		<-t.Context().Done()
	})
	rt := newLean(t, d)
	rt.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	for range 2 {
		begin(t, rt, "https://example.com/")()
	}
	if got := d.count.Load(); got != 2 {
		t.Errorf("%d connections, want 2", got)
	}
}

// holding is a connection that can hold written bytes.
type holding struct {
	net.Conn
	holds bool
	held  []byte
}

// Write implements io.Writer.
func (h *holding) Write(p []byte) (int, error) {
	if !h.holds {
		return h.Conn.Write(p)
	}
	h.held = append(h.held, p...)
	return len(p), nil
}

// A server of HTTP/2 only is asked by another client: from the start if it says so in
// the handshake, behind the first answer if not. Without one the error says why.
func TestServersOfHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Proto+string(b))
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		c := s.TLS.Clone()
		c.GetConfigForClient = nil
		c.NextProtos = []string{"h2"}
		if !slices.Contains(h.SupportedProtos, "h2") {
			c.NextProtos = []string{"h3"} // with h2, this server would do without a protocol
		}
		return c, nil
	}}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	cfg := s.Client().Transport.(*http.Transport).TLSClientConfig
	d := &dialer{addr: s.Listener.Addr().String()}
	ask := func(rt http.RoundTripper) (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com", io.NopCloser(strings.NewReader("{}")))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 2
		res, err := rt.RoundTrip(req)
		if err != nil {
			return "", err
		}
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		return string(b), err
	}
	l := newLean(t, d)
	l.TLSClientConfig = cfg
	if _, err := ask(l); !errors.Is(err, http1.ErrHTTP2) || !errors.Is(err, http1.ErrUnsent) {
		t.Errorf("alone: err = %v, want ErrHTTP2, not sent", err)
	}
	standard := &http.Transport{DialContext: d.dial, TLSClientConfig: cfg, ForceAttemptHTTP2: true}
	defer standard.CloseIdleConnections()
	l.Fallback = standard
	for i := range 3 {
		if got, err := ask(l); got != "HTTP/2.0{}" || err != nil {
			t.Errorf("call %d: %q, %v", i, got, err)
		}
	}
	if got := d.count.Load(); got != 1+2 {
		t.Errorf("%d connections, want one that failed alone, and one that did and the other client's", got)
	}

	d = server(t, func(_ int64, p *peer) {
		p.request()
		p.say("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64")
	})
	l = newLean(t, d)
	if _, _, err := call(t.Context(), l, http.MethodPost, "{}"); !errors.Is(err, http1.ErrHTTP2) || errors.Is(err, http1.ErrUnsent) {
		t.Errorf("by its first answer: err = %v, want ErrHTTP2, perhaps sent", err)
	}
	other := errors.New("the other client")
	l.Fallback = unable{other}
	for i, want := range []error{http1.ErrHTTP2, other} {
		if _, _, err := call(t.Context(), l, http.MethodPost, "{}"); !errors.Is(err, want) {
			t.Errorf("call %d: err = %v, want %v", i, err, want)
		}
	}
}

// A connection that took longer than its caller waited is there for the next.
func TestConnectionsOutliveTheirCaller(t *testing.T) {
	for _, client := range []string{"standard", "lean"} {
		t.Run(client, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dials := 0
				dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
					time.Sleep(2 * time.Second)
					dials++
					if err := ctx.Err(); err != nil {
						return nil, err
					}
					return obliging(ctx, network, addr)
				}
				var rt http.RoundTripper = &http.Transport{DialContext: dial}
				if client == "lean" {
					rt = &http1.Transport{DialContext: dial, MaxIdle: 1, IdleTimeout: minute}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, _, err := call(ctx, rt, http.MethodGet, ""); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("err = %v, want that it took too long", err)
				}
				time.Sleep(5 * time.Second)
				if _, got, err := call(t.Context(), rt, http.MethodGet, ""); got != "{}" || err != nil {
					t.Errorf("the next: %q, %v", got, err)
				}
				if dials != 1 {
					t.Errorf("%d connections, want 1", dials)
				}
				rt.(interface{ CloseIdleConnections() }).CloseIdleConnections()
			})
		})
	}
}

// obliging dials a server that answers all requests, without the network.
func obliging(context.Context, string, string) (net.Conn, error) {
	client, end := net.Pipe()
	go func() {
		defer func() { _ = end.Close() }()
		for p := (&peer{end, bufio.NewReader(end)}); ; {
			if _, ok := p.request(); !ok {
				return
			}
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	}()
	return client, nil
}

// The end of the context ends the steps before the answer, too, and the body is
// closed.
func TestContextEndsEarly(t *testing.T) {
	begun := make(chan struct{}, 1)
	silent := server(t, func(_ int64, p *peer) { // takes what its buffers do
		_, _ = p.in.ReadByte()
		begun <- struct{}{}
		<-t.Context().Done()
	})
	for name, tc := range map[string]struct {
		url    string
		dial   func(context.Context, string, string) (net.Conn, error)
		unsent bool
	}{
		"dialling": {"http://platform.test", func(ctx context.Context, _, _ string) (net.Conn, error) {
			begun <- struct{}{}
			select {
			case <-ctx.Done():
			case <-t.Context().Done(): // http.Transport dials on
			}
			return nil, context.Canceled
		}, true},
		"the handshake": {"https://platform.test", silent.dial, true},
		"the request":   {"http://platform.test", silent.dial, false},
	} {
		for client, rt := range map[string]http.RoundTripper{
			"standard": &http.Transport{DialContext: tc.dial}, "lean": &http1.Transport{DialContext: tc.dial, MaxIdle: 1, IdleTimeout: minute},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			body := &endless{closed: make(chan struct{})}
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, tc.url, body)
			if err != nil {
				t.Fatal(err)
			}
			go func() { <-begun; cancel() }()
			res, err := rt.RoundTrip(req)
			if err == nil {
				_ = res.Body.Close()
			}
			if !errors.Is(err, context.Canceled) || client == "lean" && errors.Is(err, http1.ErrUnsent) != tc.unsent {
				t.Errorf("%s, %s: err = %v, want unsent: %t", client, name, err, tc.unsent)
			}
			<-body.closed // or the test hangs
		}
	}
}

// endless is a body without end.
type endless struct {
	once   sync.Once
	closed chan struct{}
}

// Read implements io.Reader.
func (*endless) Read(p []byte) (int, error) { return len(p), nil }

// Close implements io.Closer.
func (e *endless) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}

// unable is a client whose requests fail.
type unable struct{ err error }

func (u unable) RoundTrip(*http.Request) (*http.Response, error) { return nil, u.err }
