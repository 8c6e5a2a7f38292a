package redisstore

import (
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// position identifies a state of a ledger; later states have larger positions. writes is the number of times the Store has written in
// the epoch.
type position struct{ epoch, seq, writes int64 }

// before reports whether p is an earlier state than other, or includes fewer writes.
func (p position) before(other position) bool {
	return p.epoch < other.epoch || p.epoch == other.epoch && (p.seq < other.seq || p.writes < other.writes)
}

// writesKept is the time after its latest write during which the Store remembers its number of writes. The ledger remembers the number
// longer; see ledger.lua.
const writesKept = 12 * time.Hour

// unknownWrites is the number of writes assumed for a reply that does not contain the number.
const unknownWrites = -1

// saw records the latest state of a ledger. An unchanged number of writes does not extend its retention.
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

// SetPosition sets a position known to an earlier process of this gateway. If the ledger is before that position, data was lost.
func (s *Store) SetPosition(org string, p ledger.Position) {
	s.saw(org, position{p.Epoch, p.Seq, unknownWrites})
}

// Position returns the latest known position of a ledger.
func (s *Store) Position(org string) ledger.Position {
	p := s.seen(org)
	return ledger.Position{Epoch: p.epoch, Seq: p.seq}
}

// seen returns the latest known position of a ledger.
func (s *Store) seen(org string) position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current(s.of(org))
}

// current returns the latest position of a ledger that has not expired. The caller holds mu.
func (s *Store) current(l *orgLedger) position {
	p := l.seen
	if s.forgot(l) {
		p.writes = 0
	}
	return p
}

// forgot reports whether the Store no longer remembers its number of writes to a ledger. The caller holds mu.
func (s *Store) forgot(l *orgLedger) bool { return s.Now().Sub(l.wrote) > writesKept }
