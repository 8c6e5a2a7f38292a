package egress

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

// A restricted URL leads to public addresses and to listed networks, never to this machine, its link or what serves credentials there,
// whatever is listed.
func TestRestrictedAddresses(t *testing.T) {
	own := []net.Addr{&net.IPNet{IP: net.IPv4(10, 1, 0, 9), Mask: net.CIDRMask(16, 32)}, &net.IPNet{IP: net.IPv4(93, 184, 216, 34), Mask: net.CIDRMask(24, 32)}}
	everything := []Network{{netip.MustParsePrefix("0.0.0.0/0")}, {netip.MustParsePrefix("::/0")}}
	one := []Network{{netip.MustParsePrefix("10.1.0.0/16")}}
	for _, tc := range []struct {
		address  string
		networks []Network
		want     error
	}{
		{"8.8.8.8", nil, nil},
		{"2606:4700:4700::1111", nil, nil},
		{"64:ff9b::8.8.8.8", nil, nil},
		{"10.1.0.1", nil, errPrivate},
		{"10.1.0.1", one, nil},
		{"10.2.0.1", one, errPrivate},
		{"10.1.0.9", one, errOwn},
		{"93.184.216.34", nil, errOwn},
		{"127.0.0.1", everything, errOwn},
		{"127.8.8.8", everything, errOwn},
		{"::1", everything, errOwn},
		{"::ffff:127.0.0.1", everything, errOwn},
		{"64:ff9b::127.0.0.1", everything, errOwn},
		{"0.0.0.0", everything, errOwn},
		{"::", everything, errOwn},
		{"169.254.169.254", everything, errLocal},
		{"fe80::1", everything, errLocal},
		{"fd00:ec2::254", everything, errLocal},
		{"100.100.100.200", everything, errLocal},
		{"168.63.129.16", nil, errLocal},
		{"192.168.0.1", nil, errPrivate},
		{"100.64.0.1", nil, errPrivate},
		{"fd12::1", nil, errPrivate},
	} {
		u := UnrestrictedURL("https://receiver.example/")
		u.Restrict(tc.networks)
		if err := checkAddr(netip.MustParseAddr(tc.address), u.reach.public(), own); !errors.Is(err, tc.want) {
			t.Errorf("%s with %v: %v, want %v", tc.address, tc.networks, err, tc.want)
		}
	}
}

// Only a URL that may lead anywhere reaches a server on loopback; one that was decoded and nothing more reaches none.
func TestClientOfURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	decoded, restricted, open := URL{}, UnrestrictedURL(server.URL), UnrestrictedURL(server.URL)
	if err := decoded.UnmarshalText([]byte(server.URL)); err != nil {
		t.Fatal(err)
	}
	restricted.Restrict([]Network{{netip.MustParsePrefix("127.0.0.0/8")}})
	for name, tc := range map[string]struct {
		url  URL
		want error
	}{"decoded": {decoded, errUnplaced}, "restricted": {restricted, errOwn}, "open": {open, nil}} {
		req, err := tc.url.Request(t.Context(), http.MethodGet, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := tc.url.Client(nil, time.Second).Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// The check finds addresses that are written in a restricted URL.
func TestCheckURL(t *testing.T) {
	for text, want := range map[string]error{
		"https://own.example/b.tar.gz": nil, "https://127.0.0.1:8081/": errOwn, "https://LOCALHOST./": errOwn, "https://a.localhost/": errOwn,
		"https://[::1]/": errOwn, "https://169.254.169.254/": errLocal, "https://10.0.0.1/": errPrivate, "https://0/": nil,
	} {
		u := UnrestrictedURL(text)
		if err := u.Check(); err != nil {
			t.Errorf("%s leads anywhere: %v", text, err)
		}
		u.Restrict(nil)
		if err := u.Check(); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}
