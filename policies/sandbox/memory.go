package sandbox

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"time"
)

// ErrMemory is the cause of a context that ended because the process took too much memory.
var ErrMemory = errors.New("too much memory was taken")

// lookEvery is how often it is looked how much memory is taken.
const lookEvery = 5 * time.Millisecond

// WithinMemory returns a context that ends with the cause [ErrMemory] once the live heap of the process is larger by so many bytes than it
// was at its smallest since, as a bound for work that should take little. Garbage does not count: once so many bytes were taken since the
// last collection, another one tells the two apart. What other work keeps counts, too: work that ends early for it may be tried again.
// stop ends the watch.
func WithinMemory(ctx context.Context, bytes uint64) (within context.Context, stop func()) {
	within, cancel := context.WithCancelCause(ctx)
	least, _ := heap()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		var next time.Time // of a collection
		for {
			select {
			case <-within.Done():
				return
			case <-look.C:
				live, all := heap()
				if began := time.Now(); all > live+bytes && began.After(next) {
					runtime.GC()
					live, _ = heap()
					next = time.Now().Add(3 * time.Since(began)) // a large heap takes long, and holds other work up
				}
				if least = min(least, live); live > least+bytes {
					cancel(ErrMemory)
				}
			}
		}
	}()
	return within, func() {
		cancel(nil)
		<-ended
	}
}

// heap returns the bytes that the last garbage collection found in use, and those that objects take, garbage among them.
func heap() (live, all uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}
