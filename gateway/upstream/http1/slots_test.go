package http1_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/upstream/http1"
)

// crowd is a server that counts requests, and holds those to /held until it is told.
type crowd struct {
	*httptest.Server
	asked        atomic.Int64
	arrived, let chan struct{}
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{arrived: make(chan struct{}, 1), let: make(chan struct{})}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.asked.Add(1)
		if r.URL.Path == "/held" {
			c.arrived <- struct{}{}
			<-c.let
		}
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(c.Close)
	return c
}

// tally counts the connections that are open, from before they are dialled.
type tally struct {
	mu         sync.Mutex // guards what follows
	open, most int
}

func (c *tally) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
	c.most = max(c.most, c.open)
}

func (c *tally) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c.add(1)
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		c.add(-1)
		return nil, err
	}
	return tallied{conn, c}, nil
}

type tallied struct {
	net.Conn
	tally *tally
}

// Close implements io.Closer. A transport closes each of its connections once.
func (c tallied) Close() error {
	err := c.Conn.Close()
	c.tally.add(-1)
	return err
}

// get asks and reads the answer to its end.
func get(ctx context.Context, l *http1.Transport, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := l.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}

func newBounded(t *testing.T, most int) *http1.Transport {
	t.Helper()
	l := &http1.Transport{DialContext: new(net.Dialer).DialContext, ResponseHeaderTimeout: minute, MaxConns: most, MaxIdle: 100, IdleTimeout: minute}
	t.Cleanup(l.CloseIdleConnections)
	return l
}

// Requests beyond the bound wait, and all are answered; a connection that is idle makes
// room for another server's.
func TestConnectionsAreBounded(t *testing.T) {
	a, b := newCrowd(t), newCrowd(t)
	var conns tally
	l := newBounded(t, 3)
	l.DialContext = conns.dial
	var wg sync.WaitGroup
	for range 20 {
		for _, s := range []*crowd{a, b} {
			wg.Go(func() {
				for range 10 {
					if err := get(t.Context(), l, s.URL); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if a, b := a.asked.Load(), b.asked.Load(); a != 200 || b != 200 || conns.most != 3 {
		t.Errorf("%d and %d of 200 requests, %d connections at a time, want 3", a, b, conns.most)
	}
	l.CloseIdleConnections()
	if conns.open != 0 {
		t.Errorf("%d connections are open at the end", conns.open)
	}
}

// Who waits for a connection may leave, and is not counted; a connection that ends badly
// gives its slot back.
func TestWaitForAConnection(t *testing.T) {
	s := newCrowd(t)
	l := newBounded(t, 1)
	first := make(chan error, 1)
	ctx, leave := context.WithCancel(t.Context())
	go func() { first <- get(ctx, l, s.URL+"/held") }()
	<-s.arrived

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := get(gone, l, s.URL); !errors.Is(err, context.Canceled) || !errors.Is(err, http1.ErrUnsent) {
		t.Errorf("who left: %v, want that nothing was sent", err)
	}
	second := make(chan error, 1)
	go func() { second <- get(t.Context(), l, s.URL) }()
	leave() // breaks the connection off
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("the second: %v", err)
	}
	close(s.let)

	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for range 3 {
		if err := get(t.Context(), l, closed.URL); !errors.Is(err, http1.ErrUnsent) {
			t.Errorf("nobody listens: %v", err)
		}
	}
	if err := get(t.Context(), l, s.URL); err != nil {
		t.Errorf("after failures: %v", err)
	}
}

// A connection that is too old takes no further request.
func TestConnectionsAge(t *testing.T) {
	for name, tc := range map[string]struct {
		age  time.Duration
		want int64
	}{"old": {1, 3}, "young": {minute, 1}, "no bound": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			s := newCrowd(t)
			d := &dialer{addr: s.Listener.Addr().String()}
			l := newLean(t, d)
			l.MaxAge = tc.age
			for range 3 {
				if err := get(t.Context(), l, s.URL); err != nil {
					t.Fatal(err)
				}
			}
			if got := d.count.Load(); got != tc.want {
				t.Errorf("%d connections, want %d", got, tc.want)
			}
		})
	}
}

// A request whose connection ends before its answer, when there is no other to be had,
// fails.
func TestNoConnectionInThePlaceOfALostOne(t *testing.T) {
	d := server(t, func(_ int64, p *peer) {
		if _, ok := p.request(); ok {
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			_, _ = p.request()
		}
	})
	l := newLean(t, d)
	errAway := errors.New("away")
	l.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if d.count.Load() > 0 {
			return nil, errAway
		}
		return d.dial(ctx, network, addr)
	}
	for _, want := range []error{nil, errAway} {
		if err := get(t.Context(), l, "http://platform.test/v2/pods"); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
