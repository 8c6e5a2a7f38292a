package parity

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// conversations is a platform that keeps the credentials it got on each connection.
type conversations struct {
	mu   sync.Mutex // guards seen
	seen map[net.Conn]map[string]bool
}

// before puts it in front of the door's own platform.
func (c *conversations) before(t *testing.T, d *door) {
	t.Helper()
	base, err := url.Parse(d.platform.URL)
	if err != nil {
		t.Fatal(err)
	}
	type key struct{}
	emulator := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(base) }}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(key{}).(net.Conn)
		c.mu.Lock()
		if c.seen[conn] == nil {
			c.seen[conn] = make(map[string]bool)
		}
		c.seen[conn][r.Header.Get("Authorization")] = true
		c.mu.Unlock()
		emulator.ServeHTTP(w, r)
	}))
	s.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context { return context.WithValue(ctx, key{}, conn) }
	s.Start()
	t.Cleanup(s.Close)
	d.upstream = s.URL
}

// A connection that was opened with the key of one organisation carries no call of
// another. In the Envoy door, it is v1's calls that the gateway makes itself.
func TestConnectionsArePooledByCredential(t *testing.T) {
	for name, dialects := range map[string][]string{"http": {"v2", "v1"}, "envoy": {"v1"}} {
		t.Run(name, func(t *testing.T) {
			c := &conversations{seen: make(map[net.Conn]map[string]bool)}
			d := openDoor(t, name, func(d *door) { c.before(t, d) })
			for range 3 {
				for _, dialect := range dialects {
					for _, key := range []string{"key_research", "key_globex"} {
						if a := d.ask(t, request("GET", "/"+dialect+"/pods", key, "")); a.Status != 200 {
							t.Fatalf("%s of %s: %d %s", dialect, key, a.Status, a.Body)
						}
					}
				}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			all := make(map[string]bool)
			for _, credentials := range c.seen {
				for credential := range credentials {
					all[credential] = true
				}
				if len(credentials) != 1 {
					t.Errorf("one connection carried %d credentials", len(credentials))
				}
			}
			if len(all) != 2 {
				t.Errorf("the platform saw %d credentials, want those of both organisations: the test proves nothing", len(all))
			}
		})
	}
}
