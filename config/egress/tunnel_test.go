package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// socksServer serves SOCKS 5 without credentials on one connection after another: it takes
// every name for the address to, and notes names.
func socksServer(t *testing.T, to string, names chan<- string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 300)
			_, _ = io.ReadFull(client, b[:3]) // version, one method
			_, _ = client.Write([]byte{5, 0})
			_, _ = io.ReadFull(client, b[:5]) // version, connect, 0, by name, its length
			n := int(b[4])
			_, _ = io.ReadFull(client, b[:n+2])
			names <- string(b[:n])
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			_, _ = client.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			_, _ = io.Copy(client, server)
			_ = client.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// The platform is reached through the proxy of the configuration, or of the environment,
// or directly; names are the proxy's to resolve.
func TestTunnel(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	defer server.Close()
	p := &proxy{to: server.Listener.Addr().String()}
	front := httptest.NewServer(p)
	defer front.Close()
	secure := httptest.NewTLSServer(p)
	defer secure.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	defer refusing.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	names := make(chan string, 1)
	t.Setenv("HTTPS_PROXY", front.URL)
	t.Setenv("HTTP_PROXY", "")
	t.Setenv("NO_PROXY", "direct.example")
	host := func(rawURL string) string { u, _ := url.Parse(rawURL); return u.Host }
	for name, tc := range map[string]struct {
		proxy, scheme, server string
		asked                 []string // of the proxy
		err                   string   // "" for an answer
	}{
		"named":                   {"http://gateway:secret@" + host(front.URL), "https", "platform.test:443", []string{"CONNECT platform.test:443 Basic Z2F0ZXdheTpzZWNyZXQ="}, ""},
		"named, not encrypted":    {front.URL, "http", "platform.test:80", []string{"CONNECT platform.test:80 "}, ""},
		"of the environment":      {"", "https", "platform.test:443", []string{"CONNECT platform.test:443 "}, ""},
		"none for http":           {"", "http", host(server.URL), nil, ""},
		"none of NO_PROXY":        {"", "https", "direct.example:443", nil, "no such host"},
		"SOCKS":                   {"socks5://" + socksServer(t, p.to, names), "https", "platform.test:443", nil, ""},
		"a certificate of nobody": {secure.URL, "https", "platform.test:443", nil, "certificate"},
		"refused":                 {strings.Replace(refusing.URL, "//", "//gateway:secret@", 1), "https", "platform.test:443", nil, "CONNECT failed with status 407 Proxy Authentication Required"},
		"mute":                    {"http://" + mute.Addr().String(), "https", "platform.test:443", nil, "in time"},
		"not a proxy":             {"ftp://proxy.example", "https", "platform.test:443", nil, "must be an http, https or socks5 URL"},
	} {
		t.Run(name, func(t *testing.T) {
			patience := time.Minute
			if name == "mute" {
				patience = 50 * time.Millisecond
			}
			direct := func(ctx context.Context, network, address string) (net.Conn, error) {
				if strings.HasSuffix(address, ".example:443") {
					return nil, errors.New("no such host")
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			}
			dial, err := Tunnel(tc.proxy, tc.scheme, patience, direct)
			if err == nil {
				err = ask(t.Context(), dial, tc.server)
			}
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%v, want %q", err, tc.err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%v has the password", err)
			}
			if timeout, ok := errors.AsType[net.Error](err); name == "mute" && (!ok || !timeout.Timeout()) {
				t.Errorf("%v is no timeout", err)
			}
			if diff := cmp.Diff(tc.asked, p.take()); diff != "" {
				t.Errorf("the proxy was asked (-want +got):\n%s", diff)
			}
			if name == "SOCKS" {
				if got := <-names; got != "platform.test" {
					t.Errorf("the proxy was asked for %q", got)
				}
			}
		})
	}
}

// ask sends a request on a connection, and checks that the answer is the server's.
func ask(ctx context.Context, dial Dial, server string) error {
	conn, err := dial(ctx, "tcp", server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, isSocket := conn.(syscall.Conn); !isSocket {
		return fmt.Errorf("a %T has no socket to look at", conn)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: tunnelled\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(answer), "tunnelled") {
		return errors.Join(err, errors.New("not the server's answer: "+string(answer)))
	}
	return nil
}

func TestCheckProxy(t *testing.T) {
	for address, want := range map[string]bool{
		"http://proxy:3128": true, "https://a:b@proxy.example/": true, "socks5h://proxy:1080": true,
		"": false, "proxy:3128": false, "http://": false, "http://proxy/path": false, "http://proxy?x": false, "ftp://proxy": false, "http://a:secret@[": false,
	} {
		err := CheckProxy(address)
		if (err == nil) != want || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
