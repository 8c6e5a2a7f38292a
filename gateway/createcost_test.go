package gateway_test

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// TestCreateCost holds that a create allocates no more beside many keys than beside few. It compares the cheapest of several creates: what
// the process allocates during the others includes work that is not theirs, such as the read of a price list or a new connection.
func TestCreateCost(t *testing.T) {
	const runs = 50
	costs := make(map[int]uint64)
	for _, beside := range []int{1, 2_000} {
		upstream := httptest.NewServer(http.HandlerFunc(canned))
		t.Cleanup(upstream.Close)
		text := strings.ReplaceAll(benchConfiguration, "UPSTREAM", upstream.URL)
		for i := range beside {
			text += fmt.Sprintf("      - {id: beside-%d, sha256: SHA256(key_%d)}\n", i, i)
		}
		h := world.Gateway(t, world.Configuration(t, text, map[string]string{"KEY": "pk"}), gateway.Deps{
			Redis: world.Redis(t, redistest.Start(t)), Logger: slog.New(slog.NewJSONHandler(new(nothing), nil)), Decisions: unchecked(t),
		}).Handler()
		create := func() {
			r := httptest.NewRequest(http.MethodPost, "/v2/pods", strings.NewReader(`{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`))
			r.Header.Set("Authorization", "Bearer key_exempt")
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusCreated {
				t.Fatalf("answered %d: %s", w.Code, w.Body)
			}
		}
		create()
		costs[beside] = math.MaxUint64
		for range runs {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			create()
			runtime.ReadMemStats(&after)
			costs[beside] = min(costs[beside], after.TotalAlloc-before.TotalAlloc)
		}
	}
	t.Logf("bytes of a create, by the keys beside: %v", costs)
	if few, many := costs[1], costs[2_000]; many > few+few/4 {
		t.Errorf("a create allocates %d bytes beside 2,000 keys, %d beside one", many, few)
	}
}
