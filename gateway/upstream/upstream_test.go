package upstream_test

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// TestMain makes the certificate of httptest the system's authority, before anything
// asks for those.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "upstream")
	if err != nil {
		panic(err)
	}
	s := httptest.NewTLSServer(http.NotFoundHandler())
	file := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		panic(err)
	}
	s.Close()
	if err := os.Setenv("SSL_CERT_FILE", file); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

const secret = "pk-very-secret"

// both runs a test with each client, which gives up after a minute, that is, if the
// test wants an answer, never.
func both(t *testing.T, base string, test func(t *testing.T, c *upstream.Client)) {
	t.Helper()
	for _, by := range transports() {
		t.Run(string(by), func(t *testing.T) { test(t, newClient(t, by, time.Minute, base)) })
	}
}

func newClient(t *testing.T, by transport, timeout time.Duration, base string) *upstream.Client {
	t.Helper()
	c, err := upstream.New(upstream.Config{BaseURL: base, Timeout: timeout, ConnectTimeout: time.Minute, MaxIdle: 4},
		map[string]upstream.Credential{"acme": upstream.NewCredential(secret)})
	if err != nil {
		t.Fatal(err)
	}
	if by == standard {
		c.ByStandard()
	}
	t.Cleanup(c.Close)
	return c
}

func TestDoSendsTheTargetAsBuiltWithTheCredential(t *testing.T) {
	var got *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer s.Close()
	both(t, s.URL, func(t *testing.T, c *upstream.Client) {
		header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer of-the-caller"}}
		res, err := c.Do(t.Context(), upstream.Request{
			Org: "acme", Method: http.MethodPost, Target: "/v2/catalog/gpus/NVIDIA%20L4?a=1,2", Header: header, Body: []byte(`{}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if got.RequestURI != "/v2/catalog/gpus/NVIDIA%20L4?a=1,2" {
			t.Errorf("target = %q", got.RequestURI)
		}
		if auth := got.Header.Values("Authorization"); len(auth) != 1 || auth[0] != "Bearer "+secret {
			t.Errorf("Authorization = %q, want the organisation's key alone", auth)
		}
		if string(body) != "{}" || got.ContentLength != 2 {
			t.Errorf("body = %q with length %d", body, got.ContentLength)
		}
		if header.Get("Authorization") != "Bearer of-the-caller" {
			t.Error("Do changed the caller's header map")
		}
	})
}

// The platform's answers show the organisation's key neither in their header nor in their body.
func TestDoMasksTheCredential(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	}))
	defer s.Close()
	both(t, s.URL, func(t *testing.T, c *upstream.Client) {
		res, err := c.Do(t.Context(), upstream.Request{Org: "acme", Method: http.MethodGet, Target: "/v2/pods", Header: http.Header{}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if want := "Bearer [redacted]****"; res.Header.Get("X-Echo") != want || string(body) != want || err != nil {
			t.Errorf("header %q, body %q, %v; want %q in both", res.Header.Get("X-Echo"), body, err, want)
		}
	})
}

func TestDoNeverFollowsARedirect(t *testing.T) {
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer evil.Close()
	s := httptest.NewServer(http.RedirectHandler(evil.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	both(t, s.URL, func(t *testing.T, c *upstream.Client) {
		res, err := c.Do(t.Context(), upstream.Request{Org: "acme", Method: http.MethodGet, Target: "/v2/pods", Header: http.Header{}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusTemporaryRedirect {
			t.Errorf("status = %d, want the redirect itself", res.StatusCode)
		}
	})
}

func TestDoTellsWhatWentWrong(t *testing.T) {
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	const closed = "http://127.0.0.1:1" // a port that is given to nobody
	for name, tc := range map[string]struct {
		base, org string
		want      error
	}{
		"nobody listens":  {closed, "acme", upstream.ErrUnreachable},
		"no answer":       {slow.URL, "acme", upstream.ErrTimeout},
		"no credential":   {slow.URL, "globex", upstream.ErrCredential},
		"no organisation": {slow.URL, "", upstream.ErrCredential},
	} {
		for _, by := range transports() {
			timeout := time.Minute
			if errors.Is(tc.want, upstream.ErrTimeout) {
				timeout = 50 * time.Millisecond
			}
			res, err := newClient(t, by, timeout, tc.base).Do(t.Context(), upstream.Request{Org: tc.org, Method: http.MethodGet, Target: "/v2/pods", Header: http.Header{}})
			if err == nil {
				_ = res.Body.Close()
			}
			if !errors.Is(err, tc.want) {
				t.Errorf("%s, %s: err = %v, want %v", by, name, err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s, %s: the error holds the credential: %v", by, name, err)
			}
		}
	}
}

func TestNewRefusesWhatIsNotABareAddress(t *testing.T) {
	for _, base := range []string{"", "api.test", "ftp://api.test", "http://", "http://u:p@api.test", "http://api.test/v2", "http://api.test?x=1", "http://a b"} {
		if _, err := upstream.New(upstream.Config{BaseURL: base}, nil); err == nil {
			t.Errorf("New(%q): err = nil", base)
		}
	}
}

func TestACredentialIsNeverPrinted(t *testing.T) {
	c := upstream.NewCredential(secret)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "credential", c, "in", struct{ C upstream.Credential }{c})
	encoded, err := json.Marshal(map[string]any{"c": c})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s %q", c, c, c, c, c), log.String(), string(encoded)} {
		if strings.Contains(s, secret) {
			t.Errorf("printed: %s", s)
		}
	}
	if got := string(c.Scrub([]byte("before " + secret + " after"))); got != "before [redacted]**** after" {
		t.Errorf("Scrub = %q", got)
	}
	if got := c.Reveal(); got != secret {
		t.Errorf("Reveal = %q", got)
	}
}

// TestBodiesEnd: a body that breaks off or stalls ends with an error of this
// package.
func TestBodiesEnd(t *testing.T) {
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", r.URL.Query().Get("length"))
		_, _ = io.WriteString(w, "{}")
		if r.URL.Path == "/stalls" {
			_ = http.NewResponseController(w).Flush()
			<-over
		}
	}))
	defer s.Close()
	defer close(over)
	for target, want := range map[string]error{
		"/short?length=1000": upstream.ErrUnreachable, "/stalls?length=1000": upstream.ErrTimeout, "/whole?length=2": nil,
	} {
		for _, by := range transports() {
			timeout := time.Minute
			if errors.Is(want, upstream.ErrTimeout) {
				timeout = 3 * time.Second // long enough for what does come
			}
			res, err := newClient(t, by, timeout, s.URL).Do(t.Context(), upstream.Request{Org: "acme", Method: http.MethodGet, Target: target, Header: http.Header{}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if string(got) != "{}" || !errors.Is(err, want) {
				t.Errorf("%s, %s: read %q, %v; want {} and %v", by, target, got, err, want)
			}
		}
	}
}

// transport is a client that requests are sent by.
type transport string

const (
	lean     transport = "lean"
	standard transport = "standard"
)

func transports() []transport { return []transport{standard, lean} }

// A request that found no connection was never sent; one whose connection broke
// may have been.
func TestUnsent(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer broken.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for base, want := range map[string]bool{broken.URL: false, closed.URL: true} {
		for _, by := range transports() {
			res, err := newClient(t, by, time.Minute, base).Do(t.Context(), upstream.Request{Org: "acme", Method: http.MethodPost, Target: "/v2/pods", Header: http.Header{}, Body: []byte(`{}`)})
			if err == nil {
				_ = res.Body.Close()
			}
			if got := errors.Is(err, upstream.ErrUnsent); !errors.Is(err, upstream.ErrUnreachable) || got != want {
				t.Errorf("%s: %v: unsent %v, want %v", by, err, got, want)
			}
		}
	}
}

// onlyHTTP2 makes a server speak nothing else.
func onlyHTTP2(s *httptest.Server) {
	s.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		c := s.TLS.Clone()
		c.GetConfigForClient, c.NextProtos = nil, []string{"h2"}
		if !slices.Contains(h.SupportedProtos, "h2") {
			c.NextProtos = []string{"h3"} // with h2, this server would do without a protocol
		}
		return c, nil
	}}
}

// A platform that speaks HTTP/2 only is called with each client; one that speaks
// both, as the client does.
func TestProtocols(t *testing.T) {
	for name, only := range map[string]bool{"both": false, "HTTP/2 only": true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprint(w, r.ProtoMajor, string(b))
		}))
		s.EnableHTTP2 = true
		if only {
			onlyHTTP2(s)
		}
		s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		s.StartTLS()
		defer s.Close()
		for _, by := range transports() {
			want := "2{}"
			if by == lean && !only {
				want = "1{}"
			}
			c := newClient(t, by, time.Minute, s.URL)
			for kind, r := range map[string]upstream.Request{
				"body": {Body: []byte("{}")}, "source": {Source: strings.NewReader("{}"), Length: 2}, "chunked": {Source: strings.NewReader("{}"), Length: -1},
			} {
				r.Org, r.Method, r.Target = "acme", http.MethodPost, "/v2/pods"
				res, err := c.Do(t.Context(), r)
				if err != nil {
					t.Fatalf("%s, %s, %s: %v", name, by, kind, err)
				}
				got, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if string(got) != want || err != nil {
					t.Errorf("%s, %s, %s: %q, %v; want %q", name, by, kind, got, err, want)
				}
			}
			c.Close()
		}
	}
}

// A platform that speaks HTTP/2 only may close other connections without a byte: in the handshake, whose call then goes by HTTP/2, or
// after the request, which fails, because the platform may have seen it. A platform that closes a connection now and then, and
// speaks both, is called by HTTP/1.1.
func TestHTTP2OnlyPlatformsThatClose(t *testing.T) {
	for _, tt := range []struct {
		name      string
		handshake bool // the platform closes in the handshake
		both      bool // the platform closes one connection alone
		fails     bool // the first call
		want      string
	}{
		{"in the handshake", true, false, false, "2"},
		{"after the request", false, false, true, "2"},
		{"once in the handshake", true, true, true, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var closes atomic.Int64
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor == 1 && !tt.both {
					panic(http.ErrAbortHandler)
				}
				_, _ = fmt.Fprint(w, r.ProtoMajor)
			}))
			s.EnableHTTP2 = true
			s.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
				c := s.TLS.Clone()
				c.GetConfigForClient, c.NextProtos = nil, []string{"h2", "http/1.1"}
				switch {
				case slices.Contains(h.SupportedProtos, "h2"):
				case tt.handshake && (!tt.both || closes.Add(1) == 1):
					_ = h.Conn.Close()
				case !tt.both:
					c.NextProtos = nil // the platform chooses no protocol
				}
				return c, nil
			}}
			s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			s.StartTLS()
			defer s.Close()
			c := newClient(t, lean, time.Minute, s.URL)
			defer c.Close()
			for i := range 3 {
				res, err := c.Do(t.Context(), upstream.Request{Org: "acme", Method: http.MethodPost, Target: "/v2/pods", Body: []byte("{}")})
				if fails := i == 0 && tt.fails; fails || err != nil {
					if fails != (err != nil) || err != nil && errors.Is(err, upstream.ErrUnsent) != tt.handshake {
						t.Errorf("call %d: %v, want a failure: %t", i, err, fails)
					}
					continue
				}
				got, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if string(got) != tt.want || err != nil {
					t.Errorf("call %d: HTTP/%s, %v, want HTTP/%s", i, got, err, tt.want)
				}
			}
		})
	}
}

// A platform that has nothing but suites in CBC mode is not called.
func TestOldSuitesAreNotSpoken(t *testing.T) {
	for suite, want := range map[uint16]bool{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: false, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		s.TLS = &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}}
		s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		s.StartTLS()
		defer s.Close()
		for _, by := range transports() {
			c := newClient(t, by, time.Minute, s.URL)
			res, err := c.Do(t.Context(), upstream.Request{Org: "acme", Method: http.MethodGet, Target: "/v2/pods"})
			if err == nil {
				_ = res.Body.Close()
			}
			if (err == nil) != want {
				t.Errorf("%s, %s: %v, want an answer: %v", by, tls.CipherSuiteName(suite), err, want)
			}
			c.Close()
		}
	}
}

// A platform that closes connections pays for one full handshake, and nothing is sent
// twice or lost.
func TestConnectionsThatEnd(t *testing.T) {
	var asked, full atomic.Int64
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if !r.TLS.DidResume {
			full.Add(1)
		}
		w.Header().Set("Connection", "close")
	}))
	defer s.Close()
	for _, by := range transports() {
		asked.Store(0)
		full.Store(0)
		c := newClient(t, by, time.Minute, s.URL)
		for range 5 {
			res, err := c.Do(t.Context(), upstream.Request{Org: "acme", Method: http.MethodPost, Target: "/v2/pods", Body: []byte("{}")})
			if err != nil {
				t.Fatalf("%s: %v", by, err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		if asked.Load() != 5 || full.Load() != 1 {
			t.Errorf("%s: asked %d times, %d full handshakes, want 5 and 1", by, asked.Load(), full.Load())
		}
	}
}

// Names of other scripts are called as DNS has them.
func TestInternationalNames(t *testing.T) {
	var host atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { host.Store(r.Host) }))
	defer s.Close()
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, by := range transports() {
		res, err := newClient(t, by, time.Minute, "http://plätform.localhost"+port).Do(t.Context(), upstream.Request{Org: "acme", Method: http.MethodGet, Target: "/v2/pods"})
		if err != nil {
			t.Fatalf("%s: %v", by, err)
		}
		_ = res.Body.Close()
		if want := "xn--pltform-6wa.localhost" + port; host.Load() != want {
			t.Errorf("%s: host %q, want %q", by, host.Load(), want)
		}
	}
}
