package ledger

import (
	"context"
	"maps"
	"strings"
)

// Notice implements Store. It also remembers snoozes, so that they can be restored after a loss.
func (r recordingStore) Notice(ctx context.Context, org, name, value string) error {
	err := r.Store.Notice(ctx, org, name, value)
	if err != nil || !strings.HasPrefix(name, keepPrefix) {
		return err
	}
	r.images.mu.Lock()
	defer r.images.mu.Unlock()
	img := r.images.of(org)
	img.snoozes = r.images.unexpired(img.snoozes)
	if img.snoozes[name] = value; value == "" {
		delete(img.snoozes, name)
	}
	return nil
}

// unexpired returns a copy of the snoozes in noticed that have not ended.
func (m *Snapshots) unexpired(noticed map[string]string) map[string]string {
	snoozes := make(map[string]string)
	for id, until := range SnoozedUntil(noticed) {
		if m.Now().Before(until) {
			snoozes[keepPrefix+id] = noticed[keepPrefix+id]
		}
	}
	return snoozes
}

// rememberSnoozes replaces the remembered snoozes with those in noticed.
func (m *Snapshots) rememberSnoozes(org string, noticed map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(org).snoozes = m.unexpired(noticed)
}

// forgetSnoozes removes the remembered snoozes that were ended at another gateway. It removes none if the store has lost its notices.
func (m *Snapshots) forgetSnoozes(ctx context.Context, org string) error {
	m.mu.Lock()
	known := maps.Clone(m.of(org).snoozes)
	m.mu.Unlock()
	if len(known) == 0 {
		return nil
	}
	noticed, err := m.Store.Noticed(ctx, org)
	if err != nil || noticed[idleField] == "" {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.of(org).snoozes, func(name, value string) bool { return known[name] == value && noticed[name] == "" })
	return nil
}

// restoreSnoozes records the remembered snoozes that are missing in noticed, and returns them.
func (m *Snapshots) restoreSnoozes(ctx context.Context, org string, noticed map[string]string) (snoozes map[string]string, err error) {
	m.mu.Lock()
	snoozes = m.unexpired(m.of(org).snoozes)
	m.mu.Unlock()
	maps.DeleteFunc(snoozes, func(name, _ string) bool { return noticed[name] != "" })
	for name, value := range snoozes {
		if err := m.Store.Notice(ctx, org, name, value); err != nil {
			return nil, err
		}
	}
	if len(snoozes) > 0 {
		m.Logger.WarnContext(ctx, "restored lost snoozes from the memory of this gateway", "org", org, "count", len(snoozes))
	}
	return snoozes, nil
}
