//go:build unix

package http1_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/upstream/http1"
)

// platform starts a platform, whose certificate is of the pool.
func platform(b *testing.B) (addr string, roots *x509.CertPool) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), platformVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	addr, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	same := httptest.NewTLSServer(http.NotFoundHandler()) // all of them have one certificate
	defer same.Close()
	roots = x509.NewCertPool()
	roots.AddCert(same.Certificate())
	return strings.TrimSpace(addr), roots
}

// BenchmarkTLS shows the gateway's cost of a call over TLS with each client, of 32
// calls at a time: cpu-ns/op is the CPU time of the client, and dials/op how often a
// connection was made. The platform ends connections after so many calls.
func BenchmarkTLS(b *testing.B) {
	addr, roots := platform(b)
	type maker func(d *dialer, cfg *tls.Config) http.RoundTripper
	newStandard := func(http2 bool) maker {
		return func(d *dialer, cfg *tls.Config) http.RoundTripper {
			return &http.Transport{
				DialContext: d.dial, TLSClientConfig: cfg, DisableCompression: true, ResponseHeaderTimeout: minute, ForceAttemptHTTP2: http2,
				MaxIdleConnsPerHost: 256, WriteBufferSize: 8 << 10, ReadBufferSize: 8 << 10,
			}
		}
	}
	for _, client := range []struct {
		name string
		make maker
	}{
		{"standard-2", newStandard(true)},
		{"standard-1.1", newStandard(false)},
		{"lean", func(d *dialer, cfg *tls.Config) http.RoundTripper {
			return &http1.Transport{DialContext: d.dial, TLSClientConfig: cfg, ResponseHeaderTimeout: minute, MaxIdle: 256, IdleTimeout: minute}
		}},
	} {
		for _, kind := range []struct{ name, method, target string }{
			{"read", http.MethodGet, "/1000"},
			{"create", http.MethodPost, "/"},
			{"list", http.MethodGet, "/1048576"},
			{"read-10", http.MethodGet, "/1000?10"},
			{"read-1", http.MethodGet, "/1000?1"},
		} {
			for _, resumed := range []string{"no", "yes"} {
				b.Run(fmt.Sprintf("kind=%s/client=%s/resumed=%s", kind.name, client.name, resumed), func(b *testing.B) {
					cfg := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
					if resumed == "yes" {
						cfg.ClientSessionCache = tls.NewLRUClientSessionCache(0)
					}
					d := &dialer{addr: addr}
					rt := client.make(d, cfg)
					defer rt.(interface{ CloseIdleConnections() }).CloseIdleConnections()
					load(b, rt, kind.method, "https://example.com"+kind.target)
					b.ReportMetric(float64(d.count.Load())/float64(b.N), "dials/op")
				})
			}
		}
	}
}

// load sends requests with 16 goroutines for each processor.
func load(b *testing.B, rt http.RoundTripper, method, url string) {
	b.Helper()
	payload := content[:600]
	b.ReportAllocs()
	begin := cpu(b)
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			req, err := http.NewRequestWithContext(b.Context(), method, url, http.NoBody)
			if err != nil {
				b.Error(err)
				return
			}
			if method == http.MethodPost {
				req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(payload)), int64(len(payload))
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(payload)), nil }
			}
			req.Header.Set("Content-Type", "application/json")
			res, err := rt.RoundTrip(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	})
	b.ReportMetric(float64(cpu(b)-begin)/float64(b.N), "cpu-ns/op")
}

// BenchmarkRoundTrip shows the cost of a create with each client, of which a part is
// the server's: cpu-ns/op is that of the process.
func BenchmarkRoundTrip(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	answer := []byte("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n" + strings.Repeat("x", 400))
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				in, body := make([]byte, 4<<10), []byte("\r\n\r\n")
				for {
					n, err := c.Read(in)
					if err != nil || !bytes.Contains(in[:n], body) {
						return
					}
					_, _ = c.Write(answer)
				}
			}()
		}
	}()
	dial := (&dialer{addr: l.Addr().String()}).dial
	ln := &http1.Transport{DialContext: dial, ResponseHeaderTimeout: minute, MaxIdle: 256, IdleTimeout: minute}
	defer ln.CloseIdleConnections()
	st := &http.Transport{DialContext: dial, DisableCompression: true, ResponseHeaderTimeout: minute, MaxIdleConnsPerHost: 256}
	defer st.CloseIdleConnections()
	for name, rt := range map[string]http.RoundTripper{"client=lean": ln, "client=standard": st} {
		b.Run(name, func(b *testing.B) { load(b, rt, http.MethodPost, "http://platform.test/v2/pods") })
	}
}

// cpu is the time that the process has used so far, in nanoseconds.
func cpu(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
