package http1_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/upstream/http1"
)

const (
	right = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright"
	wrong = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
)

// A part of a TLS record that came with the response is the beginning of unsolicited bytes, although nothing waits to be read and TLS has nothing
// to deliver.
func TestPartsOfRecordsAreUnsolicited(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	for name, cut := range map[string]int{"of a header": 3, "a header": 5, "of a record": 20} {
		t.Run(name, func(t *testing.T) {
			d := server(t, func(n int64, p *peer) {
				held := &holding{Conn: p.Conn}
				c := tls.Server(held, s.TLS)
				in := &peer{c, bufio.NewReader(c)}
				if _, ok := in.request(); !ok {
					return
				}
				held.holds = true
				_, _ = io.WriteString(c, right)
				whole := len(held.held)
				if n == 0 {
					_, _ = io.WriteString(c, wrong)
				}
				sent := min(whole+cut, len(held.held))
				_, _ = p.Write(held.held[:sent])
				if _, ok := in.request(); ok { // on the same connection
					_, _ = p.Write(held.held[sent:])
				}
			})
			rt := newLean(t, d)
			rt.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
			for i := range 2 {
				if got := read(t, rt, "https://example.com/"); got != "right" {
					t.Errorf("call %d: %q", i, got)
				}
			}
			if got := d.count.Load(); got != 2 {
				t.Errorf("%d connections, want 2", got)
			}
		})
	}
}

// read sends a GET and returns the body of the response.
func read(t *testing.T, rt http.RoundTripper, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A connection through a proxy that speaks TLS is looked at, too: at the socket, and at what the encryption has read ahead.
func TestUnsolicitedAnswersThroughAProxy(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	for name, together := range map[string]bool{"at the socket": false, "read ahead": true} {
		t.Run(name, func(t *testing.T) {
			more, said := make(chan struct{}), make(chan struct{})
			d := server(t, func(n int64, p *peer) {
				held := &holding{Conn: p.Conn}
				c := tls.Server(held, s.TLS)
				in := &peer{c, bufio.NewReader(c)}
				for {
					if _, ok := in.request(); !ok {
						return
					}
					held.holds = true
					_, _ = io.WriteString(c, right)
					if n == 0 && together {
						_, _ = io.WriteString(c, wrong)
					}
					_, _ = p.Write(held.held)
					held.holds, held.held = false, nil
					if n == 0 && !together {
						<-more
						_, _ = io.WriteString(c, wrong)
						close(said)
					}
				}
			})
			rt := newLean(t, d)
			rt.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := d.dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				cfg := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
				cfg.ServerName = "example.com"
				return tls.Client(conn, cfg), nil
			}
			for i := range 3 {
				if got := read(t, rt, "http://platform.test/"); got != "right" {
					t.Errorf("call %d: %q", i, got)
				}
				if i == 0 && !together {
					close(more)
					<-said
				}
			}
			if got := d.count.Load(); got != 2 { // the second is quiet, and stays
				t.Errorf("%d connections, want 2", got)
			}
		})
	}
}

// Of two responses to one request on a connection that was used before, neither is known to be the right one. On a new connection it is the
// first.
func TestTwoAnswersToOneRequest(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		d := server(t, func(n int64, p *peer) {
			for i := 0; ; i++ {
				switch _, ok := p.request(); {
				case !ok:
					return
				case n == 0 && i == 1, n == 1:
					p.say(right + wrong)
				default:
					p.say(right)
				}
			}
		})
		rt := newLean(t, d)
		for i, fails := range []bool{false, true, false, false} {
			_, got, err := call(t.Context(), rt, method, "")
			if fails != errors.Is(err, http1.ErrMalformed) || !fails && (err != nil || got != "right") {
				t.Errorf("%s, call %d: %q, %v, want an error: %t", method, i, got, err, fails)
			}
		}
		if got := d.count.Load(); got != 3 {
			t.Errorf("%s: %d connections, want 3", method, got)
		}
	}
}

// A response that is no error does not begin before its request has been written, except where that was asked for.
func TestAnswersBeforeTheirRequest(t *testing.T) {
	d := server(t, func(_ int64, p *peer) {
		_, _ = http.ReadRequest(p.in)
		p.say(right)
		_, _ = io.Copy(io.Discard, p.in)
	})
	for _, duplex := range []bool{false, true} {
		rt := newLean(t, d)
		rt.Duplex = duplex
		waits, more := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://platform.test/", waits)
		if err != nil {
			t.Fatal(err)
		}
		res, err := rt.RoundTrip(req)
		_ = more.CloseWithError(errors.New("over"))
		if err == nil {
			_ = res.Body.Close()
		}
		if duplex != (err == nil) || !duplex && !errors.Is(err, http1.ErrMalformed) {
			t.Errorf("duplex %t: %v", duplex, err)
		}
	}
}
