package redisstore

import "context"

// Server says whether the server behind a client is the one it was, to others that keep
// data there. It is safe for concurrent use.
type Server struct{ watch *serverWatch }

// Server returns the state of the Store's server.
func (s *Store) Server() Server { return Server{s.watch} }

// Epoch changes with the server.
func (s Server) Epoch() int64 { return s.watch.epoch.Load() }

// Verify reports whether the outcome of an exchange that began in an epoch counts.
func (s Server) Verify(ctx context.Context, epoch int64) error {
	err := s.watch.check(ctx, epoch)
	if s.watch.epoch.Load() != epoch {
		s.watch.unheard.Store(true) // the Store's own exchanges may all come later
	}
	return err
}

// Pausing reports whether another server has taken the place of the one there was, and
// gateways are waited for that may know more than it does; it goes on until a beat has
// found out whether all have come.
func (s Server) Pausing() bool {
	until := s.watch.until.Load()
	return until != 0 && s.watch.config.Now().UnixNano() < until+MinRecovery.Nanoseconds()
}

// LastDesertion is the latest epoch after whose beginning a gateway did not come back, 0 for
// none.
func (s Server) LastDesertion() int64 { return s.watch.deserted.Load() }
