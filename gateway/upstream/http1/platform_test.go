package http1_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
)

// platformVariable makes the test binary the platform of a benchmark, so that the
// CPU time of the process is the client's alone.
const platformVariable = "LEAN_BENCH_PLATFORM"

// servePlatform answers over TLS until its input ends: GET /N with N bytes, POST with
// 400. Of a connection, which may be of HTTP/2, each request whose number is a
// multiple of the query's per is the last.
func servePlatform() {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		size := 400
		if r.Method == http.MethodGet {
			size, _ = strconv.Atoi(r.URL.Path[1:])
		}
		asked, _ := r.Context().Value(counter{}).(*atomic.Int64)
		if per, _ := strconv.ParseInt(r.URL.RawQuery, 10, 64); per > 0 && asked.Add(1)%per == 0 {
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = w.Write(content[:size])
	}))
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, counter{}, new(atomic.Int64))
	}
	s.EnableHTTP2 = true
	s.StartTLS()
	_, _ = fmt.Fprintln(os.Stdout, s.Listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

type counter struct{}

var content = bytes.Repeat([]byte("x"), 1<<20)
