package egress

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// A Guard returns an error if an address must not be dialled. It can be used as the Control function of a [net.Dialer]. If a proxy would
// dial the address, c is nil.
type Guard func(network, address string, c syscall.RawConn) error

// handshakeTimeout is the time limit of a TLS handshake with a server or a proxy.
const handshakeTimeout = 10 * time.Second

// NewClient returns an HTTP client that does not follow redirects and does not reuse connections. A nil guard permits all addresses. dial
// is the timeout for establishing a connection; the context of a request limits the whole request.
func NewClient(guard Guard, dial time.Duration) *http.Client {
	t := &transport{
		guard: guard, direct: newTransport(&net.Dialer{Timeout: dial, Control: guard}),
		proxied: newTransport(&net.Dialer{Timeout: dial}),
	}
	t.proxied.Proxy = func(r *http.Request) (*url.URL, error) { return proxyOf(r.URL) }
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func newTransport(d *net.Dialer) *http.Transport {
	return &http.Transport{
		DialContext: d.DialContext, TLSHandshakeTimeout: handshakeTimeout,
		DisableKeepAlives: true, DisableCompression: true,
	}
}

// proxyOf returns the proxy for requests to u, or nil for a direct connection. Requests to loopback addresses never use a proxy.
func proxyOf(u *url.URL) (*url.URL, error) { return httpproxy.FromEnvironment().ProxyFunc()(u) }

// UsesProxy reports whether the environment selects a proxy for requests to u. If so, the proxy resolves the host name.
func UsesProxy(u *url.URL) bool {
	proxy, err := proxyOf(u)
	return err == nil && proxy != nil
}

type transport struct {
	guard           Guard
	direct, proxied *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	proxy, err := proxyOf(r.URL)
	if err == nil && proxy == nil {
		return t.direct.RoundTrip(r)
	}
	if err == nil {
		err = t.check(r.URL)
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // required of a RoundTripper
		}
		return nil, err
	}
	return t.proxied.RoundTrip(r)
}

// check calls the guard with the host of u if the host is an IP address.
func (t *transport) check(u *url.URL) error {
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil || t.guard == nil {
		return nil //nolint:nilerr // the proxy resolves names
	}
	addr = addr.Unmap().WithZone("")
	network, port := "tcp4", u.Port()
	if addr.Is6() {
		network = "tcp6"
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return t.guard(network, net.JoinHostPort(addr.String(), port), nil)
}
