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
	attempts, questions *ratelimit.AddressLimiter
	seen                *lru.Cache[visit, struct{}]
	exempt              []netip.Prefix
}

// visit is a caller at an address.
type visit struct {
	peer netip.Addr
	org  string
	key  string
}

// NewGuard returns a Guard over limiters of failed attempts and of questions without
// a key. Addresses within exempt are never slowed down: behind a load balancer every
// caller has its address.
func NewGuard(attempts, questions *ratelimit.AddressLimiter, exempt []netip.Prefix) (*Guard, error) {
	seen, err := lru.New[visit, struct{}](maxSeen)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &Guard{attempts: attempts, questions: questions, seen: seen, exempt: exempt}, nil
}

// admit refuses an address with too many failures. caller is who the request
// turned out to come from, nil if unknown.
func (g *Guard) admit(peer string, caller *identity.Caller) error {
	addr, limited := g.address(peer)
	if !limited {
		return nil
	}
	if caller == nil {
		if ok, wait := g.attempts.Take(addr); !ok {
			return tooMany("requests without a valid key", wait)
		}
		return nil
	}
	v := visit{peer: addr, org: caller.Org, key: caller.Key}
	if g.seen.Contains(v) {
		return nil
	}
	if ok, wait := g.attempts.Check(addr); !ok {
		return tooMany("requests without a valid key", wait)
	}
	g.seen.Add(v, struct{}{})
	return nil
}

// ask takes a question without a key from its address.
func (g *Guard) ask(peer string) error {
	if addr, limited := g.address(peer); limited {
		if ok, wait := g.questions.Take(addr); !ok {
			return tooMany("questions without a key", wait)
		}
	}
	return nil
}

// unanswered gives a question back.
func (g *Guard) unanswered(peer string) {
	if addr, limited := g.address(peer); limited {
		g.questions.Return(addr)
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
