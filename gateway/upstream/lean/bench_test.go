//go:build unix

package lean_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/upstream/lean"
)

// BenchmarkRoundTrip shows what a create costs with each client, of which a part is
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
	payload := bytes.Repeat([]byte("x"), 600)
	ln := &lean.Transport{DialContext: dial, ResponseHeaderTimeout: minute, MaxIdle: 256, IdleTimeout: minute}
	defer ln.CloseIdleConnections()
	st := &http.Transport{DialContext: dial, DisableCompression: true, ResponseHeaderTimeout: minute, MaxIdleConnsPerHost: 256}
	defer st.CloseIdleConnections()
	for name, rt := range map[string]http.RoundTripper{"client=lean": ln, "client=standard": st} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			begin := cpu(b)
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://platform.test/v2/pods", bytes.NewReader(payload))
					if err != nil {
						b.Error(err)
						return
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
		})
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
