package gateway

import (
	"sync"
	"time"
)

// backlog is what is written behind answers: what ends at about the same time is written
// at once. It has one writer while there is anything to write, and none otherwise.
type backlog[T any] struct {
	write func(batch []T)
	// late runs the writer.
	late func(f func())
	// pause is how long others are waited for that can be written with the first.
	pause time.Duration

	mu      sync.Mutex // guards what follows
	waiting []T
	writing bool
}

// Bounds of a backlog.
const (
	maxWaiting   = 4096
	writtenBatch = 100 // are written at once
)

// add has something written, and reports false if too much waits.
func (b *backlog[T]) add(v T) bool {
	b.mu.Lock()
	if len(b.waiting) >= maxWaiting {
		b.mu.Unlock()
		return false
	}
	b.waiting = append(b.waiting, v)
	begin := !b.writing
	b.writing = true
	b.mu.Unlock()
	if begin {
		b.late(b.run)
	}
	return true
}

// run writes what waits, until nothing does.
func (b *backlog[T]) run() {
	ended := false
	defer func() {
		if !ended { // a panic: the next one begins again
			b.mu.Lock()
			b.writing = false
			b.mu.Unlock()
		}
	}()
	for full := false; b.waits(); {
		if b.pause > 0 && !full {
			<-time.After(b.pause)
		}
		batch := b.next()
		b.write(batch)
		full = len(batch) == writtenBatch
	}
	ended = true
}

// waits reports whether there is anything to write. The writing is over otherwise.
func (b *backlog[T]) waits() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writing = len(b.waiting) > 0
	return b.writing
}

// next takes a batch of what waits.
func (b *backlog[T]) next() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := b.waiting[:min(writtenBatch, len(b.waiting))]
	b.waiting = b.waiting[len(batch):]
	if len(b.waiting) == 0 {
		b.waiting = nil
	}
	return batch
}
