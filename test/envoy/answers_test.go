package envoy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/world"
)

// Answers stream: each event passes while the platform is still writing. The
// gateway is needed for the head only; when it goes, streams go on.
func TestStreamsAreNotHeld(t *testing.T) {
	next := make(chan string)
	upstream := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		rw.Header().Set("X-Secret", r.Header.Get("Authorization"))
		_ = http.NewResponseController(rw).Flush()
		for text := range next {
			_, _ = fmt.Fprintf(rw, "data: %s\n\n", text)
			_ = http.NewResponseController(rw).Flush()
		}
	}))
	t.Cleanup(upstream.Close)
	w := open(t, to(upstream.URL))
	conn := world.Dial(t, w.addr)
	if _, err := io.WriteString(conn, request("GET", "/v2/pods/p1/logs", "key_research", "", "Last-Event-ID: 7")); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil) // before anything is written
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Secret") != "" {
		t.Errorf("head = %d %v", res.StatusCode, res.Header)
	}
	lines := bufio.NewReader(res.Body)
	for i := range 5 {
		if i == 3 {
			w.door.Stop()
		}
		next <- fmt.Sprint(i)
		line, err := lines.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d = %q, %v", i, line, err)
		}
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	close(next)
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("after the last event: %q, %v", rest, err)
	}
}

// Odd answers of the platform, which the emulator does not give.
func TestOddAnswers(t *testing.T) {
	auth := "Bearer pk-acme-" + canary
	for _, tc := range []struct {
		name   string
		answer func(rw http.ResponseWriter)
		status int
		size   int
	}{
		{"large success", func(rw http.ResponseWriter) {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(rw, `{"pods":["`+strings.Repeat("x", 4<<20)+`"]}`)
		}, 200, 4<<20 + 13},
		{"large error", func(rw http.ResponseWriter) {
			rw.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(rw, strings.Repeat(auth, 100_000))
		}, 500, -1},
		{"error with a body of the buffer's size", func(rw http.ResponseWriter) {
			rw.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(rw, strings.Repeat("x", 131072))
		}, 500, -1},
		{"error with a body a byte larger", func(rw http.ResponseWriter) {
			rw.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(rw, strings.Repeat("x", 131073))
		}, 500, -1},
		{"error whose body never ends", func(rw http.ResponseWriter) {
			rw.WriteHeader(http.StatusInternalServerError)
			for {
				if _, err := io.WriteString(rw, strings.Repeat(auth, 1000)); err != nil {
					return
				}
			}
		}, 500, -1},
		{"error that repeats the key", func(rw http.ResponseWriter) {
			rw.Header().Set("X-Echo", auth)
			http.Error(rw, auth, http.StatusBadRequest)
		}, 400, -1},
		{"error without a body", func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusConflict) }, 409, -1},
		{"redirect", func(rw http.ResponseWriter) {
			rw.Header().Set("Location", "http://127.0.0.1:1/?key="+auth)
			rw.WriteHeader(http.StatusFound)
		}, 502, -1},
		{"not modified", func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusNotModified) }, 502, -1},
		{"no content", func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusNoContent) }, 204, 0},
		{"early hints", func(rw http.ResponseWriter) {
			rw.Header().Set("Link", "</x>; rel=preload")
			rw.WriteHeader(http.StatusEarlyHints)
			rw.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(rw, `{}`)
		}, 200, 2},
		{"trailers", func(rw http.ResponseWriter) {
			rw.Header().Set("Content-Type", "application/json")
			rw.Header().Set("Trailer", "X-Echo")
			_, _ = io.WriteString(rw, `{}`)
			rw.Header().Set("X-Echo", auth)
		}, 200, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { tc.answer(rw) }))
			t.Cleanup(upstream.Close)
			w := open(t, to(upstream.URL))
			a := w.send(t, request("GET", "/v2/pods/p1", "key_research", ""))
			if a.Status != tc.status || tc.size >= 0 && len(a.Body) != tc.size {
				t.Errorf("answer = %d with %d bytes, want %d with %d: %.300s", a.Status, len(a.Body), tc.status, tc.size, a.Body)
			}
			if strings.Contains(fmt.Sprint(a), canary) {
				t.Errorf("the platform key reached the caller: %.500v", a)
			}
		})
	}
	t.Run("too slow", func(t *testing.T) {
		stop := make(chan struct{})
		upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		}))
		t.Cleanup(upstream.Close)
		t.Cleanup(func() { close(stop) })
		w := open(t, to(upstream.URL), shaped(func(b *bootstrap) {
			b.routes()[1].(map[string]any)["route"].(map[string]any)["timeout"] = "0.2s"
		}))
		a := w.send(t, request("GET", "/v2/pods", "key_research", ""))
		checkAnswer(t, behaviour{status: 504, want: []string{`"status":504`}, header: limits}, a)
	})
	t.Run("not there", func(t *testing.T) {
		upstream := httptest.NewServer(http.NotFoundHandler())
		upstream.Close()
		w := open(t, to(upstream.URL))
		a := w.send(t, request("GET", "/v2/pods", "key_research", ""))
		checkAnswer(t, behaviour{status: 502, want: []string{`"status":502`}, header: limits}, a)
	})
}

// The answer to a create may be larger than Envoy's buffer.
func TestLargeAnswersSeenWhole(t *testing.T) {
	w := open(t, func(w *way) {
		target, err := url.Parse(w.platform.URL)
		if err != nil {
			t.Fatal(err)
		}
		upstream := httptest.NewServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ModifyResponse: func(res *http.Response) error {
				if res.StatusCode == http.StatusCreated {
					spaces := strings.Repeat(" ", 300<<10)
					res.Body = struct {
						io.Reader
						io.Closer
					}{io.MultiReader(strings.NewReader(spaces), res.Body), res.Body}
					res.ContentLength = -1
					res.Header.Del("Content-Length")
				}
				return nil
			},
		})
		t.Cleanup(upstream.Close)
		w.upstream = upstream.URL
	})
	a := w.send(t, request("POST", "/v2/pods", "key_research", pod4090))
	if a.Status != http.StatusCreated || len(a.Body) < 300<<10 || !strings.HasPrefix(strings.TrimSpace(a.Body), `{"`) {
		t.Errorf("answer = %d with %d bytes, want 201 with more than 300 KiB: %.300s", a.Status, len(a.Body), strings.TrimSpace(a.Body))
	}
}
