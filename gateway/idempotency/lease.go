package idempotency

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// leaseDuration is the time after its last heartbeat until a gateway is considered dead.
const leaseDuration = 5 * time.Second

// heartbeatInterval is the time between renewals of the lease.
const heartbeatInterval = time.Second

// lease records for how long this gateway's heartbeats have been acknowledged without interruption.
type lease struct {
	mu sync.Mutex // guards the fields below
	// since is the start of the uninterrupted renewals, last the latest one.
	since, last time.Time
}

// renewed records an acknowledged renewal sent at the given time. known reports whether the store had the lease; if not, the store has lost
// the leases of other gateways too.
func (l *lease) renewed(at time.Time, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if elapsed(l.last, at) > leaseDuration/2 || !known {
		l.since = at
	}
	l.last = at
}

// held reports whether the lease was held without interruption from start to now.
func (l *lease) held(start, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.since.After(start) && elapsed(l.last, now) <= leaseDuration/2
}

// elapsed returns the time from start to end, measured by the monotonic clock or by the wall clock, whichever is longer. The wall clock
// includes the time during which the machine was suspended.
func elapsed(start, end time.Time) time.Duration {
	return max(end.Sub(start), end.Round(0).Sub(start.Round(0)))
}

// canDeclareDead reports whether this gateway has been connected to the store without interruption for at least the lease duration. It may
// then declare other gateways dead.
func (l *lease) canDeclareDead(now time.Time) bool { return l.held(now.Add(-leaseDuration), now) }

// leases returns the key of the hash that contains the latest heartbeat of each incarnation.
func (d *Tracker) leases() string { return d.prefix + "gateways" }

// heartbeatScript records a heartbeat with the store's clock and returns whether the gateway was known. The first heartbeat of a gateway
// deletes entries older than a day.
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

// renewLease sends a heartbeat.
func (d *Tracker) renewLease(ctx context.Context) error {
	at := time.Now()
	ctx, cancel := context.WithTimeout(ctx, leaseDuration/2)
	defer cancel()
	known, err := heartbeatScript.Run(ctx, d.client, []string{d.leases()}, d.Gateway).Int()
	if err != nil {
		return err
	}
	d.lease.renewed(at, known == 1)
	return nil
}

// Dead reports whether the lease of another gateway has expired, so that the gateway is known to be dead. silent is the time since its last
// heartbeat. If the lease may be missing only because the store has lost data, dead is false.
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
		return leaseDuration, true // no heartbeat since this gateway began to watch
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	silent = clock.Val().Sub(time.UnixMilli(ms))
	return silent, err == nil && silent > leaseDuration
}
