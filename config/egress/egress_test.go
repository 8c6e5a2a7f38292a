package egress

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// proxy is one that takes every name for the address of one server.
type proxy struct {
	to string

	mu    sync.Mutex // guards asked
	asked []string
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusNoContent) // of a request that is not encrypted
		return
	}
	server, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = server.Close() }()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var group sync.WaitGroup
	group.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
	_ = client.Close()
	group.Wait()
}

// take returns the requests to the proxy since the last take.
func (p *proxy) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked
	p.asked = nil
	return asked
}

// Servers outside are called through the proxies of the environment, with their
// credentials; those of NO_PROXY and of loopback are not. The guard judges each address
// that is dialled, and any in a URL.
func TestProxies(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	defer server.Close()
	p := &proxy{to: server.Listener.Addr().String()}
	front := httptest.NewServer(p)
	defer front.Close()
	t.Setenv("HTTPS_PROXY", "http://gateway:secret@"+front.Listener.Addr().String())
	t.Setenv("HTTP_PROXY", front.URL)
	t.Setenv("NO_PROXY", "direct.example")
	errGuarded := errors.New("guarded")
	private := func(_, address string, _ syscall.RawConn) error {
		if strings.HasPrefix(address, "10.") || strings.HasPrefix(address, "127.") || address == "[fd00::1]:443" {
			return errGuarded
		}
		return nil
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	const credentials = " Basic Z2F0ZXdheTpzZWNyZXQ="
	for _, tc := range []struct {
		url   string
		guard Guard
		want  string   // the answer, "" where there is an error
		asked []string // of the proxy
		err   error    // one of its, nil for any
	}{
		{"https://example.com/", private, "example.com", []string{"CONNECT example.com:443" + credentials}, nil},
		{"http://example.com/", private, "", []string{"GET example.com "}, nil},
		{"https://direct.example/", nil, "", nil, nil},
		{server.URL, nil, p.to, nil, nil},
		{server.URL, private, "", nil, errGuarded},
		{"https://10.0.0.1/", private, "", nil, errGuarded},
		{"https://[fd00::1]/", private, "", nil, errGuarded},
		{"https://[::ffff:10.0.0.1]/", private, "", nil, errGuarded},
	} {
		t.Run(tc.url, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tc.url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			client := NewClient(tc.guard, time.Second)
			sent := client.Transport.(*transport)
			sent.direct.TLSClientConfig, sent.proxied.TLSClientConfig = &tls.Config{RootCAs: roots}, &tls.Config{RootCAs: roots}
			res, err := client.Do(req)
			got := ""
			if err == nil {
				text, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				got = string(text)
			}
			if got != tc.want || tc.err != nil && !errors.Is(err, tc.err) {
				t.Errorf("answer %q, %v; want %q, %v", got, err, tc.want, tc.err)
			}
			if diff := cmp.Diff(tc.asked, p.take()); diff != "" {
				t.Errorf("the proxy was asked (-want +got):\n%s", diff)
			}
		})
	}
}
