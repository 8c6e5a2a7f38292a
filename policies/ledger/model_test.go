package ledger

import (
	"context"
	"maps"
	"math"
	"time"
)

// Model is the reference implementation of a [Store], in memory.
type Model struct {
	*Memory

	more map[string]*rest // by organisation; guarded by the mutex of the Memory
}

// rest is what a Model keeps of an organisation besides its Memory.
type rest struct {
	repairs  int64
	offers   map[int64]*offered
	noticed  map[string]string
	accruals map[string]madeAccrual // by request ID
}

// NewModel returns an empty Model that uses the given clock and the zones of organisations.
func NewModel(now func() time.Time, zones Zones) *Model {
	return &Model{Memory: NewMemory(now, zones), more: make(map[string]*rest)}
}

// Become gives the store the contents of another, which nothing else uses.
func (m *Model) Become(other *Model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orgs, m.more = other.orgs, other.more
}

// rest returns the rest of an organisation. The caller holds the mutex.
func (m *Model) rest(org string) *rest {
	if m.more[org] == nil {
		m.more[org] = &rest{noticed: make(map[string]string), accruals: make(map[string]madeAccrual)}
	}
	return m.more[org]
}

// Show implements Store.
func (m *Model) Show(ctx context.Context, org string) (State, error) {
	m.mu.Lock()
	repairs := m.rest(org).repairs // before the sums, so that a repair in between is not made again
	m.mu.Unlock()
	s, err := m.Memory.Show(ctx, org)
	s.Repairs = repairs
	return s, err
}

// Holds implements Store.
func (m *Model) Holds(_ context.Context, org string) (State, error) {
	l, now, done := m.open(org)
	defer done()
	s := State{Now: time.UnixMilli(now), Zone: l.zone}
	for _, h := range l.holds {
		s.Holds = append(s.Holds, h.Hold)
	}
	s.Sort()
	return s, nil
}

// Repair implements Store.
func (m *Model) Repair(_ context.Context, org string, r *Repair) (bool, error) {
	l, now, done := m.open(org)
	defer done()
	rest := m.rest(org)
	if rest.repairs != r.Version {
		return false, nil
	}
	for _, d := range r.Differences {
		a := l.account(d.Scope, now)
		a.committed.add(d.Committed, 1)
		a.reserved.add(d.Reserved, 1)
	}
	rest.repairs++
	return true, nil
}

// Noticed implements Notices.
func (m *Model) Noticed(_ context.Context, org string) (map[string]string, error) {
	_, _, done := m.open(org)
	defer done()
	return maps.Clone(m.rest(org).noticed), nil
}

// Notice implements Notices.
func (m *Model) Notice(_ context.Context, org, name, value string) error {
	_, _, done := m.open(org)
	defer done()
	noticed := m.rest(org).noticed
	if noticed[name] = value; value == "" {
		delete(noticed, name)
	}
	return nil
}

// madeAccrual is an applied adjustment or move, kept until its ID expires.
type madeAccrual struct {
	request string
	outcome AccrualOutcome
	until   int64
}

// AdjustAccrual implements Store.
func (m *Model) AdjustAccrual(_ context.Context, org string, a *AccrualAdjustment) (AccrualOutcome, error) {
	l, now, done := m.open(org)
	defer done()
	if out, known := m.rest(org).earlier(a.ID, a.Fingerprint(), now); known {
		return out, nil
	}
	if !l.complete {
		return AccrualOutcome{Status: AccrualClosed}, nil
	}
	accounts := l.of(a.Owner, now)
	own := accounts[0]
	change := a.changes(own)
	for i, p := range own.periods {
		if p.accrued+change[i] < 0 {
			return AccrualOutcome{Status: AccrualBelowZero, Accrued: accruedOf(own.accrued())}, nil
		}
	}
	for _, account := range accounts {
		for i := range account.periods {
			account.periods[i].accrued = max(0, account.periods[i].accrued+change[i])
		}
	}
	if once := change[a.Period.Index()]; once != 0 {
		item := NewRunItem(KindAdjustment, a.Owner, a.Metadata())
		l.history.Changes = append(l.history.Changes, Change{Item: item, Once: once, At: time.UnixMilli(l.of(Owner{}, now)[0].at)})
	}
	return m.rest(org).made(l, a.ID, a.Fingerprint(), own, change, now+AccrualRetention.Milliseconds()), nil
}

// MoveAccrual implements Store.
func (m *Model) MoveAccrual(_ context.Context, org string, a *AccrualMove) (AccrualOutcome, error) {
	l, now, done := m.open(org)
	defer done()
	if out, known := m.rest(org).earlier(a.ID, a.Fingerprint(), now); known {
		return out, nil
	}
	from := Scope{KindTeam, a.From}
	switch {
	case !l.complete:
		return AccrualOutcome{Status: AccrualClosed}, nil
	case l.accounts[from] == nil, a.Key != "" && l.accounts[Scope{KindKey, a.Key}] == nil:
		return AccrualOutcome{}, nil
	}
	source, target := l.of(Owner{Team: a.From}, now)[0], l.of(Owner{Team: a.To}, now)[0]
	measure := source
	if a.Key != "" {
		measure = l.of(Owner{Key: a.Key}, now)[0]
	}
	var change [periods]int64
	for i := range source.periods {
		change[i] = min(source.periods[i].accrued, measure.periods[i].accrued)
		source.periods[i].accrued -= change[i]
		target.periods[i].accrued += change[i]
	}
	if a.Key == "" && source.empty() {
		delete(l.accounts, from)
	}
	until := now + AccrualRetention.Milliseconds()
	if a.Permanent {
		until = math.MaxInt64
	}
	return m.rest(org).made(l, a.ID, a.Fingerprint(), target, change, until), nil
}

// earlier returns the outcome of an earlier request with the same ID, and reports whether there was one.
func (r *rest) earlier(id, request string, now int64) (out AccrualOutcome, known bool) {
	was, known := r.accruals[id]
	if id == "" || !known || was.until <= now {
		return out, false
	}
	if out = was.outcome; was.request != request {
		return AccrualOutcome{Status: AccrualConflict}, true
	}
	out.Status = AccrualRepeated
	return out, true
}

// made records a change of an account until a time, and returns its outcome.
func (r *rest) made(l *ledger, id, request string, a *account, change [periods]int64, until int64) AccrualOutcome {
	l.seq++
	out := AccrualOutcome{Change: accruedOf(change), Accrued: accruedOf(a.accrued())}
	if id != "" {
		r.accruals[id] = madeAccrual{request, out, until}
	}
	return out
}

// empty reports whether all amounts and accrued costs of the account are zero.
func (a *account) empty() bool {
	return a.committed == (Amounts{}) && a.reserved == (Amounts{}) && a.accrued() == [periods]int64{}
}

// offered holds the offers for one rebuild.
type offered struct {
	owners   map[string]Ownership
	at       map[string]time.Time // times of the owners, by resource
	gateways []string
}

// Heads implements RecoveryStore.
func (m *Model) Heads(_ context.Context, orgs []string) ([]Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	heads := make([]Head, len(orgs))
	for i, org := range orgs {
		l, _ := m.org(org)
		heads[i] = Head{Epoch: l.epoch, Seq: l.seq, Complete: l.complete}
	}
	return heads, nil
}

// Offer implements RecoveryStore.
func (m *Model) Offer(_ context.Context, org string, o *Offer) error {
	l, now, done := m.open(org)
	defer done()
	all := m.rest(org).offer(o.Epoch)
	for id, owned := range o.Owners {
		was, known := all.owners[id]
		if nobody := (Owner{}); !known || was.Owner == nobody || owned.Owner != nobody && o.At.After(all.at[id]) {
			all.owners[id], all.at[id] = owned, o.At
		}
	}
	for _, b := range o.Balances {
		other := accountOf(b.Encode(o.At, o.Zone))
		other.touch(now, &l.calendar)
		l.account(b.Scope, now).raise(other)
	}
	return nil
}

// Restore implements RecoveryStore.
func (m *Model) Restore(_ context.Context, org string, r *Restoration) (restored []Hold, err error) {
	l, now, done := m.open(org)
	defer done()
	if l.epoch != r.Epoch {
		return nil, ErrEpochChanged
	}
	for _, id := range r.Ended {
		if h := l.holds[id]; h != nil {
			l.end(h, &Settlement{Hold: id, End: Release}, now)
		}
		l.forget(id, now)
	}
	for i := range r.Holds {
		h := &r.Holds[i]
		if held := l.holds[h.ID]; held != nil {
			if h.Open && !held.Open {
				held.Open, held.Until = true, h.Until
			}
			continue
		}
		if l.hasEnded(h.ID, now) {
			continue
		}
		for _, a := range l.of(h.Owner, now) {
			a.reserved.add(h.Amounts, 1)
			if !h.Accrued {
				a.correct(h.Amounts[Burn], h.At.UnixMilli(), a.at)
			}
		}
		l.holds[h.ID] = &hold{Hold: h.Hold, at: h.At.UnixMilli()}
		restored = append(restored, h.Hold)
	}
	for _, j := range r.Jobs {
		if _, noted := l.jobs[j.Job]; !noted {
			l.jobs[j.Job] = note{j.Owner, j.Until.UnixMilli()}
		}
	}
	return restored, nil
}

// MarkRestored implements RecoveryStore.
func (m *Model) MarkRestored(_ context.Context, org string, epoch int64, gateway string) error {
	_, _, done := m.open(org)
	defer done()
	all := m.rest(org).offer(epoch)
	all.gateways = append(all.gateways, gateway)
	return nil
}

// offer returns the offers for a rebuild.
func (r *rest) offer(epoch int64) *offered {
	if r.offers == nil {
		r.offers = make(map[int64]*offered)
	}
	if r.offers[epoch] == nil {
		r.offers[epoch] = &offered{owners: make(map[string]Ownership), at: make(map[string]time.Time)}
	}
	return r.offers[epoch]
}

// raise raises the accrued costs to those of another account, for the periods that are the same.
func (a *account) raise(other *account) {
	for i := range a.periods {
		if p := other.periods[i]; p.start == a.periods[i].start && p.accrued > a.periods[i].accrued {
			a.periods[i] = p
		}
	}
}

// Offers implements RecoveryStore.
func (m *Model) Offers(_ context.Context, org string, epoch int64) (map[string]Ownership, []string, error) {
	_, _, done := m.open(org)
	defer done()
	if all := m.rest(org).offers[epoch]; all != nil {
		return maps.Clone(all.owners), all.gateways, nil
	}
	return nil, nil, nil
}

// Position implements RecoveryStore. It returns the zero Position, because a process does not lose its memory.
func (*Model) Position(string) Position { return Position{} }

// SetPosition implements RecoveryStore.
func (*Model) SetPosition(string, Position) {}

// Lock implements Store. It does not lock anything, because overlapping passes over a Memory are harmless.
func (*Model) Lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }
