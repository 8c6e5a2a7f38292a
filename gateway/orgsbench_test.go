package gateway_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// orgReloads is a gateway of organisations in files of their own, of which it changes one and reads all again.
func orgReloads(tb testing.TB, orgs int) (reload func()) {
	tb.Helper()
	dir := tb.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	write("tollgate.yaml", "platform: {base_url: \"http://127.0.0.1:1\"}\nredis: {embedded: true}\norgs_files: org*.yaml\n")
	org := func(i, gpus int) {
		write(fmt.Sprintf("org%d.yaml", i), fmt.Sprintf("id: org%d\ncredential: {env: KEY_%d}\nkeys: [{id: ci, sha256: %s}]\npolicies: [{policy: gpu_count, params: {max_per_pod: %d}}, "+
			"{policy: gpu_allow_list, params: {gpus: [NVIDIA L4]}}, {policy: price_ceiling, params: {max_usd_per_hour: 40}}, {policy: roles}, {policy: images, params: {allow: [ghcr.io/acme]}}]\n",
			i, i, identity.DigestOf(fmt.Sprint("key", i)), gpus))
	}
	for i := range orgs {
		org(i, 1)
	}
	load := func(before *config.Loaded) *config.Loaded {
		l, err := config.Load(filepath.Join(dir, "tollgate.yaml"), config.Sources{
			Env: func(name string) (string, bool) { return "pk-secret-" + name, true }, Before: before,
		}, operator.Judge{})
		if err != nil {
			tb.Fatal(err)
		}
		return l
	}
	now := load(nil)
	g := world.Gateway(tb, now.Config, gateway.Deps{Redis: world.Redis(tb, redistest.Start(tb)), Logger: slog.New(slog.DiscardHandler), Decisions: unchecked(tb)})
	turn := 0
	return func() {
		turn++
		org(0, 1+turn%2)
		now = load(now)
		if err := g.Swap(now.Config); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestReloadCost compares the cost of a reload of which one of 200 organisations changed with a committed figure, which does not move
// with load.
func TestReloadCost(t *testing.T) {
	const most = 40_000 // each file is read with a deadline: a timer, a channel and a goroutine
	allocations := testing.AllocsPerRun(4, orgReloads(t, 200))
	t.Logf("%.0f allocations", allocations)
	if allocations > most {
		t.Errorf("%.0f allocations, want at most %d", allocations, most)
	}
}

// BenchmarkReloadOrg reads and puts in force a configuration of so many organisations in files of their own, of which one changed.
func BenchmarkReloadOrg(b *testing.B) {
	for _, orgs := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("orgs=", orgs), func(b *testing.B) {
			reload := orgReloads(b, orgs)
			b.ReportAllocs()
			for b.Loop() {
				reload()
			}
		})
	}
}
