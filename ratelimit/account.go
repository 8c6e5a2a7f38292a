package ratelimit

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// tick is a time on this gateway's clock: the duration since the limiter was created.
type tick = time.Duration

// account holds what this gateway knows about one scope: the latest state reported by the store, and the leased permits. The lock of its
// shard guards it.
type account struct {
	org   string
	ref   Ref
	limit Limit
	// state is the latest state reported by the store. Its counts include leased permits.
	state State
	// ends estimates the end of each window of state. The estimates are never later than the actual ends, because the store reads its clock
	// after the request was sent, and at most late too early.
	ends [Windows]tick
	late time.Duration

	// heardAt is the time when state was received, and storeNow the store's clock at that time.
	heardAt  tick
	storeNow int64
	// stale is set if a reset was detected after heardAt.
	stale bool

	// held is the number of permits in each window of state that are charged but not spent yet.
	held [Windows]int64
	// listed is the part of held that the store lists as this gateway's lease, as of the last request.
	listed [Windows]int64
	// refused is the time of the store's latest refusal of a call, or 0 if the store has refused none. back is the longest time until other
	// gateways return the permits they held at that time; it is 0 for a window without such permits.
	refused tick
	back    [Windows]time.Duration
	// renewing is set while new permits are being fetched. No more permits are requested before dryUntil, because the store had no units
	// left.
	renewing bool
	dryUntil tick
	// spent counts the units used since the time metered. rate is the number of units per second before that time.
	spent   int64
	metered tick
	rate    float64

	// local counts the units admitted by FailLocal in the windows localIndex, including units that the store has charged in the meantime.
	// lastLocal is the time of the latest such admission.
	local      [Windows]int64
	localIndex [Windows]int64
	lastLocal  tick
	// owed is the Debt sent with each request about the scope; its Number is 0 without a debt. acked holds the units of owed that the store is
	// known to have charged.
	owed  Debt
	acked [Windows]int64

	// newer and older are earlier daily counts, taken at least one heartbeat apart.
	newer, older mark

	lastUse tick
}

// mark is the daily count at some time.
type mark struct {
	at         tick
	day, count int64
}

// lately returns the number of units that all gateways charged in one heartbeat interval before the store's latest reply, rounded up. It is
// the assumed maximum that a lost gateway has charged after the reply.
func (a *account) lately() int64 {
	since := a.older
	if since.day == 0 {
		since = a.newer // the store has answered once so far, or twice within one heartbeat interval
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

// runs reports whether window w certainly has not ended at the time now.
func (a *account) runs(w int, now tick) bool { return now < a.ends[w] }

// reset returns the time until window w ends. The result may be too long, but is never too short.
func (a *account) reset(w int, now tick) time.Duration {
	return max(0, a.ends[w]+a.late-now)
}

// full reports whether window w is known to have no room for a call of the given cost under limit. Permits held by this gateway count as
// room. If trust is not 0, the window is full only if the store has also refused a call within the last trust: after a longer time, other
// gateways may have returned permits.
func (a *account) full(w int, limit Limit, cost int64, now tick, trust time.Duration) bool {
	need := cost - a.held[w]
	return !a.stale && a.runs(w, now) && need > 0 && a.state.Count[w]+need > limit.room(w) &&
		(trust == 0 || a.refused > 0 && now < a.refused+trust)
}

// answer describes a round trip to the store: the store's clock (now), and the times when the request was sent and the reply was received
// (got).
type answer struct {
	now       int64
	sent, got tick
}

// learn applies the state s from a reply of the store. Replies can arrive out of order; learn ignores a reply that is older than the latest
// one.
func (a *account) learn(limit Limit, s *State, ans answer) {
	a.limit = limit
	if ans.now < a.storeNow || s.Generation < a.state.Generation {
		return
	}
	if s.Generation > a.state.Generation {
		// An operator has reset the scope. Permits from before the reset were charged to counts that no longer exist.
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
		a.ends[w] = ans.sent + s.UntilEnd(w, ans.now)
	}
	if a.newer.day == 0 || ans.got-a.newer.at >= HeartbeatInterval {
		a.older, a.newer = a.newer, mark{ans.got, a.state.Index[Windows-1], a.state.Count[Windows-1]}
	}
}

// shards is the number of independently locked parts of the table.
const shards = 64

// accountTable holds the accounts of a gateway. All scopes of an organisation are in the same shard, so that a decision about a call takes
// only one lock.
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

// shard returns the locked shard that contains org.
func (b *accountTable) shard(org string) *shard {
	s := &b.shards[maphash.String(b.seed, org)%shards]
	s.mu.Lock()
	return s
}

// find returns the account of a scope, or nil.
func (s *shard) find(org string, ref Ref) *account {
	return s.orgs[org][ref]
}

// open returns the account of a scope, and creates it if needed. If there are too many accounts, it evicts another one.
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

// evict drops an account from the largest shard. If the largest shard is locked, evict drops an account from own, the shard that the caller
// has locked.
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

// sample is the number of accounts examined to find one to evict. At most half of them belong to one organisation.
const sample = 16

// victim returns the least recently used of a few accounts, or nil. Accounts without permits and debts are preferred, because the permits
// and debts of an evicted account are lost.
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

// lessUseful reports whether a should be evicted before b.
func (a *account) lessUseful(b *account) bool {
	holdsA, holdsB := a.held != [Windows]int64{} || a.owes(), b.held != [Windows]int64{} || b.owes()
	if holdsA != holdsB {
		return holdsB
	}
	return a.lastUse < b.lastUse
}

// drop removes a, which may be nil. The caller holds the lock of its shard.
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

// each calls f for every account, with its shard locked. If f returns false, the account is dropped.
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
