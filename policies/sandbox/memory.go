package sandbox

import (
	"context"
	"errors"
	"runtime/metrics"
	"time"
)

// ErrMemory is the cause of a context that ended because the process took too much memory.
var ErrMemory = errors.New("too much memory was taken")

// lookEvery is how often it is looked how much memory is taken.
const lookEvery = 5 * time.Millisecond

// WithinMemory returns a context that ends with the cause [ErrMemory] once the heap of the process is larger by so many bytes than it was at
// its smallest since, as a bound for work that should take little: garbage that was there before, and is collected meanwhile, makes no room
// for more. Work of others counts, too: work that ends early for them may be tried again. stop ends the watch.
func WithinMemory(ctx context.Context, bytes uint64) (within context.Context, stop func()) {
	within, cancel := context.WithCancelCause(ctx)
	least := heap()
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
				now := heap()
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

// heap returns the bytes of the heap that objects take, those among them that are to be freed.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
