package platform

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// SandboxBill is a sandbox with what it has cost by now.
type SandboxBill struct {
	ID        string    `json:"id"`
	Account   string    `json:"account"`
	State     string    `json:"state"`
	CostPerHr float64   `json:"costPerHr"` // USD
	CreatedAt time.Time `json:"createdAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	Total     float64   `json:"total"` // USD, not rounded
}

// SandboxBills returns the bill of each sandbox that was ever created, by account and in the
// order of their creation. No billing list of the platform has them.
func (s *Server) SandboxBills() []SandboxBill {
	s.mu.Lock()
	defer s.release()
	now := s.clock.Now()
	bills := []SandboxBill{}
	for _, id := range slices.Sorted(maps.Keys(s.accounts)) {
		a := s.accounts[id]
		s.advanceLocked(a, now)
		for _, b := range a.sandboxes.order {
			bills = append(bills, SandboxBill{
				ID: b.ID, Account: id, State: b.stateAt(now), CostPerHr: b.rate(), CreatedAt: b.CreatedAt, EndedAt: b.EndedAt,
				Total: a.meter(meterSandbox, b.ID).between(b.CreatedAt, now, now).total(),
			})
		}
	}
	return bills
}

// SetSandboxState changes a sandbox of any account, as the platform might by itself:
// RUNNING brings it up at once, TERMINATED and FAILED end it.
func (s *Server) SetSandboxState(id, state string) error {
	return sandboxes().alter(s, id, func(a *account, b *sandbox, now time.Time) error {
		return s.forceSandboxLocked(a, b, state, now)
	})
}

func (s *Server) forceSandboxLocked(a *account, b *sandbox, state string, now time.Time) error {
	switch {
	case !b.EndedAt.IsZero():
		return fmt.Errorf("sandbox %s is %s, which is final", b.ID, b.stateAt(now))
	case state == sandboxRunning:
		b.RunsAt, b.UpAt = earliest(b.RunsAt, now), earliest(b.UpAt, now)
		a.sandboxes.touch(b.ID)
		s.notifyLocked()
	case state == sandboxTerminated:
		s.endSandboxLocked(a, b, now, endedByPlatform)
	case state == sandboxFailed:
		s.endSandboxLocked(a, b, now, endedFailed)
	default:
		return fmt.Errorf("a sandbox cannot be made %q", state)
	}
	return nil
}
