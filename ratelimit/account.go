package ratelimit

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// tick is a time of this gateway: the time since the limiter was made.
type tick = time.Duration

// account is this gateway's view of one scope: the store's last answer, and
// the permits it holds. It is guarded by its shard's lock.
type account struct {
	org   string
	ref   Ref
	limit Limit
	// state is the latest the store told, leased permits included in its counts.
	state State
	// ends is when each window of state ends, never later than in truth: the
	// store's clock was read after the exchange had been sent. late is how much
	// later it may be at most.
	ends [Windows]tick
	late time.Duration

	// heardAt is when that was, storeNow the store's clock then.
	heardAt  tick
	storeNow int64
	// stale is set when a reset was heard of since.
	stale bool

	// held is the number of permits of each window of state that were charged
	// and not yet spent.
	held [Windows]int64
	// listed is the part of that listed in the store, as of the last exchange.
	listed [Windows]int64
	// refused is when the store last refused a call, 0 if it never did; back is how
	// long permits that other gateways held then may take to come back, 0 for a
	// window of which there were none.
	refused tick
	back    [Windows]time.Duration
	// renewing is set while new permits are on their way, dry until when it is
	// no use to ask for more.
	renewing bool
	dryUntil tick
	// spent counts the units used since metered; rate is units per second before.
	spent   int64
	metered tick
	rate    float64

	// local counts the units admitted by FailLocal in windows localIndex, last at lastLocal,
	// whether the store has charged them or not.
	local      [Windows]int64
	localIndex [Windows]int64
	lastLocal  tick
	// owed is the Debt that exchanges carry, with Number 0 if there is none; acked are its
	// units that the store has charged for sure.
	owed  Debt
	acked [Windows]int64

	// newer and older are earlier counts of the day, at least a beat apart.
	newer, older mark

	lastUse tick
}

// mark is the count of a day at some time.
type mark struct {
	at         tick
	day, count int64
}

// lately returns how many units all gateways charged in one beat before the store was
// last heard, rounded up: the most that a gateway which is lost may have charged since.
func (a *account) lately() int64 {
	since := a.older
	if since.day == 0 {
		since = a.newer // the store was heard once so far, or twice in one beat
	}
	charged := a.state.Count[Windows-1]
	if since.day == a.state.Index[Windows-1] {
		charged -= since.count
	}
	if passed := a.heardAt - since.at; passed > HeartbeatInterval {
		return int64(math.Ceil(float64(charged) * float64(HeartbeatInterval) / float64(passed)))
	}
	return charged
}

// runs reports whether window w of a's state is still running at now, for sure.
func (a *account) runs(w int, now tick) bool { return now < a.ends[w] }

// reset returns the time until window w ends, never too short.
func (a *account) reset(w int, now tick) time.Duration {
	return max(0, a.ends[w]+a.late-now)
}

// full reports whether window w is known to have no room for a call of cost under
// limit, permits held here included. If trust is not zero, only a refusal of the
// store is believed, and for that time: other gateways may return permits.
func (a *account) full(w int, limit Limit, cost int64, now tick, trust time.Duration) bool {
	need := cost - a.held[w]
	return !a.stale && a.runs(w, now) && need > 0 && a.state.Count[w]+need > limit.room(w) &&
		(trust == 0 || a.refused > 0 && now < a.refused+trust)
}

// answer is the store's answer in an exchange that began at sent and ended at
// got, when its clock stood at now.
type answer struct {
	now       int64
	sent, got tick
}

// learn takes over the state of an answer. Answers can overtake each other: one that
// is older than the latest is passed over.
func (a *account) learn(limit Limit, s *State, ans answer) {
	a.limit, a.lastUse = limit, ans.got
	if ans.now < a.storeNow || s.Generation < a.state.Generation {
		return
	}
	if s.Generation > a.state.Generation {
		// An operator has reset the scope. Permits from before were charged to
		// counts that are gone.
		a.held, a.state = [Windows]int64{}, State{Generation: s.Generation}
		if a.storeNow > 0 {
			a.local, a.owed = [Windows]int64{}, Debt{}
		}
	}
	a.stale = false
	same := ans.now == a.storeNow
	a.heardAt, a.storeNow, a.late = ans.got, ans.now, ans.got-ans.sent
	for w := range Windows {
		if s.Index[w] != a.state.Index[w] {
			a.held[w] = 0
		}
		if same && s.Index[w] == a.state.Index[w] {
			a.state.Count[w] = max(a.state.Count[w], s.Count[w])
			continue
		}
		a.state.Index[w], a.state.Count[w] = s.Index[w], s.Count[w]
		a.ends[w] = ans.sent + s.Reset(w, ans.now)
	}
	if a.newer.day == 0 || ans.got-a.newer.at >= HeartbeatInterval {
		a.older, a.newer = a.newer, mark{ans.got, a.state.Index[Windows-1], a.state.Count[Windows-1]}
	}
}

// shards is the number of independently locked parts of the book.
const shards = 64

// accountTable holds the accounts of a gateway. All scopes of one organisation are in
// one shard, so that one lock decides a call.
type accountTable struct {
	seed   maphash.Seed
	most   int64
	size   atomic.Int64
	shards [shards]shard
}

type shard struct {
	mu   sync.Mutex
	orgs map[string]map[Ref]*account
	size atomic.Int64
}

func newAccountTable(most int) *accountTable {
	b := &accountTable{seed: maphash.MakeSeed(), most: int64(most)}
	for i := range b.shards {
		b.shards[i].orgs = make(map[string]map[Ref]*account)
	}
	return b
}

// shard returns the part of the book that org is in, locked.
func (b *accountTable) shard(org string) *shard {
	s := &b.shards[maphash.String(b.seed, org)%shards]
	s.mu.Lock()
	return s
}

// find returns the account of a scope, or nil.
func (s *shard) find(org string, ref Ref) *account {
	return s.orgs[org][ref]
}

// open returns the account of a scope, made if there is none. With too many it
// forgets another one.
func (b *accountTable) open(s *shard, org string, ref Ref, now tick) *account {
	if a := s.find(org, ref); a != nil {
		return a
	}
	if b.size.Load() >= b.most {
		b.evict(s)
	}
	o := s.orgs[org]
	if o == nil {
		o = make(map[Ref]*account)
		s.orgs[org] = o
	}
	a := &account{org: org, ref: ref, metered: now, lastUse: now}
	o[ref] = a
	s.size.Add(1)
	b.size.Add(1)
	return a
}

// evict forgets an account of the largest shard, or of own, which is locked, if
// the largest is in use.
func (b *accountTable) evict(own *shard) {
	largest := own
	for i := range b.shards {
		if s := &b.shards[i]; s.size.Load() > largest.size.Load() {
			largest = s
		}
	}
	if largest == own || !largest.mu.TryLock() {
		b.drop(own, own.victim())
		return
	}
	defer largest.mu.Unlock()
	b.drop(largest, largest.victim())
}

// sample is how many accounts are looked at to find one to forget, at most half
// of them of one organisation.
const sample = 16

// victim returns the account least recently used among a few, nil if there are
// none. Its permits and debts are lost with it; accounts without any are preferred.
func (s *shard) victim() *account {
	var victim *account
	seen := 0
	for _, o := range s.orgs {
		end := seen + sample/2
		for _, a := range o {
			if seen == end {
				break
			}
			seen++
			if victim == nil || a.lessUseful(victim) {
				victim = a
			}
		}
		if seen >= sample {
			break
		}
	}
	return victim
}

// lessUseful reports whether a should be forgotten before b.
func (a *account) lessUseful(b *account) bool {
	holdsA, holdsB := a.held != [Windows]int64{} || a.owes(), b.held != [Windows]int64{} || b.owes()
	if holdsA != holdsB {
		return holdsB
	}
	return a.lastUse < b.lastUse
}

// drop forgets a, which may be nil. Its shard is locked.
func (b *accountTable) drop(s *shard, a *account) {
	if a == nil {
		return
	}
	o := s.orgs[a.org]
	delete(o, a.ref)
	if len(o) == 0 {
		delete(s.orgs, a.org)
	}
	s.size.Add(-1)
	b.size.Add(-1)
}

// each calls f for every account, under its shard's lock. f may drop it by
// returning false.
func (b *accountTable) each(f func(*account) (keep bool)) {
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		for _, o := range s.orgs {
			for _, a := range o {
				if !f(a) {
					b.drop(s, a)
				}
			}
		}
		s.mu.Unlock()
	}
}
