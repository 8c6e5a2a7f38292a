package gateway_test

import (
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/check"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// orgReloads is a gateway of organisations in files of their own, of which it changes one and reads all again.
func orgReloads(tb testing.TB, orgs int) (reload func()) {
	tb.Helper()
	files := world.OrgFiles(tb, orgs, 1)
	load := func(before *config.Loaded) *config.Loaded {
		l, err := config.Load(files.Path(), config.Sources{Env: files.Env, Before: before}, check.Judge{})
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
		files.Write(0, 1+turn%2)
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
			began := processorTime(b)
			for b.Loop() {
				reload()
			}
			b.ReportMetric((processorTime(b)-began).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

// processorTime is what the process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
