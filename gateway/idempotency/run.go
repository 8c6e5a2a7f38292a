package idempotency

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// pollTick is the interval for answering queries of other gateways.
const pollTick = 100 * time.Millisecond

// announcementInterval is the interval for taking part in the recoveries that other gateways have announced.
const announcementInterval = 500 * time.Millisecond

// queryTTL is the lifetime of a query in the store.
const queryTTL = time.Minute

// Run renews the lease and answers queries of other gateways until ctx ends.
func (d *Tracker) Run(ctx context.Context) error {
	var renewal, announcements time.Time
	return tasks.Every(pollTick, func(ctx context.Context) {
		now := time.Now()
		if !now.Before(renewal) {
			if d.renewLease(ctx) == nil {
				d.outbox.retry()
			}
			renewal = now.Add(heartbeatInterval)
		}
		d.answerQueries(ctx)
		if !now.Before(announcements) {
			_ = d.store.RestoreAnnounced(ctx) // retried after the interval
			announcements = now.Add(announcementInterval)
		}
	})(ctx)
}

// queryKey is the key under which other gateways ask about an intent. replyKey is the key of the reply. The value of both is the time of
// the query by the store's clock.
func (d *Tracker) queryKey(org, id string) string { return d.orgPrefix(org) + "asked/" + id }
func (d *Tracker) replyKey(org, id string) string { return d.orgPrefix(org) + "told/" + id }

// queryCaller asks the gateway that executes an intent whether the caller is still connected. It returns true if that gateway has confirmed
// this in reply to a query made at or after queriedAt, by the store's clock.
func (d *Tracker) queryCaller(ctx context.Context, org, id string, queriedAt time.Time) bool {
	var reply *redis.StringCmd
	_, err := d.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, d.queryKey(org, id), queriedAt.UnixMilli(), queryTTL)
		reply = p.Get(ctx, d.replyKey(org, id))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return false
	}
	at, err := reply.Int64()
	return err == nil && at >= queriedAt.UnixMilli()
}

// answerQueries replies to queries about callers that are known to be connected.
func (d *Tracker) answerQueries(ctx context.Context) {
	for org, ids := range d.trackedSince(time.Now().Add(-pollTick)) {
		keys := make([]string, len(ids))
		for i, id := range ids {
			keys[i] = d.queryKey(org, id)
		}
		asked, err := d.client.MGet(ctx, keys...).Result()
		if err != nil {
			continue // the query will be repeated
		}
		if slices.IndexFunc(asked, func(at any) bool { return at != nil }) < 0 || !sleep(ctx, pollInterval) {
			continue // after a pause of the process, a disconnect may not have been noticed yet
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
			d.logger.DebugContext(ctx, "cannot respond to caller status queries, will retry", "org", org, "error", err.Error())
		}
	}
}

// trackedSince returns the intents that were recorded before the given time, by organisation.
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

// isConnected reports whether the caller of a tracked intent is still connected.
func (d *Tracker) isConnected(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.tracked[id]
	return h != nil && !wire.ClientGone(h.caller)
}
