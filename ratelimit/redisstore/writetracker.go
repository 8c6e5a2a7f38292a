package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// writeTracker detects that a server has lost data although it was not replaced: it became the replica of a server with less data and was
// promoted again, or it was emptied. The server counts the writing requests of each Store, and each Store remembers the latest count. A
// server with a smaller count has lost some of these writes. The Store that detects the loss begins a new epoch at the server. All other
// gateways learn about the loss from the epoch in the reply to their next request or heartbeat.
//
// This needs no additional round trip. It does not detect the loss of data that was written more than a day ago, because no window of that
// time is still running.
type writeTracker struct {
	// writer is the unique name of the Store.
	writer string

	mu     sync.Mutex // guards groups
	groups map[string]remembered
}

// position is the number of times that a writer has written to a server in an epoch.
type position struct{ epoch, writes int64 }

// remembered is the latest position received by a Store.
type remembered struct {
	position
	// written is the time when the number of writes was received.
	written time.Time
}

// origin identifies the sender of a request to a script.
type origin struct {
	position
	key, writer string
	// announce begins a new epoch if the position is later than the server's.
	announce bool
}

func newWriteTracker() *writeTracker {
	return &writeTracker{writer: rand.Text(), groups: make(map[string]remembered)}
}

// last returns the position remembered for a group of organisations. A position older than a day is ignored, because the server has
// forgotten it too.
func (l *writeTracker) last(group string, now time.Time) position {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, ok := l.valid(group, now); ok {
		return r.position
	}
	return position{epoch: -1}
}

func (l *writeTracker) valid(group string, now time.Time) (remembered, bool) {
	r, ok := l.groups[group]
	return r, ok && now.Sub(r.written) < ratelimit.WindowSize(ratelimit.Windows-1)
}

// saw stores a position, and reports whether its epoch is later than the stored one.
func (l *writeTracker) saw(group string, p position, now time.Time) (later bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.valid(group, now)
	later = ok && p.epoch > r.epoch
	if !ok || later || p.epoch == r.epoch && p.writes > r.writes {
		l.groups[group] = remembered{p, now}
	}
	return later
}

// forget drops all positions after a change of the server, which does not know them.
func (l *writeTracker) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.groups)
}

// positionsKey returns the key of a group's table of positions.
func (s *Store) positionsKey(group string) string {
	if group == "" {
		return s.prefix + "positions"
	}
	return s.prefix + "{" + group + "}#positions"
}

// origin returns the origin of a request for a group.
func (s *Store) origin(group string) origin {
	o := origin{position: position{epoch: -1}, key: s.positionsKey(group), writer: s.watch.lineage.writer}
	if s.watch.config.Recovery >= 0 {
		o.position = s.watch.lineage.last(group, s.watch.config.Now())
	}
	return o
}

// run sends ops in one round trip and decodes the head of the reply into e. It returns [ratelimit.ErrRestarted] if the store has lost data.
// If there are operations, it also returns this error during the following pause.
func (s *Store) run(ctx context.Context, e *encoder, group string, ops []ratelimit.Op) error {
	epoch := s.watch.epoch.Load()
	if len(ops) > 0 && s.watch.pausing() {
		return ratelimit.ErrRestarted
	}
	from := s.origin(group)
	at, otherwise, err := s.send(ctx, e, from, ops)
	if err != nil {
		return err
	}
	// A replaced server is handled separately: all gateways detect it themselves.
	if err := s.watch.check(ctx, epoch); err != nil {
		return err
	}
	if otherwise && at.epoch <= from.epoch {
		from.announce = true
		if at, _, err = s.send(ctx, e, from, nil); err != nil {
			return fmt.Errorf("record in Redis that the server has lost data: %w", err)
		}
	}
	if s.watch.lineage.saw(group, at, s.watch.config.Now()) {
		s.watch.lost(at.epoch)
	}
	if otherwise {
		return ratelimit.ErrRestarted
	}
	return nil
}

// send makes one round trip.
func (s *Store) send(ctx context.Context, e *encoder, from origin, ops []ratelimit.Op) (p position, otherwise bool, err error) {
	keys, args := e.encode(s.prefix, from, ops)
	reply, err := s.apply.Run(ctx, s.once, keys, args...).Text()
	if err != nil {
		return position{}, false, err
	}
	return e.head(reply)
}
