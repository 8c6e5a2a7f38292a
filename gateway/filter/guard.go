package filter

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Guard makes guessing keys slow: an address that failed too often is refused
// each further wrong key with 429. Right ones are not its business: a credential is
// judged before the address, so another caller's wrong keys from it keep nobody out. It
// is safe for concurrent use.
type Guard struct {
	attempts, anonymous *ratelimit.AddressLimiter
	exempt              []netip.Prefix
}

// NewGuard returns a Guard over limiters of failed attempts and of questions without
// a key. Addresses within exempt are never slowed down: behind a load balancer every
// caller has its address.
func NewGuard(attempts, questions *ratelimit.AddressLimiter, exempt []netip.Prefix) *Guard {
	return &Guard{attempts: attempts, anonymous: questions, exempt: exempt}
}

// countFailure takes a failed attempt from its address, and refuses one that had too many.
func (g *Guard) countFailure(peer string) error {
	if addr, limited := g.address(peer); limited {
		if ok, wait := g.attempts.Take(addr); !ok {
			return tooMany("requests without a valid key", wait)
		}
	}
	return nil
}

// Attempt counts an attempt as failed before its end is known; undo takes that back. If the address has no attempts left, nothing is
// counted, undo is nil, and wait is the time until there is one.
func (g *Guard) Attempt(peer string) (undo func(), wait time.Duration) {
	addr, limited := g.address(peer)
	if !limited {
		return func() {}, 0
	}
	if ok, wait := g.attempts.Take(addr); !ok {
		return nil, wait
	}
	return func() { g.attempts.Return(addr) }, 0
}

// countAnonymousdWithFallbackluate takes a question without a key from its address.
func (g *Guard) countAnonymous(peer string) error {
	if addr, limited := g.address(peer); limited {
		if ok, wait := g.anonymous.Take(addr); !ok {
			return tooMany("questions without a key", wait)
		}
	}
	return nil
}

// returnAnonymous gives a question back.
func (g *Guard) returnAnonymous(peer string) {
	if addr, limited := g.address(peer); limited {
		g.anonymous.Return(addr)
	}
}

// address reads the address of a peer. One that is exempt is not limited, nor is a
// connection without an address, as over a local socket.
func (g *Guard) address(peer string) (addr netip.Addr, limited bool) {
	addr, _ = netip.ParseAddr(peer)
	addr = addr.Unmap()
	return addr, addr.IsValid() && !slices.ContainsFunc(g.exempt, func(p netip.Prefix) bool { return p.Contains(addr) })
}

func tooMany(what string, wait time.Duration) error {
	seconds := max(1, int64((wait+time.Second-1)/time.Second))
	return problem.RateLimited.New("too many "+what+" came from this address").
		With("Retry-After", strconv.FormatInt(seconds, 10))
}
