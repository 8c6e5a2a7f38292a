package ratelimit_test

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

func newAddressLimiter(t *testing.T) (*ratelimit.AddressLimiter, *manual) {
	t.Helper()
	clock := newManual()
	l, err := ratelimit.NewAddressLimiter(ratelimit.AddressConfig{Rate: 6, Burst: 3}, clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	return l, clock
}

func TestAddressLimiter(t *testing.T) {
	l, clock := newAddressLimiter(t)
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for i := range 3 {
		if ok, _ := l.Take(a); !ok {
			t.Fatalf("attempt %d was refused", i+1)
		}
	}
	ok, after := l.Take(a)
	if ok || after != 10*time.Second {
		t.Errorf("attempt 4: %v, retry after %v; want refused for 10s", ok, after)
	}
	if ok, _ := l.Take(b); !ok {
		t.Error("another address was refused")
	}
	clock.Add(10*time.Second - time.Nanosecond)
	if ok, _ := l.Take(a); ok {
		t.Error("an attempt 1 ns early passed")
	}
	clock.Add(time.Nanosecond)
	if ok, _ := l.Take(a); !ok {
		t.Error("the attempt after the time told was refused")
	}
	if ok, _ := l.Take(a); ok {
		t.Error("a refill gave more than one attempt")
	}
}

func TestAddressesThatAreOne(t *testing.T) {
	for _, tt := range []struct {
		name string
		a, b string
		same bool
	}{
		{"IPv4 in IPv6", "192.0.2.1", "::ffff:192.0.2.1", true},
		{"one network", "2001:db8:1:2::1", "2001:db8:1:2:ffff::", true},
		{"zones", "fe80::1%eth0", "fe80::1%eth1", true},
		{"two networks", "2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"IPv4 neighbours", "192.0.2.1", "192.0.2.2", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, _ := newAddressLimiter(t)
			for range 3 {
				l.Take(netip.MustParseAddr(tt.a))
			}
			if ok, _ := l.Take(netip.MustParseAddr(tt.b)); ok == tt.same {
				t.Errorf("%s after three attempts of %s: allowed = %v", tt.b, tt.a, ok)
			}
		})
	}
	l, _ := newAddressLimiter(t)
	if ok, _ := l.Take(netip.Addr{}); !ok {
		t.Error("the first attempt without an address was refused")
	}
}

func TestAddressLimiterIsBounded(t *testing.T) {
	l, _ := newAddressLimiter(t)
	guesser := netip.MustParseAddr("192.0.2.1")
	for range 3 {
		l.Take(guesser)
	}
	addr := netip.MustParseAddr("198.51.100.0")
	for range 200_000 {
		addr = addr.Next()
		l.Take(addr)
	}
	if got := l.Known(); got > 65536 {
		t.Errorf("remembers %d addresses, want at most 65536", got)
	}
	if ok, _ := l.Take(guesser); ok {
		t.Error("many other addresses made it forget the one that guesses")
	}
}

// TestAddressRate checks the calls that pass against the bound of the algorithm: in any
// stretch of time no more than the burst and the rate's addition.
func TestAddressRate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l, clock := newAddressLimiter(t)
		addr := netip.MustParseAddr("192.0.2.1")
		var passed []time.Time
		for range 60 {
			clock.Add(time.Duration(rapid.Int64Range(0, int64(8*time.Second)).Draw(rt, "wait")))
			if ok, _ := l.Take(addr); ok {
				passed = append(passed, clock.Now())
			}
		}
		for i := range passed {
			for j := i; j < len(passed); j++ {
				if most := 3 + int(passed[j].Sub(passed[i])/(10*time.Second)); j-i+1 > most {
					rt.Fatalf("%d passed within %v, want at most %d", j-i+1, passed[j].Sub(passed[i]), most)
				}
			}
		}
	})
}

func TestAddressConfigFaults(t *testing.T) {
	if err := ratelimit.DefaultAddressConfig().Validate(); err != nil {
		t.Errorf("default: %v", err)
	}
	if _, err := ratelimit.NewAddressLimiter(ratelimit.AddressConfig{}, nil); err == nil {
		t.Error("the zero configuration was taken")
	}
}
