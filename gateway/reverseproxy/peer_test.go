package reverseproxy

import (
	"net/netip"
	"testing"
)

func TestPeer(t *testing.T) {
	h := &Handler{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}}
	for _, tc := range []struct {
		name, connection string
		forwarded        []string
		want             string
	}{
		{"no proxy", "203.0.113.1", nil, "203.0.113.1"},
		{"a caller's own word", "203.0.113.1", []string{"198.51.100.7"}, "203.0.113.1"},
		{"one proxy", "10.0.0.5", []string{"203.0.113.1"}, "203.0.113.1"},
		{"what the caller says of itself comes first", "10.0.0.5", []string{"198.51.100.7, 203.0.113.1"}, "203.0.113.1"},
		{"two proxies", "10.0.0.5", []string{"198.51.100.7, 203.0.113.1, 10.0.0.9"}, "203.0.113.1"},
		{"two fields", "10.0.0.5", []string{"198.51.100.7", "203.0.113.1"}, "203.0.113.1"},
		{"over IPv6", "2001:db8::5", []string{"2001:db9::1"}, "2001:db9::1"},
		{"IPv4 within IPv6", "::ffff:10.0.0.5", []string{"::ffff:203.0.113.1"}, "203.0.113.1"},
		{"a proxy that says nothing", "10.0.0.5", nil, "10.0.0.5"},
		{"no address", "10.0.0.5", []string{"203.0.113.1, unknown"}, "10.0.0.5"},
		{"no address before a proxy's", "10.0.0.5", []string{"x, 10.0.0.9"}, "10.0.0.9"},
		{"proxies only", "10.0.0.5", []string{"10.0.0.9"}, "10.0.0.9"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := h.peer(tc.connection, tc.forwarded); got != tc.want {
				t.Errorf("peer = %s, want %s", got, tc.want)
			}
		})
	}
}
