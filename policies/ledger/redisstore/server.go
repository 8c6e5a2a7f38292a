package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	limits "github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// SetServer makes the store check whether its server was replaced before it admits calls that raise cost. The limiter's store is on the
// same server and provides the check. After a move to another server, data may be missing. The store then pauses until every gateway has
// compared its memory with the new server; see [Store.DetectLosses]. SetServer must be called before the store is used.
func (s *Store) SetServer(server limits.Server) { s.server = &server }

var errServer = errors.New("the store has moved to another server, and gateways are still restoring its data")

// onSameServer runs a reservation that raises cost, and fails if the server was replaced.
func (s *Store) onSameServer(ctx context.Context, org string, reserve func() (reply, error)) (reply, error) {
	if s.server == nil {
		return reserve()
	}
	if s.server.Pausing() {
		return reply{}, fmt.Errorf("%w: %w", ledger.ErrUnavailable, errServer)
	}
	if err := s.closeAfterGatewayLoss(ctx, org); err != nil {
		return reply{}, err
	}
	epoch := s.server.Epoch()
	r, err := reserve()
	if err != nil {
		return r, err
	}
	if err := s.server.Verify(ctx, epoch); err != nil {
		return reply{}, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	return r, nil
}

// closeAfterGatewayLoss closes the ledger, once per epoch, if a gateway that may have written to the previous server did not reconnect,
// because the data that it wrote is unknown.
func (s *Store) closeAfterGatewayLoss(ctx context.Context, org string) error {
	if s.server == nil {
		return nil
	}
	epoch := s.server.LastGatewayLoss()
	s.mu.Lock()
	l := s.of(org)
	done, seen := l.gatewayLost >= epoch, l.seen.epoch
	s.mu.Unlock()
	if done {
		return nil
	}
	if err := s.close(ctx, org, seen); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.gatewayLost = epoch
	return nil
}

// close closes a ledger that has lost data or that has the given epoch.
func (s *Store) close(ctx context.Context, org string, epoch int64) error {
	if _, err := s.run(ctx, s.shut, org, s.keys(org), []any{s.known(org, epoch)}); err != nil {
		return fmt.Errorf("close ledger: %w", err)
	}
	return nil
}

// DetectLosses compares this gateway's memory of ledgers with the store, and closes the ledgers that have lost data.
func (s *Store) DetectLosses(ctx context.Context, orgs []string) error {
	heads, err := s.Heads(ctx, orgs)
	if err != nil {
		return err
	}
	for i, org := range orgs {
		if heads[i].Lost != "" {
			if err := s.close(ctx, org, 0); err != nil {
				return err
			}
		}
	}
	return nil
}
