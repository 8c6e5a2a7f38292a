package once

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// tick is the time between two looks at other gateways' requests.
const tick = 100 * time.Millisecond

// askTime is how long a question is kept.
const askTime = time.Minute

// Run renews the lease and answers other gateways until ctx ends.
func (d *Desk) Run(ctx context.Context) error {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	var due time.Time
	for {
		if now := time.Now(); !now.Before(due) {
			if d.renew(ctx) == nil {
				d.ends.retry()
			}
			due = now.Add(beat)
		}
		d.reply(ctx)
		_ = d.store.RestoreAnnounced(ctx) // tried again at the next tick
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// asked is the key under which other gateways ask for an intent: when they did, by the
// store's clock; told that of the answer: the same.
func (d *Desk) asked(org, id string) string { return d.stem(org) + "asked/" + id }
func (d *Desk) told(org, id string) string  { return d.stem(org) + "told/" + id }

// ask asks the gateway that has an intent in hand whether its caller still waits, and
// reports whether it has said so since a time by the store's clock.
func (d *Desk) ask(ctx context.Context, org, id string, asked time.Time) bool {
	var said *redis.StringCmd
	_, err := d.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, d.asked(org, id), asked.UnixMilli(), askTime)
		said = p.Get(ctx, d.told(org, id))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return false
	}
	at, err := said.Int64()
	return err == nil && at >= asked.UnixMilli()
}

// reply says of which callers that were asked for it is known that they still wait.
func (d *Desk) reply(ctx context.Context) {
	for org, ids := range d.waiting(time.Now().Add(-tick)) {
		keys := make([]string, len(ids))
		for i, id := range ids {
			keys[i] = d.asked(org, id)
		}
		asked, err := d.client.MGet(ctx, keys...).Result()
		if err != nil {
			continue // it is asked again
		}
		if slices.IndexFunc(asked, func(at any) bool { return at != nil }) < 0 || !sleep(ctx, glance) {
			continue // after a standstill, word that they have left is behind the question
		}
		_, err = d.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, at := range asked {
				if at != nil && d.there(ids[i]) {
					p.Set(ctx, d.told(org, ids[i]), at, askTime)
				}
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			d.logger.DebugContext(ctx, "an inquiry about callers was not answered; the next tick repeats it", "org", org, "error", err.Error())
		}
	}
}

// waiting lists the intents in hand since before a time, by organisation.
func (d *Desk) waiting(before time.Time) map[string][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string][]string)
	for id, h := range d.hand {
		if h.noted.Before(before) {
			out[h.wish.Org] = append(out[h.wish.Org], id)
		}
	}
	return out
}

// there reports whether the caller of an intent in hand still waits.
func (d *Desk) there(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.hand[id]
	return h != nil && !wire.Left(h.caller)
}
