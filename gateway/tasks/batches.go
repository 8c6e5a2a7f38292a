package tasks

import (
	"sync"
	"time"
)

// Batcher are writings behind answers: those that come at about the same time are
// made at once. They have one writer while there is anything to write, and none otherwise.
type Batcher[T any] struct {
	// Write writes a batch of the values added.
	Write func(batch []T)
	// Go runs the writer.
	Go func(f func())
	// Pause is how long others are waited for that can be written with the first.
	Pause time.Duration

	mu      sync.Mutex // guards what follows
	waiting []T
	writing bool
}

const (
	// MaxQueued is how many may wait.
	MaxQueued = 4096
	maxBatch  = 100 // are written at once
)

// Add has something written, and reports false if too much waits.
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

// run writes waiting items, until none waits.
func (b *Batcher[T]) run() {
	ended := false
	defer func() {
		if !ended { // a panic: the next one begins again
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

// hasWork reports whether there is anything to write. The writing is over otherwise.
func (b *Batcher[T]) hasWork() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writing = len(b.waiting) > 0
	return b.writing
}

// next takes a batch of the waiting items.
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
