package redisstore

import "context"

// Server reports changes of the server to other users of the same server. It is safe for concurrent use.
type Server struct{ watch *serverWatch }

// Server returns the server of the Store.
func (s *Store) Server() Server { return Server{s.watch} }

// Epoch returns a number that changes when the server is replaced.
func (s Server) Epoch() int64 { return s.watch.epoch.Load() }

// Verify returns an error if the server was replaced since the given epoch. The outcome of an exchange from that epoch is then invalid.
func (s Server) Verify(ctx context.Context, epoch int64) error {
	err := s.watch.check(ctx, epoch)
	if s.watch.epoch.Load() != epoch {
		s.watch.unheard.Store(true) // the Store's own exchanges may all come later
	}
	return err
}

// Pausing reports whether the server was replaced and gateways with more data are still being waited for. The pause lasts until a
// heartbeat has determined whether all of them have restored their data.
func (s Server) Pausing() bool {
	until := s.watch.until.Load()
	return until != 0 && s.watch.config.Now().UnixNano() < until+MinRecovery.Nanoseconds()
}

// LastGatewayLoss returns the latest epoch whose pause ended although a gateway had not restored its data, or 0.
func (s Server) LastGatewayLoss() int64 { return s.watch.gatewayLost.Load() }
