package platform

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// Reset returns the emulator to what it started with: what accounts own, their
// money and quotas, prices, stock, faults, latency, recorded calls and the
// sequence of identifiers. The calls of the seed last applied are made again. The
// clock goes on, since it never runs backwards; open calls and streams end as if
// their resources had been deleted.
func (s *Server) Reset(ctx context.Context) error {
	s.faults.mu.Lock()
	s.faults.resetLocked(s.opts)
	s.faults.mu.Unlock()
	seed, err := s.resetState()
	s.ResetCalls()
	if err != nil || seed == nil {
		return err
	}
	return s.ApplySeed(ctx, seed)
}

// resetState empties the accounts and the catalog, and returns the seed to apply.
func (s *Server) resetState() (*Seed, error) {
	fresh, err := newCatalog(s.listed)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.release()
	now := s.clock.Now()
	for _, o := range s.opts.Accounts {
		s.resetAccountLocked(o, now)
	}
	s.catalog = fresh
	s.rand = rand.New(rand.NewPCG(s.opts.Seed, 1))
	s.notifyLocked()
	return s.seed, nil
}

// resetAccountLocked empties an account in place: keys and calls point to it.
func (s *Server) resetAccountLocked(o Account, now time.Time) {
	a := s.accounts[o.ID]
	for _, e := range slices.Clone(a.endpoints.order) {
		s.deleteEndpointLocked(a, e, now)
	}
	for _, t := range a.kept() {
		t.empty()
	}
	n := newAccount(o, now)
	a.windows, a.policy, a.funds, a.sshKeys = n.windows, n.policy, n.funds, n.sshKeys
	a.touch()
}
