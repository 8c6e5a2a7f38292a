package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// keyMakers are two gateways beside so many keys that were made at run time: at one (here)
// a key is made, and the other (there) hears of it.
func keyMakers(tb testing.TB, beside int) (here, there func(), asked *commands) {
	tb.Helper()
	client := world.Redis(tb, redistest.Start(tb))
	fillKeys(tb, client, beside)
	asked = new(commands)
	client.AddHook(asked)
	maker, hearer := benchGateway(tb, client), benchGateway(tb, client)
	n := 0
	here = func() {
		n++
		w := httptest.NewRecorder()
		spec := url.QueryEscape(fmt.Sprintf(`{"id":"made-%d","limits":{"minute":60}}`, n))
		maker.AdminHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/admin/keys/create?org=bench&spec="+spec, http.NoBody))
		if w.Code != http.StatusCreated {
			tb.Fatalf("create: %d %s", w.Code, w.Body)
		}
	}
	there = func() {
		if err := hearer.RefreshKeys(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	here()
	there()
	return here, there, asked
}

// TestKeysCost compares the cost of a key made at run time beside 1,000 others with committed
// figures, which do not move with load.
func TestKeysCost(t *testing.T) {
	here, there, asked := keyMakers(t, 1_000)
	for _, tt := range []struct {
		name                  string
		do                    func()
		allocations, commands float64
	}{
		{"here", here, 6_000, 6},
		{"here and there", func() { here(); there() }, 8_000, 14},
	} {
		asked.n.Store(0)
		const runs = 10
		allocations := testing.AllocsPerRun(runs, tt.do)
		n := float64(asked.n.Load()) / (runs + 1)
		t.Logf("%s: %.0f allocations, %.1f commands", tt.name, allocations, n)
		if allocations > tt.allocations || n > tt.commands {
			t.Errorf("%s: %.0f allocations, %.1f commands, want at most %.0f and %.0f", tt.name, allocations, n, tt.allocations, tt.commands)
		}
	}
}

// BenchmarkMakeKey makes keys beside others that were made at run time: at the gateway
// that makes them (here), and at another one that hears of it (there).
func BenchmarkMakeKey(b *testing.B) {
	for _, beside := range []int{10, 1_000, 9_000} {
		here, there, _ := keyMakers(b, beside)
		b.Run(fmt.Sprintf("here/%d", beside), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				here()
			}
		})
		b.Run(fmt.Sprintf("there/%d", beside), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				here()
				b.StartTimer()
				there()
			}
		})
	}
}

// fillKeys writes records of keys as another gateway would.
func fillKeys(tb testing.TB, client redisstore.Client, n int) {
	tb.Helper()
	keys := store.NewReplica(client, "tollgate:keys:", store.ReplicaConfig[*otherKey]{Now: time.Now})
	for i := range n {
		id := fmt.Sprint("beside-", i)
		done, err := keys.Swap(tb.Context(), "bench", nil, &otherKey{
			"id": id, "limits": map[string]int{"minute": 60}, "digests": []any{map[string]any{"sha256": identity.DigestOf(id).String()}}, "revision": 1,
		})
		if err != nil || !done {
			tb.Fatal(done, err)
		}
	}
}

// otherKey is a key as another gateway makes it.
type otherKey map[string]any

func (k *otherKey) RecordID() string   { return (*k)["id"].(string) }
func (*otherKey) Later(*otherKey) bool { return true }
func (*otherKey) Ends() time.Time      { return time.Time{} }
