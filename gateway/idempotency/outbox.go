package idempotency

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Bounds of the writes behind answers.
const (
	maxQueued    = 10000
	maxBatch     = 50
	writeTimeout = 5 * time.Second
)

// outbox holds the messages to the store behind answers, in their order, until the store
// has taken them.
type outbox struct {
	write func(ctx context.Context, all []ledger.IntentUpdate) (int, error)
	// spawn runs the writer in a goroutine of its own.
	spawn func(f func())

	mu      sync.Mutex // guards what follows
	waiting []queuedEnd
	writing bool
}

type queuedEnd struct {
	org    string
	ending ledger.IntentUpdate
}

// add has something written, and reports false if too much waits.
func (b *outbox) add(org string, e *ledger.IntentUpdate) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= maxQueued {
		return false
	}
	b.waiting = append(b.waiting, queuedEnd{org, *e})
	b.begin()
	return true
}

// retry writes again the messages that the store did not take.
func (b *outbox) retry() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begin()
}

// begin runs the writer, with mu held.
func (b *outbox) begin() {
	if !b.writing && len(b.waiting) > 0 {
		b.writing = true
		b.spawn(b.run)
	}
}

// run writes waiting messages until none waits, or the store takes no more.
func (b *outbox) run() {
	for batch := b.next(); batch != nil; batch = b.next() {
		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout) //nolint:forbidigo // the end outlives its request, and depends on nothing of it
		_, err := b.write(ctx, batch)
		cancel()
		b.finishBatch(len(batch), err)
	}
}

// next returns the first waiting messages of one organisation, nil when the writer has ended.
func (b *outbox) next() []ledger.IntentUpdate {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.writing || len(b.waiting) == 0 {
		b.writing = false
		return nil
	}
	var batch []ledger.IntentUpdate
	for _, e := range b.waiting[:min(maxBatch, len(b.waiting))] {
		if e.org != b.waiting[0].org {
			break
		}
		batch = append(batch, e.ending)
	}
	return batch
}

// finishBatch drops the written messages, or ends the writer: it is tried again with the next
// beat.
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

// has reports whether something is to be written of an intent.
func (b *outbox) has(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.waiting, func(e queuedEnd) bool { return e.ending.Intent == id })
}

// endedIntents returns the intents of an organisation's wish that have ended, unknown to the store.
func (b *outbox) endedIntents(org, wish string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for i := range b.waiting {
		if e := &b.waiting[i].ending; e.Org == org && e.Fingerprint == wish && e.Row == "" {
			ids = append(ids, e.Intent)
		}
	}
	return ids
}
