package ratelimit

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// AddressConfig limits failed or anonymous attempts per network address.
type AddressConfig struct {
	Rate  int64 `yaml:"rate" doc:"maximum sustained rate for each address, in requests per minute"`
	Burst int64 `yaml:"burst" doc:"maximum burst for each address, in requests"`

	// Addresses is the largest number of addresses remembered, at about 100 bytes each. Beyond it, the addresses with the fewest attempts
	// are dropped.
	Addresses int `yaml:"-"`
	// IPv6Prefix is the prefix length that counts as one address, because one host commonly has a whole network.
	IPv6Prefix int `yaml:"-"`
}

// DefaultAddressConfig returns the default configuration: 30 attempts per minute and a burst of 20 for each IPv4 address or IPv6 /64
// network.
func DefaultAddressConfig() AddressConfig {
	return AddressConfig{Rate: 30, Burst: 20, Addresses: 65536, IPv6Prefix: 64}
}

// Validate checks c and joins the errors it finds, each with its path.
func (c AddressConfig) Validate() error {
	var f fault.Found
	fault.Between(&f, "rate", c.Rate, 1, 1_000_000)
	fault.Between(&f, "burst", c.Burst, 1, 1_000_000)
	return errors.Join(f...)
}

// AddressLimiter limits the attempts of callers without a valid credential, by the address of the connection, so that keys cannot be
// guessed quickly. It must be given the address of the connection, never one from a header. Its state is in the memory of one gateway.
//
// It uses one bucket per address that refills at a steady rate (the generic cell rate algorithm), so twice the limit cannot pass at the
// boundary of two windows. It is safe for concurrent use.
type AddressLimiter struct {
	now      func() time.Time
	interval time.Duration
	depth    time.Duration
	most     int
	prefix   int

	mu sync.Mutex
	// due is the time when the bucket of each address will be full again. Full buckets are not stored.
	due map[netip.Addr]time.Time
}

// NewAddressLimiter returns an AddressLimiter.
func NewAddressLimiter(config AddressConfig, now func() time.Time) (*AddressLimiter, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("ratelimit: addresses: %w", err)
	}
	interval := time.Minute / time.Duration(config.Rate)
	return &AddressLimiter{
		now: now, interval: interval, depth: interval * time.Duration(config.Burst),
		most: config.Addresses, prefix: config.IPv6Prefix, due: make(map[netip.Addr]time.Time),
	}, nil
}

// Take uses up one of the attempts of addr, after a credential was missing or wrong. If none are left, ok is false, and retryAfter is the
// time until the next attempt is available.
func (l *AddressLimiter) Take(addr netip.Addr) (ok bool, retryAfter time.Duration) {
	addr = l.normal(addr)
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
	if !known && len(l.due) >= l.most {
		l.evict(now)
	}
	l.due[addr] = next
	return true, 0
}

// Return gives one attempt back to addr, after a Take whose attempt turned out to be valid.
func (l *AddressLimiter) Return(addr netip.Addr) {
	addr = l.normal(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if due, known := l.due[addr]; known {
		l.due[addr] = due.Add(-l.interval)
	}
}

// normal returns the form of an address that is counted: without a zone, IPv4 in a single notation, IPv6 reduced to its network.
func (l *AddressLimiter) normal(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	p, err := addr.Prefix(l.prefix)
	if err != nil {
		return addr // impossible for a valid IPv6 address and a validated length
	}
	return p.Addr()
}

// evict makes room. It examines a few addresses and drops all that have full buckets, or otherwise the address with the fullest bucket. A
// client with many addresses can evict others in this way, but gains nothing.
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
