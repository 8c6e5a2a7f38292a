package spend

import (
	"context"
	"time"
)

// Adjust implements Store.
func (m *Memory) Adjust(_ context.Context, org string, list ...*Adjustment) ([]Adjusted, error) {
	l, now, done := m.open(org)
	defer done()
	made := make([]Adjusted, len(list))
	for i, a := range list {
		made[i] = l.adjust(a, now)
	}
	return made, nil
}

func (l *ledger) adjust(a *Adjustment, now int64) Adjusted {
	r := l.resources[a.Resource]
	version := a.Version
	if version == LiveSandbox && r != nil && r.Amounts[Sandboxes] > 0 {
		version = r.Version
	}
	switch {
	case r == nil && (version != 0 || a.Gone || l.hasEnded(tombstone(a.Resource), now)):
		return NotMade
	case r != nil && (version != r.Version || r.Pending > 0):
		return NotMade
	case a.Gone:
		if r.Owner != (Owner{}) {
			l.gone[r.ID] = gone{*r, now + KeepOwners.Milliseconds()}
		}
		l.replace(r, nil, a.From, now)
		return Made
	}
	made := Made
	next := &Record{ID: a.Resource, Kind: a.Kind, Amounts: a.Amounts.Clamped(), About: a.About, Since: time.UnixMilli(now)}
	if r != nil {
		next.Owner, next.Since, next.About = r.Owner, r.Since, r.About
	} else if was, ok := l.gone[a.Resource]; ok && now < was.until {
		next.Owner, next.About, made = was.Owner, was.About, GivenBack
		delete(l.gone, a.Resource)
	}
	if a.Owner != nil {
		next.Owner = *a.Owner
		if a.About != (About{}) {
			next.About = a.About
		}
	}
	l.replace(r, next, a.From, now)
	return made
}
