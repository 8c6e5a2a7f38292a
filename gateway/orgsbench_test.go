package gateway_test

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// orgReloads is a gateway of organisations in files of their own, which reads and puts in force all of them as serve does.
func orgReloads(tb testing.TB, orgs, keys int) (files *world.Orgs, reload func()) {
	tb.Helper()
	files = world.OrgFiles(tb, orgs, keys)
	load := func(before *config.Loaded) *config.Loaded {
		l, err := config.Load(files.Path(), config.Sources{Env: files.Env, Previous: before}, operator.Judge{})
		if err != nil {
			tb.Fatal(err)
		}
		return l
	}
	now := load(nil)
	g := world.Gateway(tb, now.Config, gateway.Deps{Redis: world.Redis(tb, redistest.Start(tb)), Logger: slog.New(slog.DiscardHandler), Decisions: unchecked(tb)})
	return files, func() {
		now = load(now)
		if err := g.Swap(now.Config); err != nil {
			tb.Fatal(err)
		}
		now.Commit()
		now.Warnings(time.Now())
	}
}

// TestReloadCost compares the cost of a reload of which one of 200 organisations changed with a committed figure, which does not move
// with load.
func TestReloadCost(t *testing.T) {
	const most = 14_000 // of which 2,000 look at the files: each with a deadline, which takes a timer, a channel and a goroutine
	files, reload := orgReloads(t, 200, 1)
	gpus := 1
	allocations := testing.AllocsPerRun(4, func() {
		gpus++
		files.Write(0, gpus)
		reload()
	})
	t.Logf("%.0f allocations", allocations)
	if allocations > most {
		t.Errorf("%.0f allocations, want at most %d", allocations, most)
	}
}

// BenchmarkReloadOrg reads and puts in force a configuration of so many organisations in files of their own, of which one changed.
func BenchmarkReloadOrg(b *testing.B) {
	for _, orgs := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("orgs=", orgs), func(b *testing.B) {
			files, reload := orgReloads(b, orgs, 1)
			b.ReportAllocs()
			began := processorTime(b)
			for turn := 0; b.Loop(); turn++ {
				files.Write(0, 2+turn%2)
				reload()
			}
			b.ReportMetric((processorTime(b)-began).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

// BenchmarkReloadAll shows the memory of the Go runtime where all of 1,000 organisations with ten keys each change at once: the most during
// reloads, and what is held afterwards.
func BenchmarkReloadAll(b *testing.B) {
	const orgs = 1000
	files, reload := orgReloads(b, orgs, 10)
	most := watchMemory()
	b.ReportAllocs()
	for turn := 0; b.Loop(); turn++ {
		b.StopTimer()
		for i := range orgs {
			files.Write(i, 2+turn%2)
		}
		b.StartTimer()
		reload()
		debug.FreeOSMemory()
	}
	b.ReportMetric(float64(most())/1e6, "peak-MB")
	b.ReportMetric(float64(resident())/1e6, "held-MB")
}

// watchMemory returns a function that returns the most memory that was resident until then.
func watchMemory() (most func() uint64) {
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for most := resident(); ; most = max(most, resident()) {
			select {
			case <-tick.C:
			case <-done:
				peak <- most
				return
			}
		}
	}()
	return func() uint64 { close(done); return <-peak }
}

// resident is the memory that the runtime has from the system and has not given back, in bytes.
func resident() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
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
