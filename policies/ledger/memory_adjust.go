package ledger

import (
	"context"
	"time"
)

// Adjust implements Store.
func (m *Memory) Adjust(_ context.Context, org string, list ...*Adjustment) ([]AdjustResult, error) {
	l, now, done := m.open(org)
	defer done()
	made := make([]AdjustResult, len(list))
	for i, a := range list {
		made[i] = l.adjust(a, now)
	}
	return made, nil
}

func (l *ledger) adjust(a *Adjustment, now int64) AdjustResult {
	r := l.resources[a.Resource]
	version := a.Version
	if version == LiveSandbox && r != nil && r.Amounts[Sandboxes] > 0 {
		version = r.Version
	}
	switch {
	case r == nil && (version != 0 || a.Gone || l.hasEnded(tombstone(a.Resource), now)):
		return AdjustSkipped
	case r != nil && (version != r.Version || r.Pending > 0):
		return AdjustSkipped
	case a.Gone:
		if r.Owner != (Owner{}) {
			l.gone[r.ID] = gone{*r, now + OwnerRetention.Milliseconds()}
		}
		l.replace(r, nil, a.From, now)
		return AdjustApplied
	}
	made := AdjustApplied
	next := &Record{ID: a.Resource, Kind: a.Kind, Amounts: a.Amounts.Clamped(), Metadata: a.Metadata, Since: time.UnixMilli(now)}
	if r != nil {
		next.Owner, next.Since, next.Metadata = r.Owner, r.Since, r.Metadata
	} else if was, ok := l.gone[a.Resource]; ok && now < was.until {
		next.Owner, next.Metadata, made = was.Owner, was.Metadata, AdjustReturned
		delete(l.gone, a.Resource)
	}
	if a.Owner != nil {
		next.Owner = *a.Owner
		if a.Metadata != (Metadata{}) {
			next.Metadata = a.Metadata
		}
	}
	l.replace(r, next, a.From, now)
	return made
}
