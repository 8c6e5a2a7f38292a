package wire_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// typical is a request as a command-line client sends it, with a pod as body.
const typical = "POST /v2/pods HTTP/1.1\r\nHost: gateway.example.test\r\nUser-Agent: curl/8.14.1\r\nAccept: application/json\r\n" +
	"Authorization: Bearer tg_ABCDEFGHIJKLMNOPQRSTUVWXYZ234567ABCDEFGHIJKLMNOPQRSTUVWXYZ\r\nContent-Type: application/json\r\n" +
	"X-Request-Id: 01JD7Z9K3V5T8W2Q4R6Y0A1B2C\r\nContent-Length: 300\r\n\r\n"

func BenchmarkScan(b *testing.B) {
	for name, stream := range map[string]string{
		"length": typical + strings.Repeat("x", 300),
		"chunks": strings.Replace(typical, "Content-Length: 300", "Transfer-Encoding: chunked", 1) + "12c\r\n" + strings.Repeat("x", 300) + "\r\n0\r\n\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(stream)))
			s := wire.NewScanner()
			for data := []byte(stream); b.Loop(); {
				if n, ended, fault := s.Scan(data); n != len(data) || !ended || fault != nil {
					b.Fatalf("scanned %d of %d bytes: %v", n, len(data), fault)
				}
			}
		})
	}
}

// BenchmarkServe is a round trip over loopback with a handler that reads the
// body, with and without judging.
func BenchmarkServe(b *testing.B) {
	for _, judged := range []bool{false, true} {
		name := map[bool]string{false: "bare", true: "judged"}[judged]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			addr := l.Addr().String()
			if judged {
				l = wire.NewListener(l, nil)
			}
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusNoContent)
			})}
			done := make(chan error, 1)
			go func() { done <- server.Serve(l) }()
			b.Cleanup(func() {
				_ = server.Close()
				if err := <-done; !errors.Is(err, http.ErrServerClosed) {
					b.Error(err)
				}
			})
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			request, answer := []byte(typical+strings.Repeat("x", 300)), make([]byte, 1<<10)
			for b.Loop() {
				if _, err := conn.Write(request); err != nil {
					b.Fatal(err)
				}
				if n, err := conn.Read(answer); err != nil || !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 204") {
					b.Fatalf("answer %q: %v", answer[:n], err)
				}
			}
		})
	}
}
