package ledger

import (
	"context"
	"math"
	"time"
)

// recordedAccrual is an applied adjustment or move, kept until its ID expires.
type recordedAccrual struct {
	request string
	outcome AccrualOutcome
	until   int64
}

// AdjustAccrual implements Store.
func (m *Memory) AdjustAccrual(_ context.Context, org string, a *AccrualAdjustment) (AccrualOutcome, error) {
	l, now, done := m.open(org)
	defer done()
	if out, known := l.earlier(a.ID, a.Fingerprint(), now); known {
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
	return l.recordAccrual(a.ID, a.Fingerprint(), own, change, now+AccrualRetention.Milliseconds()), nil
}

// MoveAccrual implements Store.
func (m *Memory) MoveAccrual(_ context.Context, org string, a *AccrualMove) (AccrualOutcome, error) {
	l, now, done := m.open(org)
	defer done()
	if out, known := l.earlier(a.ID, a.Fingerprint(), now); known {
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
	return l.recordAccrual(a.ID, a.Fingerprint(), target, change, until), nil
}

// Fingerprint encodes the move. Two moves with the same ID and Fingerprint are the same request.
func (a *AccrualMove) Fingerprint() string { return "move " + a.From + " " + a.To + " " + a.Key }

// accrued returns the accrued costs of the account.
func (a *account) accrued() (out [periods]int64) {
	for i, p := range a.periods {
		out[i] = p.accrued
	}
	return out
}

// empty reports whether all amounts and accrued costs of the account are zero.
func (a *account) empty() bool {
	return a.committed == (Amounts{}) && a.reserved == (Amounts{}) && a.accrued() == [periods]int64{}
}

// earlier returns the outcome of an earlier request with the same ID, and reports whether there was one.
func (l *ledger) earlier(id, request string, now int64) (out AccrualOutcome, known bool) {
	was, known := l.accruals[id]
	if id == "" || !known || was.until <= now {
		return out, false
	}
	if out = was.outcome; was.request != request {
		return AccrualOutcome{Status: AccrualConflict}, true
	}
	out.Status = AccrualRepeated
	return out, true
}

// recordAccrual records a change of an account until the given time, and returns the outcome.
func (l *ledger) recordAccrual(id, request string, a *account, change [periods]int64, until int64) AccrualOutcome {
	l.seq++
	out := AccrualOutcome{Change: accruedOf(change), Accrued: accruedOf(a.accrued())}
	if id != "" {
		l.accruals[id] = recordedAccrual{request, out, until}
	}
	return out
}
