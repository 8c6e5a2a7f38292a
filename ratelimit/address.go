package ratelimit

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// AddressConfig limits the requests without a valid credential from each network address.
type AddressConfig struct {
	Rate  int64 `yaml:"rate" doc:"maximum sustained rate in requests per minute"`
	Burst int64 `yaml:"burst" doc:"maximum burst in requests"`
}

const (
	// maxAddresses is the maximum number of addresses that are remembered; each takes about 100 bytes. Beyond this number, the addresses with
	// the fewest recent attempts are dropped.
	maxAddresses = 65536
	// ipv6Prefix is the prefix length, in bits, of the IPv6 networks that count as one address, because a single host commonly controls a
	// whole network.
	ipv6Prefix = 64
)

// DefaultAddressConfig returns the default configuration: 30 attempts per minute and a burst of 20 for each IPv4 address or IPv6 /64
// network.
func DefaultAddressConfig() AddressConfig { return AddressConfig{Rate: 30, Burst: 20} }

// Validate checks c and joins the errors it finds, each with its path.
func (c AddressConfig) Validate() error {
	var f fault.Found
	fault.Between(&f, "rate", c.Rate, 1, 1_000_000)
	fault.Between(&f, "burst", c.Burst, 1, 1_000_000)
	return errors.Join(f...)
}

// AddressLimiter limits the requests without a valid credential from each network address, so that keys cannot be guessed quickly. Callers
// must pass the address of the connection, never an address from a header. The state is in the memory of one gateway.
//
// Each address has a bucket that refills at a steady rate (the generic cell rate algorithm). Fixed windows would admit twice the limit
// around the boundary of two windows; a bucket does not. An AddressLimiter is safe for concurrent use.
type AddressLimiter struct {
	now      func() time.Time
	interval time.Duration
	depth    time.Duration

	mu sync.Mutex
	// due maps an address to the time when its bucket will be full again. Full buckets are not stored.
	due map[netip.Addr]time.Time
}

// NewAddressLimiter returns an AddressLimiter.
func NewAddressLimiter(config AddressConfig, now func() time.Time) (*AddressLimiter, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("ratelimit: addresses: %w", err)
	}
	interval := time.Minute / time.Duration(config.Rate)
	return &AddressLimiter{
		now: now, interval: interval, depth: interval * time.Duration(config.Burst), due: make(map[netip.Addr]time.Time),
	}, nil
}

// Take takes one attempt from the bucket of addr. If no attempt is left, ok is false and retryAfter is the time until the next attempt is
// available.
func (l *AddressLimiter) Take(addr netip.Addr) (ok bool, retryAfter time.Duration) {
	addr = normal(addr)
	now := l.now()
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
	if !known && len(l.due) >= maxAddresses {
		l.evict(now)
	}
	l.due[addr] = next
	return true, 0
}

// Return cancels the attempt counted by an earlier Take, because the credential turned out to be valid.
func (l *AddressLimiter) Return(addr netip.Addr) {
	addr = normal(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if due, known := l.due[addr]; known {
		l.due[addr] = due.Add(-l.interval)
	}
}

// normal returns the address under which attempts of addr are counted: without a zone, IPv4 in a single notation, IPv6 reduced to its
// network.
func normal(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	p, _ := addr.Prefix(ipv6Prefix) // fails only for a length above 128
	return p.Addr()
}

// evict makes room for another address. It examines a few addresses and drops all of them that have full buckets, or else the address with
// the fullest bucket. A client with many addresses can evict other clients in this way, but the other clients then start with full buckets.
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
