package egress

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	socks "golang.org/x/net/proxy"

	"github.com/tollgate-dev/tollgate/config/encryption"
)

// A Dial function opens a connection. It returns an error when ctx ends or when its own time limit is exceeded.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// DialContext implements socks.ContextDialer.
func (d Dial) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// Dial implements socks.Dialer.
func (d Dial) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address) //nolint:forbidigo // the interface passes no context; the library calls DialContext instead
}

// CheckProxy returns an error unless address is a valid URL of a proxy for [Tunnel]. The error does not contain the password in the URL.
func CheckProxy(address string) error {
	_, err := parseProxy(address)
	return err
}

func parseProxy(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) || u.Hostname() == "" ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, errors.New("must be an http, https or socks5 URL of a proxy, without a path")
	}
	return u, CheckPort(u)
}

// Tunnel returns a Dial for servers with the given URL scheme, http or https. The Dial connects through a proxy with CONNECT (RFC 9110,
// section 9.3.6) or SOCKS 5 (RFC 1928), and the proxy resolves host names.
//
// address is the URL of the proxy. If address is empty, the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY) selects a proxy or a direct
// connection. dial opens the connections to proxies and the direct connections. patience is the time limit of the handshake with a proxy.
func Tunnel(address, scheme string, patience time.Duration, dial Dial) (Dial, error) {
	find := httpproxy.FromEnvironment().ProxyFunc()
	if address != "" {
		u, err := parseProxy(address)
		if err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
		find = func(*url.URL) (*url.URL, error) { return u, nil } //nolint:unparam // same signature as ProxyFunc
	}
	return func(ctx context.Context, network, server string) (net.Conn, error) {
		u, err := find(&url.URL{Scheme: scheme, Host: server})
		if err != nil {
			return nil, errors.New("invalid proxy URL in the environment") // the cause may contain the password
		}
		if u == nil {
			return dial(ctx, network, server)
		}
		ctx, cancel := context.WithTimeoutCause(ctx, patience, &timeout{u.Host})
		defer cancel()
		conn, err := through(ctx, u, network, server, dial)
		if err != nil {
			return nil, fmt.Errorf("proxy %s: %w", u.Host, err)
		}
		return conn, nil
	}, nil
}

// timeout is the error if a proxy does not respond in time. It implements net.Error.
type timeout struct{ proxy string }

func (t *timeout) Error() string { return "no response from " + t.proxy + " in time" }

// Timeout implements net.Error.
func (*timeout) Timeout() bool { return true }

// Temporary implements net.Error.
func (*timeout) Temporary() bool { return true }

// through opens a connection through the proxy at u.
func through(ctx context.Context, u *url.URL, network, server string, dial Dial) (net.Conn, error) {
	if strings.HasPrefix(u.Scheme, "socks5") {
		var conn net.Conn // returned without the wrapper of the library, so that callers can inspect the socket
		d, err := socks.FromURL(u, Dial(func(ctx context.Context, network, address string) (_ net.Conn, err error) {
			conn, err = dial(ctx, network, address)
			return conn, err
		}))
		if err != nil {
			return nil, errors.New("unsupported SOCKS proxy URL")
		}
		if _, err := d.(socks.ContextDialer).DialContext(ctx, network, server); err != nil { //nolint:forcetypeassert // SOCKS 5 dialers implement it
			return nil, err
		}
		return conn, nil
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	conn, err := dial(ctx, network, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	secure, err := connect(ctx, conn, u, server)
	if running := stop(); err == nil && running {
		return secure, nil
	}
	_ = conn.Close()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, err
}

// connect requests a tunnel from the proxy that conn is connected to.
func connect(ctx context.Context, conn net.Conn, u *url.URL, server string) (net.Conn, error) {
	if u.Scheme == "https" {
		cfg := encryption.Config()
		cfg.ServerName = u.Hostname()
		secure := tls.Client(conn, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secure
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: server}, Host: server, Header: http.Header{}}
	if u.User != nil {
		password, _ := u.User.Password()
		req.SetBasicAuth(u.User.Username(), password)
		req.Header = http.Header{"Proxy-Authorization": req.Header["Authorization"]}
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, req) //nolint:bodyclose // the tunnel follows the response head
	if err != nil {
		return nil, err
	}
	switch {
	case res.StatusCode/100 != 2:
		return nil, fmt.Errorf("CONNECT failed with status %s", res.Status)
	case in.Buffered() > 0:
		return nil, errors.New("unexpected data after the response to CONNECT")
	}
	return conn, nil
}
