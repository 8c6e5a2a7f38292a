package tasks

import (
	"sync"
	"time"
)

// Batcher collects values and writes them in batches. A goroutine writes them; it runs only while values are queued.
type Batcher[T any] struct {
	// Write writes a batch.
	Write func(batch []T)
	// Go starts the writer.
	Go func(f func())
	// Pause is the time to wait for more values before writing a batch that is not full.
	Pause time.Duration

	mu      sync.Mutex // guards the fields below
	waiting []T
	writing bool
}

const (
	// MaxQueued is the maximum number of queued values.
	MaxQueued = 4096
	maxBatch  = 100 // values per batch
)

// Add queues a value. It returns false if the queue is full.
func (b *Batcher[T]) Add(v T) bool {
	b.mu.Lock()
	if len(b.waiting) >= MaxQueued {
		b.mu.Unlock()
		return false
	}
	b.waiting = append(b.waiting, v)
	begin := !b.writing
	b.writing = true
	b.mu.Unlock()
	if begin {
		b.Go(b.run)
	}
	return true
}

// run writes queued values until the queue is empty.
func (b *Batcher[T]) run() {
	ended := false
	defer func() {
		if !ended { // after a panic, the next Add starts a new writer
			b.mu.Lock()
			b.writing = false
			b.mu.Unlock()
		}
	}()
	for full := false; b.hasWork(); {
		if b.Pause > 0 && !full {
			<-time.After(b.Pause)
		}
		batch := b.next()
		b.Write(batch)
		full = len(batch) == maxBatch
	}
	ended = true
}

// hasWork reports whether values are queued. If not, the writer stops.
func (b *Batcher[T]) hasWork() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writing = len(b.waiting) > 0
	return b.writing
}

// next removes and returns a batch.
func (b *Batcher[T]) next() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := b.waiting[:min(maxBatch, len(b.waiting))]
	b.waiting = b.waiting[len(batch):]
	if len(b.waiting) == 0 {
		b.waiting = nil
	}
	return batch
}
