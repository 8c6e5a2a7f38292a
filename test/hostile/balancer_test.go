package hostile

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/test/world"
)

// loopback is where the balancers of these tests are; elsewhere is not.
var loopback, elsewhere = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} //nolint:gochecknoglobals // constants

// preface is a PROXY header for a caller at an address, in a version.
func preface(t *testing.T, version byte, from string) string {
	t.Helper()
	h := proxyproto.HeaderProxyFromAddrs(version, &net.TCPAddr{IP: net.ParseIP(from), Port: 4711}, &net.TCPAddr{IP: net.ParseIP("198.51.100.1"), Port: 443})
	var b bytes.Buffer
	if _, err := h.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// slowing has wrong keys slow their address down soon.
func slowing(s *setup) { s.burst = 20 }

// guess fails often enough, from where raw says it comes, that the next wrong key from
// there is slowed down.
func (s *site) guess(t *testing.T, raw func(key string) string) {
	t.Helper()
	for i := range 100 {
		if world.Ask(t, s.addr, raw(fmt.Sprintf("wrong_key_%03d", i))).Status == 429 {
			return
		}
	}
	t.Fatal("guessing is not slowed down")
}

// The address that wrong keys are counted for is the one a balancer tells.
func TestBalancersTellTheAddress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config settings.Balancers
		raw    func(t *testing.T, from, key string) string
	}{
		"PROXY version 1": {settings.Balancers{Addresses: loopback, Protocol: true}, func(t *testing.T, from, key string) string {
			return preface(t, 1, from) + request("GET", "/v2/pods", key, "", "Connection: close")
		}},
		"PROXY version 2": {settings.Balancers{Addresses: loopback, Protocol: true}, func(t *testing.T, from, key string) string {
			return preface(t, 2, from) + request("GET", "/v2/pods", key, "", "Connection: close")
		}},
		"X-Forwarded-For, one hop": {settings.Balancers{Addresses: loopback, Hops: 1}, func(_ *testing.T, from, key string) string {
			return request("GET", "/v2/pods", key, "", "Connection: close", "X-Forwarded-For: 127.0.0.1, 198.51.100.7, "+from)
		}},
		"X-Forwarded-For, two hops over two lines": {settings.Balancers{Addresses: loopback, Hops: 2}, func(_ *testing.T, from, key string) string {
			return request("GET", "/v2/pods", key, "", "Connection: close", "X-Forwarded-For: 198.51.100.7, "+from, "X-Forwarded-For: 10.0.0.7")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, behind(tc.config), slowing)
			s.guess(t, func(key string) string { return tc.raw(t, "203.0.113.9", key) })
			for from, want := range map[string]int{"203.0.113.9": 429, "203.0.113.10": 401, "2001:db8::1": 401} {
				if got := world.Ask(t, s.addr, tc.raw(t, from, "wrong_key_100")); got.Status != want {
					t.Errorf("a wrong key from %s: %d %s, want %d", from, got.Status, got.Body, want)
				}
				if got := world.Ask(t, s.addr, tc.raw(t, from, k1)); got.Status != 200 {
					t.Errorf("a right key from %s: %d %s, want 200", from, got.Status, got.Body)
				}
			}
			if log := s.logs.String(); !strings.Contains(log, `"client.address":"203.0.113.9"`) || !strings.Contains(log, `"client.address":"2001:db8::1"`) {
				t.Error("the log does not name the callers' addresses")
			}
		})
	}
}

// Addresses are believed of balancers only, and only in their form.
func TestOthersAreNotBelieved(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config  settings.Balancers
		header  []string
		preface string
		status  int // 0 for no answer
	}{
		"PROXY of a stranger":            {settings.Balancers{Addresses: elsewhere, Protocol: true}, nil, preface(t, 1, "203.0.113.9"), 400},
		"PROXY where none is expected":   {settings.Balancers{Addresses: loopback, Hops: 1}, nil, preface(t, 1, "203.0.113.9"), 400},
		"binary PROXY of a stranger":     {settings.Balancers{Addresses: elsewhere, Protocol: true}, nil, preface(t, 2, "203.0.113.9"), 400},
		"a stranger, where PROXY is":     {settings.Balancers{Addresses: elsewhere, Protocol: true}, nil, "", 200},
		"no PROXY":                       {settings.Balancers{Addresses: loopback, Protocol: true}, nil, "", 0},
		"half a PROXY":                   {settings.Balancers{Addresses: loopback, Protocol: true}, nil, "PROXY TCP4 203.0.113.9\r\n", 0},
		"X-Forwarded-For of a stranger":  {settings.Balancers{Addresses: elsewhere, Hops: 1}, []string{"X-Forwarded-For: 203.0.113.9"}, "", 200},
		"fewer entries than hops":        {settings.Balancers{Addresses: loopback, Hops: 2}, []string{"X-Forwarded-For: 203.0.113.9"}, "", 200},
		"an entry that is no address":    {settings.Balancers{Addresses: loopback, Hops: 1}, []string{"X-Forwarded-For: 203.0.113.9, unknown"}, "", 200},
		"X-Forwarded-For that is unread": {settings.Balancers{}, []string{"X-Forwarded-For: 203.0.113.9"}, "", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, behind(tc.config))
			conn := world.Dial(t, s.addr)
			if _, err := io.WriteString(conn, tc.preface+request("GET", "/v2/pods", k1, "", append(tc.header, "Connection: close")...)); err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(conn) // however the connection ends
			want := fmt.Sprintf("HTTP/1.1 %d ", tc.status)
			if tc.status == 0 && len(answer) > 0 || tc.status > 0 && !strings.HasPrefix(string(answer), want) {
				t.Errorf("answered %q, want %q", answer, want)
			}
			if strings.Contains(s.logs.String(), `"client.address":"203.0.113.9"`) {
				t.Errorf("believed: %s", s.logs)
			}
		})
	}
}

// Connections are bounded by the caller's address, and one that is refused is told so.
// A balancer that has yet to say whose it is holds up no one.
func TestConnectionsCountForTheAddressTold(t *testing.T) {
	t.Parallel()
	s := open(t, behind(settings.Balancers{Addresses: loopback, Protocol: true}), holding(1))
	silent := world.Dial(t, s.addr)
	defer func() { _ = silent.Close() }()
	first := s.dial(t)
	if _, err := io.WriteString(first, preface(t, 2, "203.0.113.9")); err != nil {
		t.Fatal(err)
	}
	if got := one(t, first, request("GET", "/v2/pods", k1, "")); got.Status != 200 {
		t.Fatalf("the first: status %d, want 200", got.Status)
	}
	again := world.Ask(t, s.addr, preface(t, 2, "203.0.113.9")+request("GET", "/v2/pods", k1, ""))
	if again.Status != 429 || again.Header.Get("Retry-After") == "" || !strings.Contains(again.Body, "too many connections from this address") {
		t.Errorf("the second: %d %v %s, want 429 with Retry-After", again.Status, again.Header, again.Body)
	}
	if got := world.Ask(t, s.addr, preface(t, 1, "203.0.113.10")+request("GET", "/v2/pods", k1, "")); got.Status != 200 {
		t.Errorf("another's: status %d, want 200", got.Status)
	}
}
