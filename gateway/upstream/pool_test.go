package upstream_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// Both clients keep connections, each for one credential alone, also to servers that
// speak HTTP/2.
func TestConnectionsCarryOneCredential(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){
		"plain":        (*httptest.Server).Start,
		"both":         func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
		"HTTP/2 only":  func(s *httptest.Server) { s.EnableHTTP2 = true; onlyHTTP2(s); s.StartTLS() },
		"HTTP/1.1 TLS": (*httptest.Server).StartTLS,
	} {
		for _, by := range transports() {
			t.Run(name+" "+string(by), func(t *testing.T) {
				seen := converse(t, by, start)
				if len(seen) != 2 {
					t.Errorf("%d connections, want one for each organisation", len(seen))
				}
				for _, credentials := range seen {
					if len(credentials) != 1 {
						t.Errorf("one connection carried %d credentials", len(credentials))
					}
				}
			})
		}
	}
}

// converse calls a server for two organisations in turn, and returns what credentials
// each of its connections carried.
func converse(t *testing.T, by transport, start func(*httptest.Server)) map[net.Conn]map[string]bool {
	t.Helper()
	type key struct{}
	var mu sync.Mutex // guards seen
	seen := make(map[net.Conn]map[string]bool)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(key{}).(net.Conn)
		mu.Lock()
		defer mu.Unlock()
		if seen[conn] == nil {
			seen[conn] = make(map[string]bool)
		}
		seen[conn][r.Header.Get("Authorization")] = true
	}))
	s.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, key{}, conn)
	}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	start(s)
	defer s.Close()
	c, err := upstream.New(upstream.Config{BaseURL: s.URL, Timeout: time.Minute, ConnectTimeout: time.Minute, MaxIdle: 4},
		map[string]upstream.Credential{"acme": upstream.NewCredential(secret), "globex": upstream.NewCredential("pk-other")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if by == standard {
		c.ByStandard()
	}
	for range 4 {
		for _, org := range []string{"acme", "globex"} {
			res, err := c.Do(t.Context(), upstream.Request{Org: org, Method: http.MethodGet, Target: "/v2/pods", Header: http.Header{}})
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return seen
}
