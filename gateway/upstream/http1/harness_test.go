package http1_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway/upstream/http1"
)

func TestMain(m *testing.M) {
	if os.Getenv(platformVariable) != "" {
		servePlatform()
		return
	}
	goleak.VerifyTestMain(m)
}

// minute bounds each wait of a test: it fails, it does not hang.
const minute = time.Minute

// dialer dials addr for any requested address, and counts.
type dialer struct {
	addr  string
	count atomic.Int64
}

func (d *dialer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d.count.Add(1)
	return new(net.Dialer).DialContext(ctx, "tcp", d.addr)
}

// clients are the two that the cases are run with.
func clients(t *testing.T, d *dialer) map[string]http.RoundTripper {
	t.Helper()
	l := newLean(t, d)
	s := &http.Transport{DialContext: d.dial, DisableCompression: true, ResponseHeaderTimeout: minute, TLSHandshakeTimeout: minute, MaxIdleConns: 4, MaxIdleConnsPerHost: 4, IdleConnTimeout: minute, MaxResponseHeaderBytes: 64 << 10}
	t.Cleanup(s.CloseIdleConnections)
	return map[string]http.RoundTripper{"lean": l, "standard": s}
}

func newLean(t *testing.T, d *dialer) *http1.Transport {
	t.Helper()
	l := &http1.Transport{DialContext: d.dial, ResponseHeaderTimeout: minute, TLSHandshakeTimeout: minute, MaxIdle: 4, IdleTimeout: minute}
	t.Cleanup(l.CloseIdleConnections)
	return l
}

// peer is a server's end of a connection.
type peer struct {
	net.Conn
	in *bufio.Reader
}

// request reads a request, and reports whether there was one.
func (p *peer) request() (*http.Request, bool) {
	r, err := http.ReadRequest(p.in)
	if err != nil {
		return nil, false
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, false
	}
	return r, true
}

func (p *peer) say(s string) { _, _ = io.WriteString(p, s) }

// server runs script on each connection, which is closed behind it.
func server(t *testing.T, script func(n int64, p *peer)) *dialer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := int64(0); ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				script(n, &peer{c, bufio.NewReader(c)})
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return &dialer{addr: l.Addr().String()}
}

// call sends a request and reads its answer.
func call(ctx context.Context, rt http.RoundTripper, method, body string) (status int, got string, err error) {
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://platform.test/v2/pods", in)
	if err != nil {
		return 0, "", err
	}
	req.GetBody = nil // as the gateway sends it
	res, err := rt.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	return res.StatusCode, string(b), err
}
