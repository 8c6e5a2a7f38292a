package main

import (
	"fmt"
	"log/slog"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/check"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// BenchmarkReloadAll shows the memory of the Go runtime around reloads of 1,000 organisations with ten keys each, of which all have
// changed: what is in use between reloads, and the most that the process has taken from the system.
func BenchmarkReloadAll(b *testing.B) {
	const orgs, keys = 1000, 10
	tuneHeap()
	files := world.OrgFiles(b, orgs, keys)
	for i := range orgs {
		name := fmt.Sprint("KEY_", i)
		value, _ := files.Env(name)
		b.Setenv(name, value)
	}
	loaded, err := config.Load(files.Path(), config.Sources{}, check.Judge{})
	if err != nil {
		b.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	f := &followed{path: files.Path(), loaded: loaded}
	g := world.Gateway(b, loaded.Config, gateway.Deps{Redis: world.Redis(b, redistest.Start(b)), Logger: quiet})
	most := watchMemory(b)
	for turn := 1; b.Loop(); turn++ {
		b.StopTimer()
		for i := range orgs {
			files.Write(i, 1+turn%2)
		}
		b.StartTimer()
		revision := f.loaded.Config.Revision
		if f.reload(g, quiet); f.loaded.Config.Revision == revision {
			b.Fatal("the configuration was refused")
		}
	}
	b.ReportMetric(float64(most())/1e6, "peak-MB")
	b.ReportMetric(float64(taken())/1e6, "held-MB")
}

// watchMemory returns a function that returns the most memory that was taken until then.
func watchMemory(tb testing.TB) (most func() uint64) {
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for most := taken(); ; most = max(most, taken()) {
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

// taken is the memory that the runtime has from the system and has not given back, in bytes.
func taken() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
