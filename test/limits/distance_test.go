package limits

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// TestDistantRedis puts a Redis at a distance: with default settings, calls at once
// and one after the other are counted over a constant round trip of up to 400 ms.
func TestDistantRedis(t *testing.T) {
	t.Parallel()
	for _, rtt := range []time.Duration{40 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond} {
		t.Run(rtt.String(), func(t *testing.T) {
			t.Parallel()
			eachMode(t, func(t *testing.T, mode string) {
				upstream := platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: credential}))
				file := configuration(upstream.URL, "{url: {env: REDIS_URL}}", mode, "a {day: 1000}")
				file = strings.Replace(file, ", timeout: 5s", ", failure: {read: closed}", 1)
				f := &fleet{client: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
				t.Cleanup(f.client.CloseIdleConnections)
				url, _ := serve(t, 0, file, "redis://"+distant(t, redistest.Start(t), rtt/2))
				f.gateways = []string{url}
				answers := make(chan answer)
				for range 6 {
					go func() { answers <- f.ask(t, 0, "a") }()
				}
				for range 6 {
					if a := <-answers; a.Status != http.StatusOK {
						t.Errorf("one of the first calls: %+v, want 200", a)
					}
				}
				for range 3 {
					if a := f.ask(t, 0, "a"); a.Status != http.StatusOK {
						t.Errorf("a later call: %+v, want 200", a)
					}
				}
			})
		})
	}
}

// distant returns the address of a way to addr that takes some time, both there and
// back.
func distant(t *testing.T, addr string, way time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr)
			if err != nil {
				_ = near.Close()
				continue
			}
			go carry(near, far, way)
			go carry(far, near, way)
		}
	}()
	return l.Addr().String()
}

// carry copies from one connection to the other, each piece a time after it came,
// and then closes both.
func carry(from, to net.Conn, way time.Duration) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			b := make([]byte, 16<<10)
			n, err := from.Read(b)
			pieces <- piece{b[:n], time.Now().Add(way)}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		<-time.After(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close()
	for range pieces {
	}
}

// TestReadinessFollowsCallers takes the Redis away: a gateway that refuses all reads is not ready,
// one whose failure policies let reads pass is, and says so.
func TestReadinessFollowsCallers(t *testing.T) {
	for _, tt := range []struct {
		failure      string
		status, call int
		says         string
	}{
		{"{read: local, write: closed}", http.StatusOK, http.StatusOK, "ready, but the store is down"},
		{"{read: local, write: local}", http.StatusOK, http.StatusOK, "ready, but the store is down"},
		{"{read: open, write: open}", http.StatusOK, http.StatusOK, "ready, but the store is down"},
		{"{read: closed, write: closed}", http.StatusServiceUnavailable, http.StatusServiceUnavailable, "no organisation can be served"},
	} {
		t.Run(tt.failure, func(t *testing.T) {
			upstream := platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: credential}))
			file := configuration(upstream.URL, "{embedded: true}", "exact", "a {day: 1000}")
			file = strings.Replace(file, ", timeout: 5s", ", failure: "+tt.failure, 1)
			store := miniredis.RunT(t)
			g := world.Gateway(t, world.Configuration(t, file, map[string]string{"ACME_KEY": credential}), gateway.Deps{Redis: world.Redis(t, store.Addr())})
			stop := world.Run(t, g)
			defer stop()
			world.Until(t, "the gateway is ready with its Redis", func() bool {
				status, body := readiness(t, g)
				return status == http.StatusOK && strings.Contains(body, `"ready"`)
			})
			store.Close()
			world.Until(t, "readiness says that Redis is away", func() bool {
				status, body := readiness(t, g)
				return status == tt.status && strings.Contains(body, tt.says)
			})
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/pods", nil)
			r.RequestURI = "/v2/pods"
			r.Header.Set("Authorization", "Bearer secret_a")
			w := httptest.NewRecorder()
			g.Handler().ServeHTTP(w, r)
			if w.Code != tt.call {
				t.Errorf("a caller without: %d %s, want %d", w.Code, w.Body, tt.call)
			}
		})
	}
}

func readiness(t *testing.T, g *gateway.Gateway) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	g.AdminHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	body, _ := io.ReadAll(w.Body)
	return w.Code, string(body)
}
