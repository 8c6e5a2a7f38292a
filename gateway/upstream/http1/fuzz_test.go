//go:build unix

package http1_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/upstream/http1"
)

// pair returns the two ends of a connection that needs no port.
func pair() (client, server net.Conn, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		if ends[i], err = net.FileConn(f); err != nil {
			return nil, nil, err
		}
		_ = f.Close()
	}
	return ends[0], ends[1], nil
}

// replaying returns a function that dials a server which answers one request with
// answer, and closes the connection.
func replaying(answer []byte) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server, err := pair()
		if err != nil {
			return nil, err
		}
		go func() {
			defer func() { _ = server.Close() }()
			if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
				_, _ = server.Write(answer)
			}
		}()
		return client, nil
	}
}

// outcome is what became of a request.
type outcome struct {
	Status int
	Header http.Header
	Length int64
	Coding []string
	Body   string
	Behind http.Header // trailers
	Broken bool        // the body
}

func ask(rt http.RoundTripper, method string) (outcome, error) {
	req, err := http.NewRequest(method, "http://platform.test/", http.NoBody)
	if err != nil {
		return outcome{}, err
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		return outcome{}, err
	}
	b, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	return outcome{res.StatusCode, res.Header, res.ContentLength, res.TransferEncoding, string(b), res.Trailer, err != nil}, nil
}

// FuzzAnswer holds the client against http.Transport: it reads the same, or
// refuses as malformed; and the rest of one answer never becomes another.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 304 Not Modified\r\nTrailer: X\r\nPragma: no-cache\r\nConnection: close\r\n\r\n",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, answer []byte, head bool) {
		answer = answer[:min(len(answer), 128<<10)] // what the buffers of a connection hold
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}
		l := &http1.Transport{DialContext: replaying(answer), MaxIdle: 1, IdleTimeout: minute}
		defer l.CloseIdleConnections()
		got, err := ask(l, method)
		if again, err2 := ask(l, method); cmp.Diff(got, again) != "" || (err == nil) != (err2 == nil) {
			t.Errorf("the second answer differs: %v, then %v\n%s", err, err2, cmp.Diff(got, again))
		}
		if errors.Is(err, http1.ErrMalformed) {
			return
		}
		s := &http.Transport{DialContext: replaying(answer), DisableCompression: true, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}
		want, serr := ask(s, method)
		if (err == nil) != (serr == nil) {
			t.Fatalf("err = %v, http.Transport has %v", err, serr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-http.Transport +lean\n%s", diff)
		}
	})
}
