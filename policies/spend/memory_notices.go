package spend

import (
	"context"
	"maps"
)

// Noticed implements Notices.
func (m *Memory) Noticed(_ context.Context, org string) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, _ := m.org(org)
	return maps.Clone(l.noticed), nil
}

// Notice implements Notices.
func (m *Memory) Notice(_ context.Context, org, name, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, _ := m.org(org)
	if l.noticed[name] = value; value == "" {
		delete(l.noticed, name)
	}
	return nil
}
