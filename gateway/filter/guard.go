package filter

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// maxSeen is how many callers at their addresses a Guard remembers.
const maxSeen = 16384

// Guard makes guessing keys slow: an address that failed too often is refused
// before its key is judged, a right guess included. Callers who got in from
// that address before are let through, so that one script with a wrong key
// does not lock everybody out who shares its address. It is safe for
// concurrent use.
type Guard struct {
	addresses *ratelimit.AddressLimiter
	seen      *lru.Cache[visit, struct{}]
	exempt    []netip.Prefix
}

// visit is a caller at an address.
type visit struct {
	peer netip.Addr
	org  string
	key  string
}

// NewGuard returns a Guard over a limiter of failed attempts. Addresses within
// exempt are never slowed down: behind a load balancer every caller has its
// address.
func NewGuard(addresses *ratelimit.AddressLimiter, exempt []netip.Prefix) (*Guard, error) {
	seen, err := lru.New[visit, struct{}](maxSeen)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &Guard{addresses: addresses, seen: seen, exempt: exempt}, nil
}

// admit refuses an address with too many failures. caller is who the request
// turned out to come from, nil if unknown.
func (g *Guard) admit(peer string, caller *identity.Caller) error {
	addr, _ := netip.ParseAddr(peer)
	addr = addr.Unmap()
	if !addr.IsValid() || slices.ContainsFunc(g.exempt, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return nil // exempt, or a connection without an address, as over a local socket
	}
	if caller == nil {
		if ok, wait := g.addresses.Take(addr); !ok {
			return tooManyFailures(wait)
		}
		return nil
	}
	v := visit{peer: addr, org: caller.Org, key: caller.Key}
	if g.seen.Contains(v) {
		return nil
	}
	if ok, wait := g.addresses.Check(addr); !ok {
		return tooManyFailures(wait)
	}
	g.seen.Add(v, struct{}{})
	return nil
}

// anonymous lets a caller without a key have what is public. Asking the
// platform on its behalf is not free, so GraphQL questions count like failures.
func (g *Guard) anonymous(ex *Exchange) error {
	if ex.Dialect != route.GraphQL {
		return nil
	}
	return g.admit(ex.In.Peer, nil)
}

func tooManyFailures(wait time.Duration) error {
	seconds := max(1, int64((wait+time.Second-1)/time.Second))
	return problem.RateLimited.New("too many requests without a valid key came from this address").
		With("Retry-After", strconv.FormatInt(seconds, 10))
}
