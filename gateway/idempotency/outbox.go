package idempotency

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Limits of the asynchronous writes.
const (
	maxQueued    = 10000
	maxBatch     = 50
	writeTimeout = 5 * time.Second
)

// outbox queues messages to the store, in order, until the store has accepted them.
type outbox struct {
	write func(ctx context.Context, all []ledger.IntentUpdate) error
	// spawn runs the writer in a new goroutine.
	spawn func(f func())

	mu      sync.Mutex // guards the fields below
	waiting []ledger.IntentUpdate
	writing bool
}

// add queues a message. It returns false if the queue is full.
func (b *outbox) add(e *ledger.IntentUpdate) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= maxQueued {
		return false
	}
	b.waiting = append(b.waiting, *e)
	b.begin()
	return true
}

// retry starts the writer again after a failure.
func (b *outbox) retry() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begin()
}

// begin starts the writer if necessary. b.mu must be held.
func (b *outbox) begin() {
	if !b.writing && len(b.waiting) > 0 {
		b.writing = true
		b.spawn(b.run)
	}
}

// run writes queued messages until the queue is empty or a write fails.
func (b *outbox) run() {
	for batch := b.next(); batch != nil; batch = b.next() {
		b.send(batch)
	}
}

// errPanicked is the result of a write that panics.
var errPanicked = errors.New("panic")

// send writes a batch.
func (b *outbox) send(batch []ledger.IntentUpdate) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout) //nolint:forbidigo // the write must not depend on its request
	err := errPanicked
	defer func() {
		cancel()
		b.finishBatch(len(batch), err)
	}()
	err = b.write(ctx, batch)
}

// next returns the first queued messages of one organisation, or nil if the queue is empty.
func (b *outbox) next() []ledger.IntentUpdate {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.writing || len(b.waiting) == 0 {
		b.writing = false
		return nil
	}
	n := 1
	for n < min(maxBatch, len(b.waiting)) && b.waiting[n].Org == b.waiting[0].Org {
		n++
	}
	return slices.Clone(b.waiting[:n])
}

// finishBatch removes n written messages. After an error or a panic it stops the writer until the next heartbeat.
func (b *outbox) finishBatch(n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.writing = false
		return
	}
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
	}
}

// has reports whether a message about the intent is queued.
func (b *outbox) has(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.waiting, func(e ledger.IntentUpdate) bool { return e.Intent == id })
}

// endedIntents returns the IDs of the intents under a key whose end is queued but not stored yet.
func (b *outbox) endedIntents(org, key string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for i := range b.waiting {
		if e := &b.waiting[i]; e.Org == org && e.Fingerprint == key && e.Row == "" {
			ids = append(ids, e.Intent)
		}
	}
	return ids
}
