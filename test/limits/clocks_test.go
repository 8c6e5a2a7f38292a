package limits

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// held are two gateways of this process over the embedded store, whose clocks are
// in the hands of a test.
type held struct {
	handlers [2]http.Handler
	store    *miniredis.Miniredis
	clock    *platform.Clock
}

// advance moves all clocks.
func (h *held) advance(d time.Duration) {
	h.clock.Advance(d)
	h.store.SetTime(h.clock.Now())
}

func newHeld(t *testing.T, mode, limits string, start time.Time) *held {
	t.Helper()
	upstream := platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: credential}))
	h := &held{store: miniredis.RunT(t), clock: platform.ManualClock(start)}
	h.advance(0)
	cfg := world.Configuration(t, configuration(upstream.URL, "{embedded: true}", mode, "a "+limits), map[string]string{"ACME_KEY": credential})
	for i := range h.handlers {
		h.handlers[i] = world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, h.store.Addr()), Now: h.clock.Now}).Handler()
	}
	return h
}

func (h *held) ask(t *testing.T, g int) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/pods", nil)
	r.RequestURI = "/v2/pods"
	r.Header.Set("Authorization", "Bearer secret_a")
	w := httptest.NewRecorder()
	h.handlers[g].ServeHTTP(w, r)
	return read(t, w.Code, w.Header(), w.Body.String())
}

// TestRetryAfterIsTrue shows, on clocks that a test moves, that a caller that comes back a
// second before the given time is refused still, by both gateways, and one that comes back
// on time is answered.
func TestRetryAfterIsTrue(t *testing.T) {
	for _, tt := range []struct {
		name, limits string
		start        time.Time
		want         int
	}{
		{"early in a minute", "{minute: 5}", time.Date(2027, 3, 14, 22, 40, 0, 0, time.UTC), 60},
		{"in a minute", "{minute: 5}", time.Date(2027, 3, 14, 22, 40, 20, 300e6, time.UTC), 40},
		{"late in a minute", "{minute: 5}", time.Date(2027, 3, 14, 22, 40, 57, 999e6, time.UTC), 3},
		{"in an hour", "{hour: 5}", time.Date(2027, 3, 14, 22, 40, 20, 300e6, time.UTC), 19*60 + 40},
		{"in a day", "{day: 5}", time.Date(2027, 3, 14, 22, 40, 20, 300e6, time.UTC), 79*60 + 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, mode string) {
				h := newHeld(t, mode, tt.limits, tt.start)
				for i := range 5 {
					if got, want := h.ask(t, i%2), 4-i; got.Status != http.StatusOK || got.Remaining != want || got.Reset != tt.want {
						t.Fatalf("call %d: %+v, want 200 with %d left for %d seconds", i+1, got, want, tt.want)
					}
				}
				for g := range h.handlers {
					h.refused(t, g, tt.want)
				}
				h.advance(time.Duration(tt.want-1) * time.Second)
				for g := range h.handlers {
					h.refused(t, g, 1)
				}
				h.advance(time.Second)
				for g := range h.handlers {
					if got, want := h.ask(t, g), 4-g; got.Status != http.StatusOK || got.Remaining != want {
						t.Errorf("gateway %d, called when told: %+v, want 200 with %d left", g, got, want)
					}
				}
			})
		})
	}
}

// refused expects a refusal that tells to come back after some seconds.
func (h *held) refused(t *testing.T, g, after int) {
	t.Helper()
	got := h.ask(t, g)
	if got.Status != http.StatusTooManyRequests || got.Remaining != 0 || got.RetryAfter != after || got.Reset != after {
		t.Errorf("gateway %d: %+v, want 429 and to come back after %d seconds", g, got, after)
	}
}
