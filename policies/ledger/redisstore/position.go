package redisstore

import (
	_ "embed"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// position names a state of a ledger; later ones are larger. Writes is how often the
// Store has written in the epoch.
type position struct{ epoch, seq, writes int64 }

// before reports whether p is an earlier state than another, or knows of less.
func (p position) before(other position) bool {
	return p.epoch < other.epoch || p.epoch == other.epoch && (p.seq < other.seq || p.writes < other.writes)
}

// writesKept is how long after its last write the Store knows how often it has written:
// not as long as the ledger does; see ledger.lua.
const writesKept = 12 * time.Hour

// unknownWrites stands for the number of the Store's writes in a reply that does not tell it.
const unknownWrites = -1

// saw notes the latest state of a ledger. The same count of writes as before is no new
// write, and does not make the Store know it for longer.
func (s *Store) saw(org string, p position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of(org)
	was := l.seen
	switch {
	case p.epoch < was.epoch:
		return
	case p.epoch > was.epoch:
		p.writes = max(p.writes, 0)
		l.wrote = s.Now()
		l.seen = p
		return
	case p.writes == unknownWrites, p.writes == was.writes, p.writes < was.writes && !s.forgot(l):
		p.writes = was.writes
	default:
		l.wrote = s.Now()
	}
	p.seq = max(p.seq, was.seq)
	l.seen = p
}

// SetPosition tells the Store of a position that an earlier process of this gateway has seen. A ledger that is behind it was lost.
func (s *Store) SetPosition(org string, p ledger.Position) {
	s.saw(org, position{p.Epoch, p.Seq, unknownWrites})
}

// Position returns the latest position of a ledger that the Store was told of.
func (s *Store) Position(org string) ledger.Position {
	p := s.seen(org)
	return ledger.Position{Epoch: p.epoch, Seq: p.seq}
}

// seen is the latest state of a ledger that the Store was told of.
func (s *Store) seen(org string) position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current(s.of(org))
}

// current returns the latest position of a ledger that the Store still knows. The caller holds mu.
func (s *Store) current(l *orgLedger) position {
	p := l.seen
	if s.forgot(l) {
		p.writes = 0
	}
	return p
}

// forgot reports whether the Store does not know any more how often it has written to a
// ledger, with mu held.
func (s *Store) forgot(l *orgLedger) bool { return s.Now().Sub(l.wrote) > writesKept }
