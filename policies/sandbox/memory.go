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
// was at its smallest since, as a bound for work that should take little. Garbage does not count: where it may decide, a collection tells
// the two apart. What other work keeps counts, too: work that ends early for it may be tried again. stop ends the watch.
func WithinMemory(ctx context.Context, bytes uint64) (within context.Context, stop func()) {
	within, cancel := context.WithCancelCause(ctx)
	var h heap
	least := h.live(bytes / 2) // the rest is taken since a collection that may be long ago
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		for {
			select {
			case <-within.Done():
				return
			case <-look.C:
				now := h.live(bytes)
				if least = min(least, now); now > least+bytes {
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

// heap is the heap of the process, looked at by one goroutine after the other.
type heap struct {
	next time.Time // is when garbage may be collected again
}

// live returns the bytes that the last garbage collection found in use. It collects before, if more than so many were taken since: for a
// quarter of the time at most, since that of a large heap takes long, and holds other work up.
func (h *heap) live(unknown uint64) uint64 {
	live, all := sizes()
	if began := time.Now(); all > live+unknown && began.After(h.next) {
		runtime.GC()
		live, _ = sizes()
		h.next = time.Now().Add(3 * time.Since(began))
	}
	return live
}

// sizes returns the bytes that the last garbage collection found in use, and those that objects take, garbage among them.
func sizes() (live, all uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}
