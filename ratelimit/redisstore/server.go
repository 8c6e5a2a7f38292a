package redisstore

import (
	"context"
	"time"
)

// Server detects that the Redis server of a Store was replaced. Packages that use the same server for other data can use it. It is safe for
// concurrent use.
type Server struct{ watch *serverWatch }

// Server returns the Server of s.
func (s *Store) Server() Server { return Server{s.watch} }

// Epoch returns a number that changes when the server is replaced.
func (s Server) Epoch() int64 { return s.watch.epoch.Load() }

// Verify returns an error if the server was replaced since the given epoch. The outcome of a command that was sent in that epoch is then
// invalid.
func (s Server) Verify(ctx context.Context, epoch int64) error {
	err := s.watch.check(ctx, epoch)
	if s.watch.epoch.Load() != epoch {
		s.watch.unheard.Store(true) // the Store's own exchanges may all come later
	}
	return err
}

// Pausing reports whether the server was replaced and gateways may still have to restore their data. It returns false once a heartbeat has
// found that all gateways have done so, or the maximum pause is over.
func (s Server) Pausing() bool {
	until := time.Duration(s.watch.until.Load())
	return until != 0 && s.watch.elapsed() < until+MinRecovery
}

// LastGatewayLoss returns the latest epoch that had a gateway whose data was not restored by the end of the pause, or 0 if there is no such
// epoch.
func (s Server) LastGatewayLoss() int64 { return s.watch.gatewayLost.Load() }
