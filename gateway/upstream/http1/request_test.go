package http1_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/upstream/http1"
)

// Bodies reach the server as they are, however long.
func TestRequestBodies(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = fmt.Fprintf(w, "%s %d of %d %q", r.Method, n, r.ContentLength, r.TransferEncoding)
	}))
	defer s.Close()
	d := &dialer{addr: s.Listener.Addr().String()}
	for client, rt := range clients(t, d) {
		for _, size := range []int{0, 1, 4000, 5000, 20 << 10, 3 << 20} {
			for _, length := range []int{size, -1} {
				if size == 0 && length == -1 {
					continue
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://platform.test/", io.NopCloser(strings.NewReader(strings.Repeat("x", size))))
				if err != nil {
					t.Fatal(err)
				}
				req.ContentLength = int64(length)
				if size == 0 {
					req.Body = http.NoBody
				}
				res, err := rt.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				coding := "[]"
				if length < 0 {
					coding = `["chunked"]`
				}
				if want := fmt.Sprintf("PUT %d of %d %s", size, length, coding); string(got) != want || err != nil {
					t.Errorf("%s: %q, %v; want %q", client, got, err, want)
				}
			}
		}
	}
}

// A body that breaks off is never taken for a whole one.
func TestRequestBodiesThatFail(t *testing.T) {
	why := errors.New("the caller broke off")
	for name, tc := range map[string]struct {
		length int64
		unsent bool
	}{
		"short": {100, true}, "long": {1 << 20, false}, "of unknown length": {-1, false},
	} {
		t.Run(name, func(t *testing.T) {
			whole := make(chan bool, 1)
			d := server(t, func(_ int64, p *peer) {
				_, ok := p.request()
				whole <- ok
			})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://platform.test/",
				io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 50)), failing{why})))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = tc.length
			res, err := newLean(t, d).RoundTrip(req)
			if err == nil {
				_ = res.Body.Close()
			}
			if !errors.Is(err, why) || tc.unsent && !errors.Is(err, http1.ErrUnsent) {
				t.Errorf("err = %v, want %v, unsent: %t", err, why, tc.unsent)
			}
			if tc.unsent {
				if got := d.count.Load(); got != 0 {
					t.Errorf("%d connections, want none", got)
				}
			} else if <-whole {
				t.Error("the server took it for a whole request")
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A request that cannot be written unchanged is not written.
func TestRequestsAreChecked(t *testing.T) {
	for name, change := range map[string]func(r *http.Request){
		"a line end in a value":  func(r *http.Request) { r.Header["X"] = []string{"a\r\nY: b"} },
		"a line end in a name":   func(r *http.Request) { r.Header["X\r\nY"] = []string{"a"} },
		"a space in the method":  func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\n" },
		"another scheme":         func(r *http.Request) { r.URL.Scheme = "ftp" },
		"no host":                func(r *http.Request) { r.URL.Host = "" },
		"an upgrade":             func(r *http.Request) { r.Header.Set("Upgrade", "websocket") },
		"a line end in the path": func(r *http.Request) { r.URL.Opaque = "/a\r\nX: y" },
	} {
		d := server(t, func(_ int64, p *peer) {
			if _, ok := p.request(); ok {
				t.Errorf("%s: it was sent", name)
			}
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://platform.test/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		res, err := newLean(t, d).RoundTrip(req)
		if err == nil {
			_ = res.Body.Close()
		}
		if !errors.Is(err, http1.ErrUnsent) {
			t.Errorf("%s: err = %v, want ErrUnsent", name, err)
		}
	}
}
