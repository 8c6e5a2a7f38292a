package idempotency

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// LeaseDuration is how long a gateway that is not heard of can be alive.
const LeaseDuration = 5 * time.Second

// heartbeatInterval is the time between two renewals of a lease.
const heartbeatInterval = time.Second

// lease says that this gateway is known to be alive.
type lease struct {
	mu sync.Mutex // guards what follows
	// since is when the renewals began that have not been interrupted, last the latest.
	since, last time.Time
}

// renewed notes a renewal that was sent at a time and acknowledged, and whether the store knew the lease. A store that did not has
// lost the leases of the others, too.
func (l *lease) renewed(at time.Time, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if elapsed(l.last, at) > LeaseDuration/2 || !known {
		l.since = at
	}
	l.last = at
}

// trackedIntent reports whether the lease holds now, and has held since a time.
func (l *lease) held(since, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.since.After(since) && elapsed(l.last, now) <= LeaseDuration/2
}

// elapsed is how long two times are apart: by the monotonic clock, which no one sets, or by
// the other, which goes on while the machine is suspended.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// canDeclareDead reports whether the store has been heard for as long as another gateway must
// be silent to be dead.
func (l *lease) canDeclareDead(now time.Time) bool { return l.held(now.Add(-LeaseDuration), now) }

// leases is the key of the time of each gateway's latest heartbeat, by incarnation.
func (d *Tracker) leases() string { return d.prefix + "gateways" }

// heartbeatScript records a heartbeat by the store's clock, and returns whether the store knew the gateway. The first
// heartbeat deletes gateways that were last heard a day ago.
var heartbeatScript = redis.NewScript(`
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local known = redis.call('HEXISTS', KEYS[1], ARGV[1])
if known == 0 then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if tonumber(all[i + 1]) < now - 86400000 then redis.call('HDEL', KEYS[1], all[i]) end
  end
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now))
return known`)

// renewLease renews the lease.
func (d *Tracker) renewLease(ctx context.Context) error {
	at := time.Now()
	ctx, cancel := context.WithTimeout(ctx, LeaseDuration/2)
	defer cancel()
	known, err := heartbeatScript.Run(ctx, d.client, []string{d.leases()}, d.Gateway).Int()
	if err != nil {
		return err
	}
	d.lease.renewed(at, known == 1)
	return nil
}

// Dead returns how long another gateway has been silent if it is known to be dead: its lease has ended, and the store has not
// lost the lease.
func (d *Tracker) Dead(ctx context.Context, gateway string) (silent time.Duration, dead bool) {
	if !d.lease.canDeclareDead(time.Now()) {
		return 0, false
	}
	var beats *redis.SliceCmd
	var clock *redis.TimeCmd
	_, err := d.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		beats, clock = p.HMGet(ctx, d.leases(), d.Gateway, gateway), p.Time(ctx)
		return nil
	})
	if err != nil || beats.Val()[0] == nil || !d.lease.canDeclareDead(time.Now()) {
		return 0, false
	}
	text, known := beats.Val()[1].(string)
	if !known {
		return LeaseDuration, true // it has not been heard since this gateway began to witness
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	silent = clock.Val().Sub(time.UnixMilli(ms))
	return silent, err == nil && silent > LeaseDuration
}

// dead reports whether another gateway is known to be dead.
func (d *Tracker) dead(ctx context.Context, gateway string) bool {
	_, dead := d.Dead(ctx, gateway)
	return dead
}
