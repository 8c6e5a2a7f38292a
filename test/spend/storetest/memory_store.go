package storetest

import (
	"context"
	"maps"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// rest is what a Memory keeps of an organisation besides its ledger.
type rest struct {
	repairs  int64
	offers   map[int64]*offered
	noticed  map[string]string
	accruals map[string]madeAccrual // by request ID
}

// Become gives the store the contents of another, which nothing else uses.
func (m *Memory) Become(other *Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orgs, m.more = other.orgs, other.more
}

// rest returns the rest of an organisation. The caller holds the mutex.
func (m *Memory) rest(org string) *rest {
	if m.more[org] == nil {
		m.more[org] = &rest{noticed: make(map[string]string), accruals: make(map[string]madeAccrual)}
	}
	return m.more[org]
}

// Holds implements Store.
func (m *Memory) Holds(_ context.Context, org string) (ledger.State, error) {
	l, now, done := m.open(org)
	defer done()
	s := ledger.State{Now: time.UnixMilli(now), Zone: l.zone}
	for _, h := range l.holds {
		s.Holds = append(s.Holds, h.Hold)
	}
	s.Sort()
	return s, nil
}

// Repair implements Store.
func (m *Memory) Repair(_ context.Context, org string, r *ledger.Repair) (bool, error) {
	l, now, done := m.open(org)
	defer done()
	rest := m.rest(org)
	if rest.repairs != r.Version {
		return false, nil
	}
	for _, d := range r.Differences {
		a := l.account(d.Scope, now)
		add(&a.committed, d.Committed, 1)
		add(&a.reserved, d.Reserved, 1)
	}
	rest.repairs++
	return true, nil
}

// Noticed implements Notices.
func (m *Memory) Noticed(_ context.Context, org string) (map[string]string, error) {
	_, _, done := m.open(org)
	defer done()
	return maps.Clone(m.rest(org).noticed), nil
}

// Notice implements Notices.
func (m *Memory) Notice(_ context.Context, org, name, value string) error {
	_, _, done := m.open(org)
	defer done()
	noticed := m.rest(org).noticed
	if noticed[name] = value; value == "" {
		delete(noticed, name)
	}
	return nil
}

// madeAccrual is an applied adjustment, kept until its ID expires.
type madeAccrual struct {
	request string
	outcome ledger.AccrualOutcome
	until   int64
}

// AdjustAccrual implements Store.
func (m *Memory) AdjustAccrual(_ context.Context, org string, a *ledger.AccrualAdjustment) (ledger.AccrualOutcome, error) {
	l, now, done := m.open(org)
	defer done()
	if out, known := m.rest(org).earlier(a.ID, a.Fingerprint(), now); known {
		return out, nil
	}
	if !l.complete {
		return ledger.AccrualOutcome{Status: ledger.AccrualClosed}, nil
	}
	accounts := l.of(a.Owner, now)
	own := accounts[0]
	change := changes(a, own)
	for i, p := range own.periods {
		if p.accrued+change[i] < 0 {
			return ledger.AccrualOutcome{Status: ledger.AccrualBelowZero, Accrued: accruedOf(own.accrued())}, nil
		}
	}
	left := change // what is subtracted from one scope was subtracted from the wider ones at most once
	for _, account := range accounts {
		for i := range account.periods {
			left[i] = max(left[i], -account.periods[i].accrued)
			account.periods[i].accrued += left[i]
		}
	}
	if once := left[a.Period.Index()]; once != 0 {
		item := ledger.NewRunItem(ledger.KindAdjustment, a.Owner, a.Metadata())
		l.history.Changes = append(l.history.Changes, ledger.Change{Item: item, Once: once, At: time.UnixMilli(now)})
	}
	return m.rest(org).made(l, a.ID, a.Fingerprint(), own, change, now+ledger.AccrualRetention.Milliseconds()), nil
}

// changes returns the amount that an adjustment adds to each period of the account own.
func changes(a *ledger.AccrualAdjustment, own *account) (change [periods]int64) {
	first, micro := a.Period.Index(), a.Micro
	switch a.Kind {
	case ledger.Credit:
		micro = -micro
	case ledger.Reset:
		micro = -own.periods[first].accrued
	case ledger.Correction:
	}
	for i, p := range own.periods {
		switch {
		case a.Kind == ledger.Reset && i < first && p.start >= own.periods[first].start: // a shorter period within the reset period
			change[i] = -p.accrued
		case a.Kind == ledger.Reset, first == week && (i == month || i == quarter): // the week may have begun before the month or quarter
			change[i] = max(micro, -p.accrued)
		case i >= first:
			change[i] = micro
		}
	}
	return change
}

// MoveAccrual implements Store.
func (m *Memory) MoveAccrual(_ context.Context, org string, a *ledger.AccrualMove) (ledger.AccrualOutcome, error) {
	l, now, done := m.open(org)
	defer done()
	from, past := ledger.Scope{Kind: ledger.KindTeam, ID: a.From}, &l.history
	switch {
	case !l.complete:
		return ledger.AccrualOutcome{Status: ledger.AccrualClosed}, nil
	case past.Version != a.Version:
		return ledger.AccrualOutcome{Status: ledger.AccrualConflict}, nil
	case l.accounts[from] == nil, a.Key != "" && l.accounts[ledger.Scope{Kind: ledger.KindKey, ID: a.Key}] == nil:
		return ledger.AccrualOutcome{}, nil
	}
	source, target := l.of(ledger.Owner{Team: a.From}, now)[0], l.of(ledger.Owner{Team: a.To}, now)[0]
	var change [periods]int64
	for i, most := range []int64{a.Amounts.Day, a.Amounts.Week, a.Amounts.Month, a.Amounts.Quarter, a.Amounts.Total} {
		if change[i] = source.periods[i].accrued; a.Key != "" {
			change[i] = min(change[i], most, l.of(ledger.Owner{Key: a.Key}, now)[0].periods[i].accrued)
		}
		source.periods[i].accrued -= change[i]
		target.periods[i].accrued += change[i]
	}
	if a.Key == "" && source.empty() {
		delete(l.accounts, from)
	}
	past.Version, past.Transfers = past.Version+1, a.Transfers
	return m.rest(org).made(l, "", "", target, change, 0), nil
}

// earlier returns the outcome of an earlier request with the same ID, and reports whether there was one.
func (r *rest) earlier(id, request string, now int64) (out ledger.AccrualOutcome, known bool) {
	was, known := r.accruals[id]
	if id == "" || !known || was.until <= now {
		return out, false
	}
	if out = was.outcome; was.request != request {
		return ledger.AccrualOutcome{Status: ledger.AccrualConflict}, true
	}
	out.Status = ledger.AccrualRepeated
	return out, true
}

// made records a change of an account until a time, and returns its outcome.
func (r *rest) made(l *accounts, id, request string, a *account, change [periods]int64, until int64) ledger.AccrualOutcome {
	l.seq++
	out := ledger.AccrualOutcome{Change: accruedOf(change), Accrued: accruedOf(a.accrued())}
	if id != "" {
		r.accruals[id] = madeAccrual{request, out, until}
	}
	return out
}

// offered holds the offers for one rebuild.
type offered struct {
	owners   map[string]ledger.Ownership
	at       map[string]time.Time // times of the owners, by resource
	gateways []string
}

// Heads implements RecoveryStore.
func (m *Memory) Heads(_ context.Context, orgs []string) ([]ledger.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	heads := make([]ledger.Head, len(orgs))
	for i, org := range orgs {
		l, _ := m.org(org)
		heads[i] = ledger.Head{Epoch: l.epoch, Seq: l.seq, Complete: l.complete}
	}
	return heads, nil
}

// Offer implements RecoveryStore.
func (m *Memory) Offer(_ context.Context, org string, o *ledger.Offer) error {
	l, now, done := m.open(org)
	defer done()
	all := m.rest(org).offer(o.Epoch)
	for id, owned := range o.Owners {
		was, known := all.owners[id]
		if nobody := (ledger.Owner{}); !known || was.Owner == nobody || owned.Owner != nobody && o.At.After(all.at[id]) {
			all.owners[id], all.at[id] = owned, o.At
		}
	}
	for _, b := range o.Balances {
		at := o.Zone.Calendar(o.At)
		other := newAccount(o.At.UnixMilli(), &at)
		other.load(&b)
		other.touch(now, &l.calendar)
		l.account(b.Scope, now).raise(other)
	}
	return nil
}

// Restore implements RecoveryStore.
func (m *Memory) Restore(_ context.Context, org string, r *ledger.Restoration) (restored []ledger.Hold, err error) {
	l, now, done := m.open(org)
	defer done()
	if l.epoch != r.Epoch {
		return nil, ledger.ErrEpochChanged
	}
	for _, id := range r.Ended {
		if h := l.holds[id]; h != nil {
			l.end(h, &ledger.Settlement{Hold: id, End: ledger.Release}, now)
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
			add(&a.reserved, h.Amounts, 1)
			if !h.Accrued {
				a.correct(h.Amounts[ledger.Burn], h.At.UnixMilli(), a.at)
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
func (m *Memory) MarkRestored(_ context.Context, org string, epoch int64, gateway string) error {
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
		r.offers[epoch] = &offered{owners: make(map[string]ledger.Ownership), at: make(map[string]time.Time)}
	}
	return r.offers[epoch]
}

// Offers implements RecoveryStore.
func (m *Memory) Offers(_ context.Context, org string, epoch int64) (map[string]ledger.Ownership, []string, error) {
	_, _, done := m.open(org)
	defer done()
	if all := m.rest(org).offers[epoch]; all != nil {
		return maps.Clone(all.owners), all.gateways, nil
	}
	return nil, nil, nil
}

// Position implements RecoveryStore. It returns the zero Position, because a process does not lose its memory.
func (*Memory) Position(string) ledger.Position { return ledger.Position{} }

// SetPosition implements RecoveryStore.
func (*Memory) SetPosition(string, ledger.Position) {}

// Lock implements Store. It does not lock anything, because overlapping passes over a Memory are harmless.
func (*Memory) Lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }
