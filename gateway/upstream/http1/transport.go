package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tollgate-dev/tollgate/config/encryption"
)

// Errors of RoundTrip, wrapped with their causes.
var (
	// ErrUnsent means that the server has seen nothing of the request.
	ErrUnsent = errors.New("not sent")
	// ErrMalformed means that the head of the answer has no reading, or several.
	ErrMalformed = errors.New("malformed answer")
	// ErrHTTP2 means that the server speaks HTTP/2 only.
	ErrHTTP2 = errors.New("the server does not speak HTTP/1.1")
)

// Transport is an http.RoundTripper for http and https URLs. Its fields must not
// change once it is used. It is safe for concurrent use.
type Transport struct {
	// DialContext opens connections, in a time that it bounds itself; required.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLSClientConfig is used for https; nil is the default configuration. Names and
	// protocols are set here.
	TLSClientConfig *tls.Config
	// TLSHandshakeTimeout bounds a TLS handshake, ResponseHeaderTimeout the wait for
	// the head of an answer once the request is written, and the write of each
	// part of a request; 0 has no bound.
	TLSHandshakeTimeout, ResponseHeaderTimeout time.Duration
	// MaxConns bounds the open connections; 0 has no bound. A request waits for one, as
	// long as its context lets it.
	MaxConns int
	// MaxIdle is how many idle connections are kept, IdleTimeout for how long.
	MaxIdle     int
	IdleTimeout time.Duration
	// Duplex lets a response with a status below 400 begin before its request has been written. Otherwise such a response is an error.
	Duplex bool
	// MaxAge is how long after its beginning a connection takes requests; 0 has no bound.
	MaxAge time.Duration

	// Fallback sends requests to servers that speak HTTP/2 only: all from the first
	// answer that shows one, whose request fails, or from the first handshake, whose
	// request does not. A server that closes a connection without a byte, in the handshake
	// or after the request, is asked which protocols it accepts. nil fails with ErrHTTP2.
	Fallback http.RoundTripper

	useFallback atomic.Bool // Fallback sends all
	spokeHTTP1  atomic.Bool // a server has answered in HTTP/1.1
	probing     atomic.Bool // a server is asked for its protocols
	pool        pool
	slots       slots
}

// RoundTrip implements http.RoundTripper. A body is taken to be in memory if the
// request has GetBody, which is not called. The caller closes the body of the answer,
// which must not be read by two goroutines at a time.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := check(req); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	if t.useFallback.Load() {
		return t.Fallback.RoundTrip(req)
	}
	if hasBody(req) && req.GetBody == nil && inline(req) {
		var err error
		if req, err = read(req); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnsent, err)
		}
	}
	to := destinationOf(req)
	c, err := t.conn(req.Context(), to, t.pool.take)
	if err == nil && c.reused {
		res, failed := c.exchange(req)
		if failed == nil || !c.canRetry(req) {
			return res, failed
		}
		c, err = t.conn(req.Context(), to, none)
	}
	if t.needsFallback(err) {
		return t.Fallback.RoundTrip(req)
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	res, err := c.exchange(req)
	switch {
	case err == nil && !t.spokeHTTP1.Load():
		t.spokeHTTP1.Store(true)
	case err != nil && c.closedSilently():
		err = t.explainClose(req.Context(), to, err)
	}
	t.needsFallback(err)
	return res, err
}

// needsFallback reports whether an error says that requests are better sent by Fallback,
// and remembers it.
func (t *Transport) needsFallback(err error) bool {
	if err == nil || t.Fallback == nil || !errors.Is(err, ErrHTTP2) {
		return false
	}
	t.useFallback.Store(true)
	return true
}

// CloseIdleConnections closes the connections that are not in use, and those in use
// when they no longer are, unless there is another request before.
func (t *Transport) CloseIdleConnections() { t.pool.close() }

// check refuses requests that cannot be written as they are.
func check(req *http.Request) error {
	switch {
	case req.Context().Err() != nil:
		return context.Cause(req.Context())
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return fmt.Errorf("unsupported scheme %q", req.URL.Scheme)
	case req.URL.Host == "":
		return errors.New("no host")
	case !isToken(req.Method):
		return fmt.Errorf("invalid method %q", req.Method)
	}
	for name, values := range req.Header {
		if !isToken(name) {
			return fmt.Errorf("invalid header field name %q", name)
		}
		for _, v := range values {
			if !isText(v) {
				return fmt.Errorf("invalid value of the header field %q", name) // which may be a credential
			}
		}
	}
	if req.Header["Upgrade"] != nil {
		return errors.New("protocols are not switched")
	}
	return nil
}

// conn returns what idle returns, or else a connection that it opens, once there may be
// one more. Those who wait for that take turns.
func (t *Transport) conn(ctx context.Context, to destination, idle func(destination, time.Duration, time.Duration) *conn) (*conn, error) {
	for {
		if c := idle(to, t.IdleTimeout, t.MaxAge); c != nil {
			return c, nil
		}
		turn := t.slots.acquire(t.MaxConns)
		if turn == nil {
			return t.connect(ctx, to)
		}
		t.pool.makeRoom()
		select {
		case <-turn:
		case <-ctx.Done():
			t.slots.cancel(turn)
			return nil, context.Cause(ctx)
		}
	}
}

// none is no idle connection.
func none(destination, time.Duration, time.Duration) *conn { return nil }

// keep puts a connection into the pool, where whoever waits first may find it.
func (t *Transport) keep(c *conn) {
	t.pool.put(c, t.MaxIdle, t.IdleTimeout)
	t.slots.signal()
}

// connect opens a connection, for which there is a slot. One that its caller no longer waits for is kept: where
// they take longer than callers wait, there would never be one.
func (t *Transport) connect(ctx context.Context, to destination) (*conn, error) {
	type result struct {
		conn *conn
		err  error
	}
	made := make(chan result)
	go func() {
		c, err := t.dial(context.WithoutCancel(ctx), to)
		if err != nil {
			t.slots.release()
		}
		select {
		case made <- result{c, err}:
		case <-ctx.Done():
			if err == nil {
				t.keep(c)
			}
		}
	}()
	select {
	case r := <-made:
		return r.conn, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// addr returns the address of a destination, and the name that its certificate must have.
func (to destination) addr() (addr, name string) {
	u := url.URL{Host: to.host}
	addr, name = to.host, strings.TrimSuffix(u.Hostname(), ".")
	if u.Port() == "" {
		port := "80"
		if to.scheme == "https" {
			port = "443"
		}
		addr = net.JoinHostPort(u.Hostname(), port)
	}
	return addr, name
}

// dial opens a connection.
func (t *Transport) dial(ctx context.Context, to destination) (*conn, error) {
	addr, name := to.addr()
	raw, err := t.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if to.scheme != "https" {
		return newConn(t, to, raw, raw, nil), nil
	}
	ear := &gatedConn{Conn: raw}
	secure, err := t.handshake(ctx, ear, name, http1)
	if err != nil {
		_ = raw.Close()
		if closed(err) {
			err = t.explainClose(ctx, to, err)
		}
		return nil, err
	}
	return newConn(t, to, raw, secure, ear), nil
}

// The protocols that a handshake offers (RFC 7301, section 6).
const (
	http1 = "http/1.1"
	http2 = "h2"
)

// closed reports whether an error says that the server closed the connection.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// explainClose returns the error of a connection that a server closed without a byte, with ErrHTTP2 if the server accepts HTTP/2
// and still does not accept HTTP/1.1. A server that is merely restarting accepts neither or both, and a server that has
// answered in HTTP/1.1 is not asked. One connection is examined at a time.
func (t *Transport) explainClose(ctx context.Context, to destination, err error) error {
	if t.Fallback == nil || t.spokeHTTP1.Load() || !t.probing.CompareAndSwap(false, true) {
		return err
	}
	defer t.probing.Store(false)
	if t.accepts(ctx, to, http2) && !t.accepts(ctx, to, http1) {
		return fmt.Errorf("%w: %w", ErrHTTP2, err)
	}
	return err
}

// accepts reports whether a server takes a protocol in the handshake of a connection of its own.
func (t *Transport) accepts(ctx context.Context, to destination, protocol string) bool {
	addr, name := to.addr()
	raw, err := t.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = raw.Close() }()
	secure, err := t.handshake(ctx, raw, name, protocol)
	return err == nil && secure.ConnectionState().NegotiatedProtocol == protocol
}

func (t *Transport) handshake(ctx context.Context, raw net.Conn, name, protocol string) (*tls.Conn, error) {
	cfg := t.TLSClientConfig.Clone() // of nil it is nil
	if cfg == nil {
		cfg = encryption.Config()
	}
	if cfg.ServerName == "" {
		cfg.ServerName = name
	}
	cfg.NextProtos = []string{protocol}
	if t.TLSHandshakeTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.TLSHandshakeTimeout)
		defer cancel()
	}
	secure := tls.Client(raw, cfg)
	err := secure.HandshakeContext(ctx)
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" && alert.Err.Error() == errNoProtocol.Error() {
		err = fmt.Errorf("%w: %w", ErrHTTP2, err)
	}
	return secure, err
}

// errNoProtocol is the alert of a server that speaks none of the protocols offered (RFC
// 7301, section 3.2).
const errNoProtocol = tls.AlertError(120)
