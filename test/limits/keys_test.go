package limits

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/test/world"
)

// A key takes little memory, however many there are; docs/capacity.md states how much.
func TestVeryManyKeys(t *testing.T) {
	const keys, perKey = 20_000, 1460
	dir := t.TempDir()
	var b strings.Builder
	for i := range keys {
		fmt.Fprintf(&b, "- {id: key-%06d, team: research, sha256: %s, roles: [operator], limits: {minute: 600}}\n", i, identity.DigestOf(fmt.Sprintf("tg_key_%06d", i)))
	}
	for name, text := range map[string]string{"keys.yaml": b.String(), "tollgate.yaml": `
platform: {base_url: "http://127.0.0.1:1"}
redis: {embedded: true}
orgs:
  - {id: acme, credential: {env: ACME}, teams: [{id: research}], key_files: [keys.yaml]}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.Reset()
	store := world.Redis(t, miniredis.RunT(t).Addr())
	_ = world.Gateway(t, world.Configuration(t, `
platform: {base_url: "http://127.0.0.1:1"}
redis: {embedded: true}
orgs: [{id: acme, credential: {env: ACME}}]
`, map[string]string{"ACME": "pk-acme"}), gateway.Deps{Redis: store}) // what any gateway takes is there now

	before := heap()
	loaded, err := config.Load(filepath.Join(dir, "tollgate.yaml"), config.Sources{Env: func(string) (string, bool) { return "pk-acme", true }}, operator.Validator{})
	if err != nil {
		t.Fatal(err)
	}
	g := world.Gateway(t, loaded.Config, gateway.Deps{Redis: store})
	held := (heap() - before) / keys
	if held > perKey {
		t.Errorf("each of %d keys takes %d bytes, want at most %d", keys, held, perKey)
	}
	for key, want := range map[string]int{"tg_key_000000": http.StatusNotFound, "tg_key_019999": http.StatusNotFound, "tg_key_020000": http.StatusUnauthorized} {
		r := httptest.NewRequest(http.MethodGet, "/v2/nothing", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("with %s: %d %s, want %d", key, w.Code, w.Body, want)
		}
	}
	runtime.KeepAlive(loaded)
}

// heap is the memory in use after a collection, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
