package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// writeTracker notices that the store has lost data while the server stayed the one it
// was: it became the replica of one that knew less and was promoted again, or was
// emptied. The server counts the exchanges by which each Store writes, each Store
// remembers the latest count it was told, and a server that knows of fewer has lost
// some of them. The Store that finds this out begins a new epoch at the server, which
// tells all others with their next exchange, or beat.
//
// It costs no exchange of its own. It does not notice the loss of data that
// was written more than a day ago, when no window of it runs any longer.
type writeTracker struct {
	// writer is the name of the Store, of no other one.
	writer string

	mu     sync.Mutex // guards groups
	groups map[string]remembered
}

// position is how far a server has come: how often a writer has written to it in
// an epoch.
type position struct{ epoch, writes int64 }

// remembered is the latest position that a Store was told.
type remembered struct {
	position
	// written is when the count of writes was told.
	written time.Time
}

// origin tells a script the source of an exchange.
type origin struct {
	position
	key, writer string
	// announce begins a new epoch if the position is later than the server's.
	announce bool
}

func newWriteTracker() *writeTracker {
	return &writeTracker{writer: rand.Text(), groups: make(map[string]remembered)}
}

// last returns the position remembered for a group of organisations. One of more than
// a day ago is none: the server has forgotten it, too.
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

// saw remembers a position, and reports whether it is of a later epoch than the one
// remembered.
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

// forget is for another server, which knows no position of this one.
func (l *writeTracker) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.groups)
}

// positionsKey is the key of the table of positions of a group.
func (s *Store) positionsKey(group string) string {
	if group == "" {
		return s.prefix + "positions"
	}
	return s.prefix + "{" + group + "}#positions"
}

// origin is that of an exchange for a group.
func (s *Store) origin(group string) origin {
	o := origin{position: position{epoch: -1}, key: s.positionsKey(group), writer: s.watch.lineage.writer}
	if s.watch.config.Recovery >= 0 {
		o.position = s.watch.lineage.last(group, s.watch.config.Now())
	}
	return o
}

// run makes one exchange and reads the head of its reply into e. It fails with
// [ratelimit.ErrRestarted] if the store has lost data, and during the pause after that
// unless there are no operations.
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
	// Another server is another matter: all gateways notice it by themselves.
	if err := s.watch.check(ctx, epoch); err != nil {
		return err
	}
	if otherwise && at.epoch <= from.epoch {
		from.announce = true
		if at, _, err = s.send(ctx, e, from, nil); err != nil {
			return fmt.Errorf("announce a loss of data: %w", err)
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

// send makes one exchange.
func (s *Store) send(ctx context.Context, e *encoder, from origin, ops []ratelimit.Op) (p position, otherwise bool, err error) {
	keys, args := e.encode(s.prefix, from, ops)
	reply, err := s.apply.Run(ctx, s.once, keys, args...).Text()
	if err != nil {
		return position{}, false, err
	}
	return e.head(reply)
}
