package wire_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// TestLeft closes connections that nobody reads, in the clear and encrypted, with bytes on
// them that wait to be read.
func TestLeft(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says that a connection was closed to one who has not read it")
	}
	for name, start := range map[string]func(*httptest.Server){"http": (*httptest.Server).Start, "https": (*httptest.Server).StartTLS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served, over := make(chan context.Context), make(chan struct{})
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				served <- context.WithoutCancel(r.Context()) // the server has not noticed
				<-over
			}))
			s.Config.ConnContext = wire.ConnContext
			start(s)
			defer s.Close()
			defer close(over)
			client := s.Client()
			var conn net.Conn
			transport := client.Transport.(*http.Transport)
			transport.DialContext = func(ctx context.Context, network, addr string) (c net.Conn, err error) {
				conn, err = new(net.Dialer).DialContext(ctx, network, addr)
				return conn, err
			}
			go func() {
				req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL, http.NoBody)
				if err != nil {
					return
				}
				if res, err := client.Do(req); err == nil {
					_ = res.Body.Close()
				}
			}()
			ctx := <-served
			if wire.ClientGone(ctx) {
				t.Error("the caller waits, and is said to have left")
			}
			if _, err := conn.Write([]byte("more")); err != nil {
				t.Fatal(err)
			}
			if wire.ClientGone(ctx) {
				t.Error("the caller has sent more, and is said to have left")
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(10 * time.Second); !wire.ClientGone(ctx); {
				if time.Now().After(deadline) {
					t.Fatal("the caller has left, and is said to wait")
				}
				runtime.Gosched()
			}
		})
	}
	ended, end := context.WithCancel(t.Context())
	if wire.ClientGone(ended) {
		t.Error("a caller without a connection has left")
	}
	if end(); !wire.ClientGone(ended) {
		t.Error("a context has ended, and its caller waits")
	}
}
