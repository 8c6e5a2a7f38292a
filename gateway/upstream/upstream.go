package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/encryption"
	"github.com/tollgate-dev/tollgate/gateway/upstream/http1"
)

// Errors of Do. Each is wrapped together with its cause.
var (
	// ErrUnreachable means that no answer was received.
	ErrUnreachable = errors.New("upstream: no answer")
	// ErrTimeout means that the answer did not come in time.
	ErrTimeout = errors.New("upstream: no answer in time")
	// ErrUnsent means that the platform has seen nothing of the request. It comes
	// together with one of the above, or with ErrCredential.
	ErrUnsent = errors.New("upstream: not sent")
	// ErrCredential means that an organisation has no credential, or one the
	// platform does not accept.
	ErrCredential = errors.New("upstream: credential refused")
)

// Config says where the platform is.
type Config struct {
	// BaseURL is the platform's REST address, without path.
	BaseURL string
	// Timeout bounds the wait for response headers, and for each part of a body.
	Timeout time.Duration
	// ConnectTimeout bounds dialling and the TLS handshake.
	ConnectTimeout time.Duration
	// MaxIdle is the number of idle connections kept, by the fallback for each credential.
	MaxIdle int
	// Connections bounds the open connections, by the fallback for each credential; 0 has
	// no bound. Requests wait for one that is free.
	Connections int
	// Proxy is the URL of the proxy on the way, "" that of the environment.
	Proxy string
	// Duplex accepts a successful response that begins before its request has been sent.
	Duplex bool
}

// Request is one call. The client adds the organisation's credential.
type Request struct {
	// Org is the organisation whose credential is sent; Public sends none.
	Org    string
	Public bool
	Method string
	// Target is the escaped path with the encoded query.
	Target string
	Header http.Header
	// Body is sent as it is; nil for none.
	Body []byte
	// Source is sent instead when it is not nil, as Length bytes, or chunked when
	// Length is negative, and closed if it is an io.Closer.
	Source io.Reader
	Length int64
	// Subdomain takes the place of the first name of the host, unless it is "".
	Subdomain string
	// Decode removes the content codings gzip, deflate, br and zstd from the answer's body, where a
	// server applies them although the request does not accept them. Other codings stay.
	Decode bool
	// EventStream says that the answer is an event stream, in which nothing may come for
	// as long as it likes.
	EventStream bool
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	base        *url.URL
	http1       *http1.Transport
	stalls      *stallDetector
	credentials map[string]Credential
	// standard has a pool of connections for each value of Authorization, "" for requests without it: a
	// connection opened with one credential carries no other.
	standard map[string]*http.Transport
}

// New returns a Client for the platform at cfg.BaseURL with one credential for
// each organisation. It does not dial.
func New(cfg Config, credentials map[string]Credential) (*Client, error) {
	base, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("upstream: base URL: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || strings.Trim(base.Path, "/") != "" {
		return nil, errors.New("upstream: base URL must be an http or https URL with only a host")
	}
	if base.Host, err = ascii(base); err != nil {
		return nil, fmt.Errorf("upstream: base URL: %w", err)
	}
	dial, err := egress.Tunnel(cfg.Proxy, base.Scheme, cfg.ConnectTimeout, localhost(&net.Dialer{Timeout: cfg.ConnectTimeout}))
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	c := &Client{base: base, stalls: newStalls(cfg.Timeout), credentials: credentials, standard: map[string]*http.Transport{"": cfg.standard(base.Scheme, dial)}}
	for _, cred := range credentials {
		c.standard[cred.authorization()] = cfg.standard(base.Scheme, dial)
	}
	c.http1 = &http1.Transport{
		DialContext:           dial,
		TLSHandshakeTimeout:   cfg.ConnectTimeout,
		TLSClientConfig:       resumingTLS(),
		ResponseHeaderTimeout: cfg.Timeout,
		MaxConns:              cfg.Connections,
		MaxIdle:               cfg.MaxIdle,
		IdleTimeout:           idleTimeout,
		MaxAge:                maxAge,
		Duplex:                cfg.Duplex,
		Fallback:              standardTransport{c},
	}
	return c, nil
}

const (
	// idleTimeout is how long idle connections are kept.
	idleTimeout = 90 * time.Second
	// maxAge is how long after its beginning a connection may take a request: where DNS has
	// a new address for the platform, it is in use after that.
	maxAge = time.Minute
)

// standard returns an http.Transport.
func (cfg *Config) standard(scheme string, dial egress.Dial) *http.Transport {
	return &http.Transport{
		DialContext:           dial,
		TLSHandshakeTimeout:   cfg.ConnectTimeout,
		TLSClientConfig:       resumingTLS(),
		ResponseHeaderTimeout: cfg.Timeout,
		ForceAttemptHTTP2:     scheme == "https",
		DisableCompression:    true, // identity only: the gateway never inflates what it relays
		MaxConnsPerHost:       cfg.Connections,
		MaxIdleConns:          cfg.MaxIdle,
		MaxIdleConnsPerHost:   cfg.MaxIdle,
		IdleConnTimeout:       idleTimeout,
		// Larger than the platform's headers, small enough to be harmless.
		MaxResponseHeaderBytes: 64 << 10,
		WriteBufferSize:        8 << 10,
		ReadBufferSize:         8 << 10,
	}
}

// ascii returns the host of an address, its name as DNS has it (RFC 5891, section 4).
func ascii(u *url.URL) (string, error) {
	if !strings.ContainsFunc(u.Host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return u.Host, nil
	}
	name, err := idna.Lookup.ToASCII(u.Hostname())
	if port := u.Port(); port != "" {
		name = net.JoinHostPort(name, port)
	}
	return name, err
}

// resumingTLS is how TLS is spoken. A session is resumed by the connections after it.
func resumingTLS() *tls.Config {
	c := encryption.Config()
	c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	return c
}

// localhost dials names below localhost on loopback, which is where they are (RFC
// 6761, section 6.3), without the resolver of the machine.
func localhost(d *net.Dialer) egress.Dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(addr); err == nil && strings.HasSuffix(host, ".localhost") {
			addr = net.JoinHostPort("127.0.0.1", port)
		}
		return d.DialContext(ctx, network, addr)
	}
}

// asReadCloser returns a reader as a body, which is closed if it can be.
func asReadCloser(r io.Reader) io.ReadCloser {
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}

// Authorization returns the header value that authenticates an organisation to
// the platform. Only the Envoy door, which does not send requests itself,
// needs it.
func (c *Client) Authorization(org string) (string, error) {
	cred, ok := c.credentials[org]
	if !ok {
		return "", fmt.Errorf("%w: %w: organisation %q has none", ErrUnsent, ErrCredential, org)
	}
	return cred.authorization(), nil
}

// Credential returns the credential of an organisation, the zero value if it
// has none.
func (c *Client) Credential(org string) Credential { return c.credentials[org] }

// Do sends one request and returns the answer with its body still open. The
// caller closes the body. ctx bounds the whole exchange, the body included. Read
// errors of the body are errors of this package, too. The credential is masked in
// headers and body, as far as that is sent as it is. The body of an answer that
// switches protocols is an io.ReadWriteCloser; it ends with ErrTimeout when nothing
// passes either way for the time that an answer may take.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	header := maps.Clone(r.Header) // no client changes values
	if header == nil {
		header = make(http.Header, 1)
	}
	if !r.Public {
		auth, err := c.Authorization(r.Org)
		if err != nil {
			return nil, err
		}
		header["Authorization"] = []string{auth}
	}
	u := *c.base
	path, query, _ := strings.Cut(r.Target, "?")
	u.Opaque = path // sent as built, not re-escaped
	if strings.HasPrefix(path, "//") {
		// As Opaque it would be sent in absolute-form, with a host of the caller's choice.
		var err error
		if u.Path, err = url.PathUnescape(path); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnsent, err)
		}
		u.Opaque, u.RawPath = "", path
	}
	u.RawQuery = query
	req := &http.Request{Method: r.Method, URL: &u, Host: c.base.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if r.Subdomain != "" {
		u.Host = r.Subdomain + u.Host[strings.IndexByte(u.Host, '.'):]
		req.Host = u.Host
	}
	switch {
	case r.Source != nil:
		req.Body, req.ContentLength = asReadCloser(r.Source), r.Length
	case r.Body != nil:
		req.Body = io.NopCloser(bytes.NewReader(r.Body))
		req.ContentLength = int64(len(r.Body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	res, err := c.roundTrip(req.WithContext(ctx))
	if err != nil {
		err = classify(ctx, err)
		cancel(nil)
		return nil, err
	}
	cred := c.credentials[r.Org]
	cred.ScrubHeader(res.Header)
	if conn, both := res.Body.(io.ReadWriteCloser); both {
		res.Body = newTunnel(ctx, cancel, conn, c.stalls.timeout)
		return res, nil
	}
	b := &body{ReadCloser: res.Body, ctx: ctx, cancel: cancel}
	if !r.EventStream {
		b.watch = c.stalls
		c.stalls.add(b)
	}
	res.Body = b
	if r.Decode {
		decode(res)
	}
	res.Body = cred.scrubbed(res.Body)
	return res, nil
}

// Host returns the name or address of the platform, without a port.
func (c *Client) Host() string { return c.base.Hostname() }

// roundTrip sends a request by the client for it. The error is ErrUnsent, too, if
// nothing has left.
func (c *Client) roundTrip(req *http.Request) (*http.Response, error) {
	if req.Header["Upgrade"] != nil {
		return standardTransport{c}.RoundTrip(req)
	}
	res, err := c.http1.RoundTrip(req)
	if errors.Is(err, http1.ErrUnsent) {
		err = fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	return res, err
}

// standardTransport sends requests by http.Transport: upgrades, and those to a platform that
// speaks HTTP/2 only.
type standardTransport struct{ *Client }

// RoundTrip implements http.RoundTripper. The error is as of Client.roundTrip.
func (c standardTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req.GetBody = nil // it would be leave to send twice
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	res, err := c.standard[req.Header.Get("Authorization")].RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil && !connected.Load() {
		err = fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	return res, err
}

// Close drops idle connections.
func (c *Client) Close() {
	for _, t := range c.standard {
		t.CloseIdleConnections()
	}
	c.http1.CloseIdleConnections()
}

func classify(ctx context.Context, err error) error {
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() ||
		errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}
