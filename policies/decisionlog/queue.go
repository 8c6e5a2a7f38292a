package decisionlog

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Backlog describes the events that a sink has not accepted.
type Backlog struct {
	// Sink is file, stdout or service.
	Sink string
	// Waiting is the number of queued events, without the batch being written.
	Waiting int
	// Dropped is the number of events discarded since New because the buffer was full.
	Dropped int64
	// Err is the reason why the sink is failing, or nil.
	Err error

	written, failed int64
}

// queue holds the events queued for a sink.
type queue struct {
	sink sink
	// batch is the number of events written together. delay is how long an event waits for others.
	batch int
	delay time.Duration
	// maxBytes limits the total size of the events.
	maxBytes int64
	wake     chan struct{}
	// reopen is set if the sink should check its destination.
	reopen atomic.Bool

	mu    sync.Mutex
	ring  []*Event // guarded by mu; the elements first to first+count are queued
	first int
	count int
	bytes int64 // total size
	state Backlog
}

// defaultBatch is the number of events written together.
const defaultBatch = 500

func newQueue(cfg *Config, s sink) *queue {
	return &queue{
		sink: s, batch: min(defaultBatch, cfg.Buffer), maxBytes: cfg.BufferBytes,
		wake: make(chan struct{}, 1), ring: make([]*Event, cfg.Buffer), state: Backlog{Sink: s.name()},
	}
}

// stir wakes the delivery.
func (q *queue) stir() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// add appends an event.
func (q *queue) add(e *Event) {
	q.mu.Lock()
	for !q.fitsLocked(e) {
		q.popLocked()
		q.state.Dropped++
	}
	q.ring[(q.first+q.count)%len(q.ring)] = e
	q.count++
	q.bytes += e.Size
	q.mu.Unlock()
	q.stir()
}

// fitsLocked reports whether there is space for an event. An event larger than the limit is only queued alone.
func (q *queue) fitsLocked(e *Event) bool {
	return q.count == 0 || q.count < len(q.ring) && q.bytes+e.Size <= q.maxBytes
}

// popLocked removes the oldest event; the queue must not be empty.
func (q *queue) popLocked() *Event {
	e := q.ring[q.first]
	q.ring[q.first] = nil
	q.first = (q.first + 1) % len(q.ring)
	q.count--
	q.bytes -= e.Size
	return e
}

// dequeue removes and returns a batch.
func (q *queue) dequeue() []*Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(q.batch, q.count)
	out := make([]*Event, 0, n)
	for range n {
		out = append(out, q.popLocked())
	}
	return out
}

// requeue queues a rejected batch again, newest events first, as long as there is space. It reports whether this is the first
// failure in a row.
func (q *queue) requeue(events []*Event, why error) (begun bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	begun = q.state.Err == nil
	q.state.Err = why
	for i, e := range slices.Backward(events) {
		if !q.fitsLocked(e) {
			q.state.Dropped += int64(i + 1)
			return begun
		}
		q.first = (q.first + len(q.ring) - 1) % len(q.ring)
		q.ring[q.first] = e
		q.count++
		q.bytes += e.Size
	}
	return begun
}

// took counts accepted events and reports whether the sink had been failing.
func (q *queue) took(n int) (again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	again = q.state.Err != nil
	q.state.Err = nil
	q.state.written += int64(n)
	return again
}

// lose counts events that the sink will not receive.
func (q *queue) lose(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state.failed += int64(n)
}

// abandon drops the remaining events at shutdown and returns their number.
func (q *queue) abandon() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.count
	clear(q.ring)
	q.count, q.bytes = 0, 0
	q.state.failed += int64(left)
	return left
}

func (q *queue) backlog() Backlog {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.state
	b.Waiting = q.count
	return b
}

// gather waits a short time for a full batch.
func (q *queue) gather(ctx context.Context) {
	if q.delay == 0 {
		return
	}
	timer := time.NewTimer(q.delay)
	defer timer.Stop()
	for {
		q.mu.Lock()
		enough := q.count >= q.batch
		q.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-timer.C:
			return
		case <-q.wake:
		case <-ctx.Done():
			return
		}
	}
}
