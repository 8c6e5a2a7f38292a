package once

import (
	"context"
	"sync"
	"time"
)

// Death is how long a gateway that is not heard of can be alive.
const Death = 5 * time.Second

// beat is the time between two renewals of a lease.
const beat = time.Second

// lease says that this gateway is known to be alive.
type lease struct {
	mu sync.Mutex // guards what follows
	// since is when the renewals began that have not been interrupted, last the latest.
	since, last time.Time
}

// renewed notes a renewal that was sent at a time and acknowledged.
func (l *lease) renewed(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if apart(l.last, at) > Death/2 {
		l.since = at
	}
	l.last = at
}

// held reports whether the lease holds now, and has held since a time.
func (l *lease) held(since, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.since.After(since) && apart(l.last, now) <= Death/2
}

// apart is how long two times are apart: by the monotonic clock, which no one sets, or by
// the other, which goes on while the machine is suspended.
func apart(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// witness reports whether the store has been heard for as long as another gateway must
// be silent to be dead.
func (l *lease) witness(now time.Time) bool { return l.held(now.Add(-Death), now) }

// key is that of a gateway's lease.
func (d *Desk) key(gateway string) string { return d.prefix + "gateway/" + gateway }

// renew renews the lease.
func (d *Desk) renew(ctx context.Context) error {
	at := time.Now()
	ctx, cancel := context.WithTimeout(ctx, Death/2)
	defer cancel()
	if err := d.client.Set(ctx, d.key(d.Gateway), "", Death).Err(); err != nil {
		return err
	}
	d.lease.renewed(at)
	return nil
}

// dead reports whether another gateway is known to be dead: its lease has ended, and it
// was not the store that forgot it.
func (d *Desk) dead(ctx context.Context, gateway string) bool {
	if !d.lease.witness(time.Now()) {
		return false
	}
	n, err := d.client.Exists(ctx, d.key(gateway)).Result()
	return err == nil && n == 0 && d.lease.witness(time.Now())
}
