package decisionlog

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Backlog is the part of the log that a sink has not taken.
type Backlog struct {
	// Sink is file, stdout or service.
	Sink string
	// Waiting is the number of events that wait, those of the batch that is being written left out.
	Waiting int
	// Dropped is the number of events since New that made room for newer ones.
	Dropped int64
	// Err is why the sink takes nothing, nil while it does.
	Err error

	written, failed int64
}

// queue holds the events that wait for a sink.
type queue struct {
	sink sink
	// batch is how many events are written together, delay how long an event waits for others.
	batch int
	delay time.Duration
	// maxBytes bounds the sizes of the events together.
	maxBytes int64
	wake     chan struct{}
	// reopen is set while the sink is to look where it writes.
	reopen atomic.Bool

	mu    sync.Mutex
	ring  []*Event // guarded by mu; first..first+count wait
	first int
	count int
	bytes int64 // their sizes
	state Backlog
}

// defaultBatch is how many events are written together.
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

// fitsLocked reports whether there is room for an event. One that is larger than all the room waits alone.
func (q *queue) fitsLocked(e *Event) bool {
	return q.count == 0 || q.count < len(q.ring) && q.bytes+e.Size <= q.maxBytes
}

// popLocked removes the oldest event; there must be one.
func (q *queue) popLocked() *Event {
	e := q.ring[q.first]
	q.ring[q.first] = nil
	q.first = (q.first + 1) % len(q.ring)
	q.count--
	q.bytes -= e.Size
	return e
}

// take removes a batch.
func (q *queue) take() []*Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(q.batch, q.count)
	out := make([]*Event, 0, n)
	for range n {
		out = append(out, q.popLocked())
	}
	return out
}

// giveBack puts a batch back that the sink did not take, the newest of its events first, as long as there is room. It reports whether the
// sink has begun to fail.
func (q *queue) giveBack(events []*Event, why error) (begun bool) {
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

// took counts events that the sink has taken. It reports whether the sink has failed before.
func (q *queue) took(n int) (again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	again = q.state.Err != nil
	q.state.Err = nil
	q.state.written += int64(n)
	return again
}

// lose counts events that the sink does not get.
func (q *queue) lose(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state.failed += int64(n)
}

// abandon drops the events that there was no time to write, and returns their number.
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

// gather waits for a batch, for a little while.
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
