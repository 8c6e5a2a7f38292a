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

// Errors of [Transport.RoundTrip]. They are wrapped together with their causes.
var (
	// ErrUnsent means that no part of the request reached the server.
	ErrUnsent = errors.New("request not sent")
	// ErrMalformed means that the response is malformed or ambiguous.
	ErrMalformed = errors.New("malformed response")
	// ErrHTTP2 means that the server supports only HTTP/2.
	ErrHTTP2 = errors.New("server does not support HTTP/1.1")
)

// Transport is an http.RoundTripper for http and https URLs. Its fields must not be changed after the first use. It is safe for concurrent
// use.
type Transport struct {
	// DialContext opens connections. It must limit the time for opening a connection. It is required.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLSClientConfig is the TLS configuration for https. If nil, the default configuration is used. The Transport sets NextProtos, and sets
	// ServerName if it is empty.
	TLSClientConfig *tls.Config
	// TLSHandshakeTimeout is the time limit of a TLS handshake. ResponseHeaderTimeout is the time limit from the end of the request to the
	// response headers, and for writing each part of a request. 0 means no limit.
	TLSHandshakeTimeout, ResponseHeaderTimeout time.Duration
	// MaxConns is the maximum number of open connections; 0 means no limit. Requests wait for a connection until their contexts end.
	MaxConns int
	// MaxIdle is the maximum number of idle connections. IdleTimeout is the maximum time that a connection stays idle.
	MaxIdle     int
	IdleTimeout time.Duration
	// Duplex permits responses that begin before the request was written completely. If it is false, such a response is an error unless its
	// status is at least 400.
	Duplex bool
	// MaxAge is the maximum age of a connection on which a new request is sent; 0 means no limit.
	MaxAge time.Duration

	// Fallback sends requests to servers that support only HTTP/2. When the Transport detects such a server, it uses Fallback for all further
	// requests. If it detects the server during a TLS handshake, it also sends the current request with Fallback; if it detects the server by
	// a response, the current request fails. If a server closes a connection without sending a byte, the Transport checks which protocols the
	// server accepts. If Fallback is nil, requests to such servers fail with ErrHTTP2.
	Fallback http.RoundTripper

	useFallback atomic.Bool // Fallback sends all requests
	spokeHTTP1  atomic.Bool // a server has responded with HTTP/1.1
	probing     atomic.Bool // a server's protocols are being checked
	pool        pool
	slots       slots
}

// RoundTrip implements http.RoundTripper. If req.GetBody is set, RoundTrip assumes that the body is in memory; it does not call GetBody.
// The caller must close the response body. Only one goroutine at a time may read the response body.
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

// needsFallback reports whether an error means that the server supports only HTTP/2, and remembers it.
func (t *Transport) needsFallback(err error) bool {
	if err == nil || t.Fallback == nil || !errors.Is(err, ErrHTTP2) {
		return false
	}
	t.useFallback.Store(true)
	return true
}

// CloseIdleConnections closes all idle connections. Connections in use are closed when they become idle, unless a new request is sent
// first.
func (t *Transport) CloseIdleConnections() { t.pool.close() }

// check refuses requests that cannot be written as they are.
func check(req *http.Request) error {
	switch {
	case req.Context().Err() != nil:
		return context.Cause(req.Context())
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return fmt.Errorf("unsupported scheme %q", req.URL.Scheme)
	case req.URL.Host == "":
		return errors.New("URL contains no host")
	case !isToken(req.Method):
		return fmt.Errorf("invalid method %q", req.Method)
	}
	for name, values := range req.Header {
		if !isToken(name) {
			return fmt.Errorf("invalid header field name %q", name)
		}
		for _, v := range values {
			if !isText(v) {
				return fmt.Errorf("invalid value for header field %q", name) // the value may be a credential
			}
		}
	}
	if req.Header["Upgrade"] != nil {
		return errors.New("protocol upgrades are not supported")
	}
	return nil
}

// conn returns an idle connection, or opens one as soon as the limit permits. Waiting requests are served in order.
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

// none returns no idle connection.
func none(destination, time.Duration, time.Duration) *conn { return nil }

// release returns a connection to the pool and wakes the first waiter.
func (t *Transport) release(c *conn) {
	t.pool.put(c, t.MaxIdle, t.IdleTimeout)
	t.slots.signal()
}

// connect opens a connection for an acquired slot. If the caller stops waiting, the new connection is kept for other requests. Otherwise,
// no request would ever succeed if dialling takes longer than callers wait.
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
				t.release(c)
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

// addr returns the address of a destination and the name for its certificate.
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

// Protocol names in handshakes (RFC 7301, section 6).
const (
	http1 = "http/1.1"
	http2 = "h2"
)

// closed reports whether an error means that the server closed the connection.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// explainClose examines a connection that the server closed without sending a byte. It adds ErrHTTP2 to the error if the server accepts
// HTTP/2 but not HTTP/1.1; a server that is restarting accepts neither or both. Servers that have responded with HTTP/1.1 are not examined.
// Only one examination runs at a time.
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

// accepts reports whether a server accepts a protocol in the handshake of a new connection.
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
	cfg := t.TLSClientConfig.Clone() // Clone of a nil *tls.Config is nil
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

// errNoProtocol is the alert of a server that supports none of the offered protocols (RFC 7301, section 3.2).
const errNoProtocol = tls.AlertError(120)
