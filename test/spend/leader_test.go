package spend

import (
	"testing"

	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// TestLeaseIsReleasedAtShutdown: a gateway that ends orderly leaves no lease of the leader behind, which would keep the
// other gateways, and its own next start, from looking at the platform for three intervals.
func TestLeaseIsReleasedAtShutdown(t *testing.T) {
	t.Parallel()
	store := redistest.Run(t)
	redis := redistest.Client(t, store.Addr())
	s := open(t, &plan{redis: store.Addr(), config: "    budget: {gpus: 1}\n"})
	leads := func() bool { return redis.Exists(t.Context(), prefix+"leader").Val() == 1 }
	for range 2 {
		deps := s.deps
		deps.Redis, deps.Data, deps.Admin = world.Redis(t, store.Addr()), world.Listen(t), world.Listen(t)
		end := world.Run(t, world.Gateway(t, world.Configuration(t, s.text("    budget: {gpus: 1}\n"), map[string]string{"ACME": credential}), deps))
		s.await("a gateway leads", leads)
		end()
		if leads() {
			t.Fatalf("the lease remains for %s", redis.TTL(t.Context(), prefix+"leader").Val())
		}
	}
}
