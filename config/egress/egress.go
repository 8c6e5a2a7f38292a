package egress

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Guard returns an error for an address that must not be dialled. It has the signature of the Control function of a net.Dialer. It is
// called with a nil connection for an address that a proxy would dial.
type Guard func(network, address string, c syscall.RawConn) error

// handshakeTimeout limits a TLS handshake, also with a proxy.
const handshakeTimeout = 10 * time.Second

// NewClient returns an HTTP client that does not follow redirects and does not keep connections alive. A nil guard permits all addresses.
// The context of a request limits the request, and dial limits connecting.
func NewClient(guard Guard, dial time.Duration) *http.Client {
	return newClient(guard, dial, nil)
}

func newClient(guard Guard, dial time.Duration, c *tls.Config) *http.Client {
	t := &transport{
		guard: guard, direct: newTransport(&net.Dialer{Timeout: dial, Control: guard}, c),
		proxied: newTransport(&net.Dialer{Timeout: dial}, c),
	}
	t.proxied.Proxy = func(r *http.Request) (*url.URL, error) { return proxyOf(r.URL) }
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func newTransport(d *net.Dialer, c *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext: d.DialContext, TLSClientConfig: c, TLSHandshakeTimeout: handshakeTimeout,
		DisableKeepAlives: true, DisableCompression: true,
	}
}

// proxyOf returns the proxy for u, or nil if u is reached directly. Loopback addresses never use a proxy.
func proxyOf(u *url.URL) (*url.URL, error) { return httpproxy.FromEnvironment().ProxyFunc()(u) }

// UsesProxy reports whether u is reached through a proxy of the environment. The proxy then resolves the host name.
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

// check passes the IP address in u, if there is one, to the guard.
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
