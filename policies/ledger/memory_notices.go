package ledger

import (
	"context"
	"maps"
)

// Noticed implements Notices.
func (m *Memory) Noticed(_ context.Context, org string) (map[string]string, error) {
	l, _, done := m.open(org)
	defer done()
	return maps.Clone(l.noticed), nil
}

// Notice implements Notices.
func (m *Memory) Notice(_ context.Context, org, name, value string) error {
	l, _, done := m.open(org)
	defer done()
	if l.noticed[name] = value; value == "" {
		delete(l.noticed, name)
	}
	return nil
}
