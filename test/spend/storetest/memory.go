package storetest

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Memory is the reference implementation of a [ledger.Store], in memory. It is safe for concurrent use.
type Memory struct {
	now   func() time.Time
	zones ledger.Zones

	mu   sync.Mutex // guards orgs, more and their contents
	orgs map[string]*accounts
	more map[string]*rest
}

// accounts is the ledger of one organisation.
type accounts struct {
	zone      ledger.Zone
	calendar  ledger.Calendar // of the days around the current time
	complete  bool
	token     string
	seq       int64
	epoch     int64
	began     int64 // start of the epoch
	accounts  map[ledger.Scope]*account
	resources map[string]*ledger.Record
	holds     map[string]*hold
	settled   map[string]int64             // ended holds, with the time of their end
	wishes    map[string]map[string]string // fingerprint -> intent ID -> row
	jobs      map[ledger.Job]note
	history   memoryHistory
	gone      map[string]gone // by ID
}

// gone is the last record of a resource removed by an adjustment, and the time until which its owner is kept.
type gone struct {
	ledger.Record

	until int64
}

// note is the owner of a job, and the time until which it is kept.
type note struct {
	owner ledger.Owner
	until int64
}

type hold struct {
	ledger.Hold

	base int64 // version of the resource when the hold was made
	at   int64
}

// NewMemory returns an empty store that uses the given clock and the zones of organisations.
func NewMemory(now func() time.Time, zones ledger.Zones) *Memory {
	return &Memory{now: now, zones: zones, orgs: make(map[string]*accounts), more: make(map[string]*rest)}
}

// org returns the ledger of an organisation with an up-to-date calendar, and the current time. The caller holds mu.
func (m *Memory) org(id string) (l *accounts, now int64) {
	l = m.orgs[id]
	if l == nil {
		l = &accounts{
			accounts: make(map[ledger.Scope]*account), resources: make(map[string]*ledger.Record),
			holds: make(map[string]*hold), settled: make(map[string]int64), wishes: make(map[string]map[string]string),
			jobs: make(map[ledger.Job]note), gone: make(map[string]gone),
		}
		m.orgs[id] = l
	}
	at := m.now()
	l.zone = m.zones.Of(id)
	l.calendar = l.zone.Calendar(at)
	return l, at.UnixMilli()
}

// Load replaces the ledger of an organisation with a state.
func (m *Memory) Load(org string, s *ledger.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.orgs, org)
	l, now := m.org(org)
	l.complete = s.Complete
	for _, b := range s.Balances {
		a := newAccount(now, &l.calendar)
		a.load(&b)
		l.accounts[b.Scope] = a
	}
	for _, r := range s.Resources {
		l.resources[r.ID] = &r
	}
	for _, h := range s.Holds {
		l.holds[h.ID] = &hold{Hold: h, at: h.At.UnixMilli()}
	}
}

// open locks the ledger of an organisation until done is called, and returns the results of org.
func (m *Memory) open(id string) (l *accounts, now int64, done func()) {
	m.mu.Lock()
	l, now = m.org(id)
	return l, now, m.mu.Unlock
}

// of returns the up-to-date accounts of an owner.
func (l *accounts) of(o ledger.Owner, now int64) []*account {
	scopes := o.Scopes()
	accounts := make([]*account, len(scopes))
	for i, s := range scopes {
		accounts[i] = l.account(s, now)
	}
	return accounts
}

// account returns the up-to-date account of a scope.
func (l *accounts) account(s ledger.Scope, now int64) *account {
	if l.accounts[s] == nil {
		l.accounts[s] = newAccount(now, &l.calendar)
	}
	l.accounts[s].touch(now, &l.calendar)
	return l.accounts[s]
}

// Reserve implements Store.
func (m *Memory) Reserve(_ context.Context, org string, r *ledger.Reservation) (ledger.Outcome, error) {
	l, now, done := m.open(org)
	defer done()
	out := ledger.Outcome{Now: time.UnixMilli(now), Epoch: l.epoch, Ends: l.zone.Ends(time.UnixMilli(now))}
	held, record := l.holds[r.Hold], l.resources[r.Resource]
	switch {
	case l.hasEnded(r.Hold, now):
		out.Status = ledger.Settled
		return out, nil
	case !l.complete && !r.Free:
		out.Status = ledger.Closed
		return out, nil
	case held == nil && l.repeats(r.Intent):
		out.Status = ledger.Repeated
		return out, nil
	}
	var before ledger.Amounts
	if r.Resource != "" {
		var owner ledger.Owner
		if record != nil {
			owner, before = record.Owner, record.Amounts
		}
		if owner != r.Owner {
			out.Status, out.Owner = ledger.OtherOwner, owner
			return out, nil
		}
	}
	more := r.After.Clamped().Excess(before)
	if r.Free || held != nil {
		more = ledger.Amounts{}
	}
	var taken []*hold
	until, needed := time.Time{}, more
	for _, h := range l.holds {
		if record != nil && record.Pending > 0 && h.CoveredBy(r.Resource, r.Owner, more) {
			taken, needed = append(taken, h), needed.Excess(h.Amounts)
			if h.Until.After(until) {
				until = h.Until
			}
		}
	}
	out.Held = more
	if held != nil {
		out.Held = held.Amounts
	}
	scopes := r.Owner.Scopes()
	accounts := make([]account, len(scopes)) // written back only if there is room
	for i, s := range scopes {
		a := &accounts[i]
		*a = *cmp.Or(l.accounts[s], newAccount(now, &l.calendar))
		a.touch(now, &l.calendar)
		out.Levels = append(out.Levels, a.levels(needed, r.Horizon, &l.calendar))
		for c, limit := range r.Limits[i] {
			if limit == 0 {
				out.Levels[i][c] = ledger.Level{}
			}
			if out.Status == ledger.Admitted && limit > 0 && out.Levels[i][c].Needs > 0 && out.Levels[i][c].Sum() > limit {
				out.Status, out.Scope, out.Ceiling = ledger.Refused, i, c
			}
		}
	}
	if out.Status == ledger.Refused || held != nil {
		return out, nil
	}
	for i, s := range scopes {
		l.accounts[s] = &accounts[i]
	}
	for _, h := range taken {
		l.end(h, &ledger.Settlement{Hold: h.ID, End: ledger.Release}, now)
	}
	for _, a := range l.of(r.Owner, now) {
		add(&a.reserved, more, 1)
		a.correct(more[ledger.Burn], now, a.at)
	}
	h := &hold{Hold: ledger.Hold{
		ID: r.Hold, Kind: r.Kind, Resource: r.Resource, Owner: r.Owner, Amounts: more, Metadata: r.Metadata, Holder: r.Holder,
		At: time.UnixMilli(now), Until: until,
	}, at: now}
	if record != nil {
		record.Pending++
		if len(taken) == 0 {
			h.base = record.Version
		}
	}
	l.holds[r.Hold] = h
	l.note(r.Intent, now)
	return out, nil
}

// ended is the retention time of ended holds, in milliseconds.
const ended = hour

// hasEnded reports whether a hold has ended, or whether a resource is gone, given its [tombstone].
func (l *accounts) hasEnded(hold string, now int64) bool {
	at, ok := l.settled[hold]
	return ok && at >= now-ended
}

// forget records the end of a hold. It keeps the record longer for jobs, whose results the platform reports for longer.
func (l *accounts) forget(hold string, now int64) {
	if strings.HasPrefix(hold, "job ") {
		now += 23 * hour
	}
	l.settled[hold] = now
}

// tombstone returns the name under which the ledger records that a resource was removed.
func tombstone(resource string) string { return "gone:" + resource }

// Settle implements Store.
func (m *Memory) Settle(_ context.Context, org string, s *ledger.Settlement) error {
	l, now, done := m.open(org)
	defer done()
	l.finish(s.Intent)
	h := l.holds[s.Hold]
	if h == nil && l.hasEnded(s.Hold, now) {
		return nil
	}
	switch {
	case s.End == ledger.Release && h != nil && !h.Open && !h.Until.IsZero(): // it has taken over open holds
		l.open(h, &ledger.Settlement{ResolveWithin: s.ResolveWithin, NewID: s.Hold + "-open"}, now)
	case s.End != ledger.Open:
		l.end(h, s, now)
	case h != nil:
		l.open(h, s, now)
	}
	return nil
}

// open marks a hold as open, under another ID if the settlement has one.
func (l *accounts) open(h *hold, s *ledger.Settlement, now int64) {
	until := time.UnixMilli(now + s.ResolveWithin.Milliseconds())
	if h.Open || until.After(h.Until) {
		h.Until = until
	}
	h.Open = true
	if s.NewID == "" || s.NewID == h.ID {
		return
	}
	if other := l.holds[s.NewID]; other != nil {
		l.end(other, &ledger.Settlement{Hold: s.NewID, End: ledger.Commit, WholeReservation: true}, now)
	}
	delete(l.holds, h.ID)
	l.forget(h.ID, now)
	h.ID = s.NewID
	l.holds[h.ID] = h
}

// end ends a hold, which may be nil.
func (l *accounts) end(h *hold, s *ledger.Settlement, now int64) {
	l.forget(s.Hold, now)
	if s.NewID != "" {
		l.forget(s.NewID, now)
	}
	maps.DeleteFunc(l.settled, func(_ string, at int64) bool { return at < now-ended })
	if h != nil {
		delete(l.holds, s.Hold)
		for _, a := range l.of(h.Owner, now) {
			add(&a.reserved, h.Amounts, -1)
			a.correct(-h.Amounts[ledger.Burn], h.at, a.at)
		}
		if r := l.resources[h.Resource]; r != nil {
			r.Pending = max(0, r.Pending-1)
		}
	}
	switch {
	case s.End == ledger.Commit && s.Resource != "":
		l.commit(s, h, now)
	case s.End == ledger.Commit && (h != nil || l.began > now-24*hour):
		if h == nil { // the hold was lost together with other data of the store
			h = &hold{Hold: ledger.Hold{Kind: s.Kind, Owner: s.Owner, Metadata: s.Metadata, Amounts: s.Amounts.Clamped()}}
			if s.Job != nil {
				noted := l.jobs[*s.Job]
				if noted.until <= now {
					return
				}
				h.Owner = noted.owner
			}
		}
		spent := s.Amounts.Clamped()[ledger.Cost]
		if s.WholeReservation {
			spent = h.MaxCost()
		}
		for _, a := range l.of(h.Owner, now) {
			a.spend(spent)
		}
		l.history.once(h, spent, now)
	}
}

// commit records the new state of a resource.
func (l *accounts) commit(s *ledger.Settlement, h *hold, now int64) {
	r := l.resources[s.Resource]
	next := &ledger.Record{
		ID: s.Resource, Kind: s.Kind, Owner: s.Owner, Metadata: s.Metadata, Amounts: s.Amounts.Clamped(), Since: time.UnixMilli(now),
	}
	alone := h != nil
	if h != nil {
		next.Kind, next.Owner, next.Metadata = h.Kind, h.Owner, h.Metadata
	}
	if r != nil {
		next.Pending, next.Since = r.Pending, r.Since
		if h == nil || h.Resource != "" {
			next.Owner, next.Metadata = r.Owner, r.Metadata
			alone = h != nil && r.Version == h.base && r.Pending == 0
		}
	}
	if s.Gone && r != nil && r.Kind != next.Kind {
		return // the ID belongs to a resource of another kind
	}
	if s.Gone {
		l.forget(tombstone(s.Resource), now)
	}
	switch {
	case r == nil && l.hasEnded(tombstone(s.Resource), now):
		return // removed before this commit arrived
	case s.Gone:
		next = nil
	case r != nil && !alone:
		next.Amounts = larger(next.Amounts, r.Amounts)
	}
	l.replace(r, next, s.From, now)
	if h != nil && next != nil && s.From.IsZero() {
		var before ledger.Amounts
		if r != nil && r.Owner == next.Owner {
			before = r.Amounts
		}
		more := max(0, next.Amounts[ledger.Burn]-before[ledger.Burn])
		for _, a := range l.of(next.Owner, now) {
			a.correct(more, h.at, now)
		}
		l.history.note(next, more, h.at)
		l.history.note(next, -more, now)
	}
}

// replace replaces one record of a resource with another; either may be nil. The change takes effect at from, if set, but neither after
// now nor before the cost of old began.
func (l *accounts) replace(old, next *ledger.Record, from time.Time, now int64) {
	at := now
	if !from.IsZero() {
		at = min(at, from.UnixMilli())
	}
	if old != nil {
		at = max(at, old.Since.UnixMilli())
	}
	l.rated(old, next, at, !from.IsZero())
	if old != nil {
		l.enter(old, -1, at, now)
		delete(l.resources, old.ID)
	}
	l.seq++
	if next == nil {
		return
	}
	l.enter(next, 1, at, now)
	if !from.IsZero() && old == nil {
		next.Since = time.UnixMilli(at)
	}
	next.Version, next.Changed = l.seq, time.UnixMilli(now)
	if old != nil && old.Amounts == next.Amounts {
		next.Changed = old.Changed
	}
	l.resources[next.ID] = next
}

// enter adds a record to the accounts of its owner, effective from a time; with a negative sign it subtracts the record.
func (l *accounts) enter(r *ledger.Record, sign, at, now int64) {
	for _, a := range l.of(r.Owner, now) {
		add(&a.committed, r.Amounts, sign)
		if at < a.at {
			a.correct(sign*r.Amounts[ledger.Burn], at, a.at)
		}
	}
}

// rated records, for the roll-ups, that one record replaces another at a time, which may have been rolled up already.
func (l *accounts) rated(old, next *ledger.Record, at int64, earlier bool) {
	switch {
	case old != nil && next != nil && old.Owner == next.Owner && !earlier:
		l.history.note(next, next.Amounts[ledger.Burn]-old.Amounts[ledger.Burn], at)
		return
	case old != nil:
		l.history.note(old, -old.Amounts[ledger.Burn], at)
	}
	if next != nil {
		l.history.note(next, next.Amounts[ledger.Burn], at)
	}
}

// BeginRebuild implements Store.
func (m *Memory) BeginRebuild(_ context.Context, org, token string) error {
	l, now, done := m.open(org)
	defer done()
	l.token, l.began = token, now
	l.epoch++
	return nil
}

// FinishRebuild implements Store.
func (m *Memory) FinishRebuild(_ context.Context, org, token string) (bool, error) {
	l, _, done := m.open(org)
	defer done()
	if l.token == token {
		l.complete = true
	}
	return l.complete, nil
}
