package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/keystore"
	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// BenchmarkMakeKey makes keys beside others that were made at run time: at the gateway
// that makes them (here), and at another one that hears of it (there).
func BenchmarkMakeKey(b *testing.B) {
	for _, beside := range []int{10, 1_000, 9_000} {
		client := world.Redis(b, redistest.Start(b))
		fillKeys(b, client, beside)
		here, there := benchGateway(b, client), benchGateway(b, client)
		n := 0
		create := func(b *testing.B) {
			b.Helper()
			n++
			w := httptest.NewRecorder()
			spec := url.QueryEscape(fmt.Sprintf(`{"id":"made-%d","limits":{"minute":60}}`, n))
			here.AdminHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/admin/keys/create?org=bench&spec="+spec, http.NoBody))
			if w.Code != http.StatusCreated {
				b.Fatalf("create: %d %s", w.Code, w.Body)
			}
		}
		refresh := func(b *testing.B) {
			b.Helper()
			if err := there.RefreshKeys(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		create(b)
		refresh(b)
		b.Run(fmt.Sprintf("here/%d", beside), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				create(b)
			}
		})
		b.Run(fmt.Sprintf("there/%d", beside), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				create(b)
				b.StartTimer()
				refresh(b)
			}
		})
	}
}

// fillKeys writes records of keys as another gateway would.
func fillKeys(b *testing.B, client redis.UniversalClient, n int) {
	b.Helper()
	store := keystore.New(client, "tollgate:keys:")
	for i := range n {
		id := fmt.Sprint("beside-", i)
		record, err := json.Marshal(map[string]any{
			"id": id, "limits": map[string]int{"minute": 60}, "digests": []any{map[string]any{"sha256": identity.DigestOf(id).String()}}, "revision": 1,
		})
		if err != nil {
			b.Fatal(err)
		}
		if _, done, err := store.Swap(b.Context(), "bench", keystore.Entry{ID: id}, record); err != nil || !done {
			b.Fatal(done, err)
		}
	}
}
