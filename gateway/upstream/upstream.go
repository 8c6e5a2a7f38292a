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

// Errors of [Client.Do]. They are wrapped together with their causes.
var (
	// ErrUnreachable means that no response was received.
	ErrUnreachable = errors.New("upstream: no response")
	// ErrTimeout means that the response was not received in time.
	ErrTimeout = errors.New("upstream: timeout")
	// ErrUnsent means that no part of the request was sent. It is always wrapped together with one of the other errors.
	ErrUnsent = errors.New("upstream: request not sent")
	// ErrCredential means that an organisation has no credential, or that the platform rejected it.
	ErrCredential = errors.New("upstream: no valid platform credential")
)

// Config configures the connection to the platform.
type Config struct {
	// BaseURL is the URL of the platform's REST API without a path.
	BaseURL string
	// Timeout is the time limit for receiving the response headers, and for receiving each part of a body.
	Timeout time.Duration
	// ConnectTimeout is the time limit for dialling, and for the TLS handshake.
	ConnectTimeout time.Duration
	// MaxIdle is the maximum number of idle connections. If http.Transport is used, the limit applies to each credential separately.
	MaxIdle int
	// Connections is the maximum number of open connections; 0 means no limit. Requests wait for a free connection. If http.Transport is used,
	// the limit applies to each credential separately.
	Connections int
	// Proxy is the URL of the proxy. If it is "", the proxy in the environment is used, if any.
	Proxy string
	// Duplex permits successful responses that begin before the request was sent completely.
	Duplex bool
}

// Request is a request to the platform. The client adds the organisation's credential.
type Request struct {
	// Org is the organisation whose credential is sent. If Public is true, no credential is sent.
	Org    string
	Public bool
	Method string
	// Target is the escaped path with the encoded query.
	Target string
	Header http.Header
	// Body is the request body. It may be nil.
	Body []byte
	// Source, if not nil, is the request body in place of Body. Length is its number of bytes; if Length is negative, the body is sent
	// chunked. If Source is an io.Closer, it is closed afterwards.
	Source io.Reader
	Length int64
	// Subdomain, if not "", is sent in place of the first label of the host name.
	Subdomain string
	// Decode makes the client remove the content codings gzip, deflate, br and zstd from the response. Some servers apply them although the
	// request does not accept them. Other content codings are not removed.
	Decode bool
	// Ready, if not nil, is called once a connection is available, which may take long. If it returns an error, the request is not sent.
	Ready func() error
	// EventStream is true if the response is an event stream, which may be silent indefinitely.
	EventStream bool
}

// Client sends requests to the platform. It is safe for concurrent use. Use [New] to create a Client.
type Client struct {
	base        *url.URL
	http1       *http1.Transport
	stalls      *stallDetector
	credentials map[string]Credential
	// standard contains a transport for each Authorization value, "" for requests without one, so that a connection is used for one
	// credential only.
	standard map[string]*http.Transport
}

// New returns a Client for the platform at cfg.BaseURL. credentials maps IDs of organisations to platform keys. New opens no connections.
func New(cfg Config, credentials map[string]Credential) (*Client, error) {
	base, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("upstream: base URL: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" ||
		strings.Trim(base.Path, "/") != "" {
		return nil, errors.New("upstream: base URL must be an http or https URL that contains only a host")
	}
	if base.Host, err = ascii(base); err != nil {
		return nil, fmt.Errorf("upstream: base URL: %w", err)
	}
	dial, err := egress.Tunnel(cfg.Proxy, base.Scheme, cfg.ConnectTimeout, localhost(&net.Dialer{Timeout: cfg.ConnectTimeout}))
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	c := &Client{
		base: base, stalls: newStalls(cfg.Timeout), credentials: credentials,
		standard: map[string]*http.Transport{"": cfg.standard(base.Scheme, dial)},
	}
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
	// idleTimeout is the maximum idle time of a connection.
	idleTimeout = 90 * time.Second
	// maxAge is the maximum age of a connection for new requests, so that a changed address in DNS takes effect.
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
		DisableCompression:    true, // the gateway relays responses without decompressing them
		MaxConnsPerHost:       cfg.Connections,
		MaxIdleConns:          cfg.MaxIdle,
		MaxIdleConnsPerHost:   cfg.MaxIdle,
		IdleConnTimeout:       idleTimeout,
		// Larger than the platform's headers, but small enough to be safe.
		MaxResponseHeaderBytes: 64 << 10,
		WriteBufferSize:        8 << 10,
		ReadBufferSize:         8 << 10,
	}
}

// ascii returns the host of a URL with its name in ASCII form (RFC 5891, section 4).
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

// resumingTLS returns a TLS configuration with session resumption.
func resumingTLS() *tls.Config {
	c := encryption.Config()
	c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	return c
}

// localhost dials names below localhost on the loopback interface (RFC 6761, section 6.3) without using the resolver.
func localhost(d *net.Dialer) egress.Dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(addr); err == nil && strings.HasSuffix(host, ".localhost") {
			addr = net.JoinHostPort("127.0.0.1", port)
		}
		return d.DialContext(ctx, network, addr)
	}
}

// asReadCloser returns a reader as an io.ReadCloser. Close does nothing if r is not an io.Closer.
func asReadCloser(r io.Reader) io.ReadCloser {
	if c, ok := r.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(r)
}

// Authorization returns the value of the Authorization header for requests of an organisation. Package extproc passes it to Envoy, which
// sends the requests; all other code uses [Client.Do].
func (c *Client) Authorization(org string) (string, error) {
	cred, ok := c.credentials[org]
	if !ok {
		return "", fmt.Errorf("%w: %w: no platform credential is configured for organisation %q", ErrUnsent, ErrCredential, org)
	}
	return cred.authorization(), nil
}

// Credential returns the platform key of an organisation. It returns the zero Credential if the organisation lacks one.
func (c *Client) Credential(org string) Credential { return c.credentials[org] }

// Do sends a request and returns the response. The caller must close the response body. ctx applies until the body is closed. Reading the
// body returns errors of this package. Do masks the platform key in the headers and, unless the body has a content coding, in the body.
// After a protocol switch, the body is an io.ReadWriteCloser; it returns ErrTimeout if no data passes in either direction for the
// configured timeout.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	header := maps.Clone(r.Header) // values are never changed, so a shallow copy is enough
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
	u.Opaque = path // sent as built, without escaping it again
	if strings.HasPrefix(path, "//") {
		// As Opaque it would be sent in absolute-form with a host chosen by the caller.
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
	if r.Ready != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
			if err := r.Ready(); err != nil {
				cancel(err)
			}
		}})
	}
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

// Host returns the host name or the IP address of the platform, without a port.
func (c *Client) Host() string { return c.base.Hostname() }

// roundTrip sends a request with the suitable client. The error includes ErrUnsent if nothing was sent.
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

// standardTransport sends requests with http.Transport: upgrades, and requests to a platform that supports only HTTP/2.
type standardTransport struct{ *Client }

// RoundTrip implements http.RoundTripper with the errors of Client.roundTrip.
func (c standardTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req.GetBody = nil // GetBody would permit a retry
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	res, err := c.standard[req.Header.Get("Authorization")].RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil && !connected.Load() {
		err = fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	return res, err
}

// Close closes idle connections.
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
