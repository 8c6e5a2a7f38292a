package ledger

import (
	"context"
	"maps"
)

// Noticed implements NoticeStore.
func (m *Memory) Noticed(_ context.Context, org string) (map[string]string, error) {
	l, _, done := m.open(org)
	defer done()
	return maps.Clone(l.noticed), nil
}

// Notice implements NoticeStore.
func (m *Memory) Notice(_ context.Context, org, name, value string) error {
	l, _, done := m.open(org)
	defer done()
	if l.noticed[name] = value; value == "" {
		delete(l.noticed, name)
	}
	return nil
}
