package idempotency

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// pollTick is the time between two looks at other gateways' requests.
const pollTick = 100 * time.Millisecond

// queryTTL is how long a question is kept.
const queryTTL = time.Minute

// Run renews the lease and answers other gateways until ctx ends.
func (d *Tracker) Run(ctx context.Context) error {
	ticks := time.NewTicker(pollTick)
	defer ticks.Stop()
	var due time.Time
	for {
		if now := time.Now(); !now.Before(due) {
			if d.renewLease(ctx) == nil {
				d.outbox.retry()
			}
			due = now.Add(heartbeatInterval)
		}
		d.answerQueries(ctx)
		_ = d.store.RestoreAnnounced(ctx) // tried again at the next tick
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// queryKey is the key under which other gateways ask for an intent: when they did, by the
// store's clock; told that of the answer: the same.
func (d *Tracker) queryKey(org, id string) string { return d.orgPrefix(org) + "asked/" + id }
func (d *Tracker) replyKey(org, id string) string { return d.orgPrefix(org) + "told/" + id }

// queryCaller asks the gateway that has an intent in hand whether its caller still waits, and
// reports whether it has said so since a time by the store's clock.
func (d *Tracker) queryCaller(ctx context.Context, org, id string, asked time.Time) bool {
	var said *redis.StringCmd
	_, err := d.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, d.queryKey(org, id), asked.UnixMilli(), queryTTL)
		said = p.Get(ctx, d.replyKey(org, id))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return false
	}
	at, err := said.Int64()
	return err == nil && at >= asked.UnixMilli()
}

// answerQueries says of which callers that were asked for it is known that they still wait.
func (d *Tracker) answerQueries(ctx context.Context) {
	for org, ids := range d.trackedSince(time.Now().Add(-pollTick)) {
		keys := make([]string, len(ids))
		for i, id := range ids {
			keys[i] = d.queryKey(org, id)
		}
		asked, err := d.client.MGet(ctx, keys...).Result()
		if err != nil {
			continue // it is asked again
		}
		if slices.IndexFunc(asked, func(at any) bool { return at != nil }) < 0 || !sleep(ctx, pollInterval) {
			continue // after a standstill, word that they have left is behind the question
		}
		_, err = d.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, at := range asked {
				if at != nil && d.isConnected(ids[i]) {
					p.Set(ctx, d.replyKey(org, ids[i]), at, queryTTL)
				}
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			d.logger.DebugContext(ctx, "an inquiry about callers was not answered; the next tick repeats it", "org", org, "error", err.Error())
		}
	}
}

// trackedSince lists the intents in hand since before a time, by organisation.
func (d *Tracker) trackedSince(before time.Time) map[string][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string][]string)
	for id, h := range d.tracked {
		if h.noted.Before(before) {
			out[h.wish.Org] = append(out[h.wish.Org], id)
		}
	}
	return out
}

// isConnected reports whether the caller of an intent in hand still waits.
func (d *Tracker) isConnected(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.tracked[id]
	return h != nil && !wire.ClientGone(h.caller)
}
