package filter

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Guard limits attempts to guess keys. After too many failed attempts from an address, further invalid keys from this address are refused
// with 429. The gateway checks the credential before it checks the address, so a valid credential always works, even if other callers with
// the same address send invalid ones. Guard is safe for concurrent use.
type Guard struct {
	attempts, anonymous *ratelimit.AddressLimiter
	exempt              []netip.Prefix
}

// NewGuard returns a Guard. attempts limits failed attempts, and anonymous limits anonymous requests. Addresses in exempt are never
// limited. exempt contains the addresses of load balancers, because all their callers share an address.
func NewGuard(attempts, anonymous *ratelimit.AddressLimiter, exempt []netip.Prefix) *Guard {
	return &Guard{attempts: attempts, anonymous: anonymous, exempt: exempt}
}

// countFailure counts a failed attempt of an address and returns 429 if there were too many.
func (g *Guard) countFailure(peer string) error {
	return g.count(g.attempts, peer, "requests without a valid key")
}

// Attempt counts a failed attempt in advance. The caller calls undo if the attempt succeeds. If the address has no attempts left, nothing
// is counted, undo is nil, and wait is the time until the next attempt is allowed.
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

// countAnonymous counts an anonymous request of an address and returns 429 if there were too many.
func (g *Guard) countAnonymous(peer string) error {
	return g.count(g.anonymous, peer, "anonymous requests")
}

// count counts a request of an address and returns 429 if there were too many. what names the requests that the limiter counts.
func (g *Guard) count(l *ratelimit.AddressLimiter, peer, what string) error {
	if addr, limited := g.address(peer); limited {
		if ok, wait := l.Take(addr); !ok {
			return rateLimited("too many "+what+" from this address", wait)
		}
	}
	return nil
}

// returnAnonymous removes one anonymous request from the count of an address.
func (g *Guard) returnAnonymous(peer string) {
	if addr, limited := g.address(peer); limited {
		g.anonymous.Return(addr)
	}
}

// address parses the address of a peer. limited is false for exempt addresses and for peers without an IP address, such as local sockets.
func (g *Guard) address(peer string) (addr netip.Addr, limited bool) {
	addr, _ = netip.ParseAddr(peer)
	addr = addr.Unmap()
	return addr, addr.IsValid() && !slices.ContainsFunc(g.exempt, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// rateLimited returns a 429 that permits a retry after the time wait.
func rateLimited(detail string, wait time.Duration) error {
	seconds := max(1, int64((wait+time.Second-1)/time.Second))
	return problem.RateLimited.New(detail).With("Retry-After", strconv.FormatInt(seconds, 10))
}
