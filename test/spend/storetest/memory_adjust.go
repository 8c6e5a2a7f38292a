package storetest

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Adjust implements Store.
func (m *Memory) Adjust(_ context.Context, org string, list ...*ledger.Adjustment) ([]ledger.AdjustResult, error) {
	l, now, done := m.open(org)
	defer done()
	made := make([]ledger.AdjustResult, len(list))
	for i, a := range list {
		made[i] = l.adjust(a, now)
	}
	return made, nil
}

func (l *accounts) adjust(a *ledger.Adjustment, now int64) ledger.AdjustResult {
	r := l.resources[a.Resource]
	version := a.Version
	if version == ledger.LiveSandbox && r != nil && r.Amounts[ledger.Sandboxes] > 0 {
		version = r.Version
	}
	switch {
	case r == nil && (version != 0 || a.Gone || l.hasEnded(tombstone(a.Resource), now)):
		return ledger.AdjustSkipped
	case r != nil && (version != r.Version || r.Pending > 0):
		return ledger.AdjustSkipped
	case a.Gone:
		if r.Owner != (ledger.Owner{}) {
			l.gone[r.ID] = gone{*r, now + ledger.OwnerRetention.Milliseconds()}
		}
		l.replace(r, nil, a.From, now)
		return ledger.AdjustApplied
	}
	made := ledger.AdjustApplied
	next := &ledger.Record{ID: a.Resource, Kind: a.Kind, Amounts: a.Amounts.Clamped(), Metadata: a.Metadata, Since: time.UnixMilli(now)}
	if r != nil {
		next.Owner, next.Since, next.Metadata = r.Owner, r.Since, r.Metadata
	} else if was, ok := l.gone[a.Resource]; ok && now < was.until {
		next.Owner, next.Metadata, made = was.Owner, was.Metadata, ledger.AdjustReturned
		delete(l.gone, a.Resource)
	}
	if a.Owner != nil {
		next.Owner = *a.Owner
		if a.Metadata != (ledger.Metadata{}) {
			next.Metadata = a.Metadata
		}
	}
	l.replace(r, next, a.From, now)
	return made
}
