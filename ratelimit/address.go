package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// AddressConfig is how callers that are not known are slowed down, by the attempts
// that something takes.
type AddressConfig struct {
	Rate  int64 `yaml:"rate" doc:"how many an address has per minute in the long run"`
	Burst int64 `yaml:"burst" doc:"how many it has at once"`

	// Addresses is the largest number remembered, about 100 bytes each. With more, the
	// ones with the fewest attempts are forgotten.
	Addresses int `yaml:"-"`
	// IPv6Prefix is the length of the prefix that counts as one address, since one host
	// commonly has a whole network.
	IPv6Prefix int `yaml:"-"`
}

// DefaultAddressConfig returns the defaults.
func DefaultAddressConfig() AddressConfig {
	return AddressConfig{Rate: 30, Burst: 20, Addresses: 65536, IPv6Prefix: 64}
}

// Validate reports every fault.
func (c AddressConfig) Validate() error {
	var f fault.Found
	fault.Between(&f, "rate", c.Rate, 1, 1_000_000)
	fault.Between(&f, "burst", c.Burst, 1, 1_000_000)
	return errors.Join(f...)
}

// AddressLimiter slows down callers without a valid credential, by the address
// of their socket, so that guessing keys is slow. It lives in the memory of one
// gateway. It must be given the address of the connection, never one from a
// header.
//
// It is a bucket per address that fills at a steady rate (the generic cell rate
// algorithm), so there is no window whose turn would let twice as much through.
// It is safe for concurrent use.
type AddressLimiter struct {
	clock    Clock
	interval time.Duration
	depth    time.Duration
	most     int
	prefix   int

	mu sync.Mutex
	// due is, for each address, when its bucket will be full again. Full buckets
	// need not be remembered.
	due map[netip.Addr]time.Time
}

// NewAddressLimiter returns an AddressLimiter; a nil clock means the machine's.
func NewAddressLimiter(config AddressConfig, clock Clock) (*AddressLimiter, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("ratelimit: addresses: %w", err)
	}
	clock = cmp.Or[Clock](clock, systemClock{})
	interval := time.Minute / time.Duration(config.Rate)
	return &AddressLimiter{
		clock: clock, interval: interval, depth: interval * time.Duration(config.Burst),
		most: config.Addresses, prefix: config.IPv6Prefix, due: make(map[netip.Addr]time.Time),
	}, nil
}

// Take takes one attempt from addr, after a credential was missing or wrong. It
// reports whether addr had one left, and if not, when it will. A refusal takes nothing.
func (l *AddressLimiter) Take(addr netip.Addr) (ok bool, retryAfter time.Duration) {
	addr = l.normal(addr)
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	due, known := l.due[addr]
	if !known || due.Before(now) {
		due = now
	}
	next := due.Add(l.interval)
	if wait := next.Sub(now) - l.depth; wait > 0 {
		return false, wait
	}
	if !known && len(l.due) >= l.most {
		l.evict(now)
	}
	l.due[addr] = next
	return true, 0
}

// Return gives one attempt back.
func (l *AddressLimiter) Return(addr netip.Addr) {
	addr = l.normal(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if due, known := l.due[addr]; known {
		l.due[addr] = due.Add(-l.interval)
	}
}

// normal returns the form that counts as one address: no zone, IPv4 in one spelling, IPv6
// by its network.
func (l *AddressLimiter) normal(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	p, err := addr.Prefix(l.prefix)
	if err != nil {
		return addr // not for a valid IPv6 address and a validated length
	}
	return p.Addr()
}

// evict makes room: among a few it forgets all whose buckets are full, or else
// the fullest. A client with many addresses can push out others that way, but
// gains nothing by pushing out those.
func (l *AddressLimiter) evict(now time.Time) {
	var victim netip.Addr
	var fullest time.Time
	seen, freed := 0, false
	for addr, due := range l.due {
		if !due.After(now) {
			delete(l.due, addr)
			freed = true
		} else if fullest.IsZero() || due.Before(fullest) {
			victim, fullest = addr, due
		}
		if seen++; seen >= sample {
			break
		}
	}
	if !freed {
		delete(l.due, victim)
	}
}
