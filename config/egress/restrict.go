package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"code.dny.dev/ssrf"
)

// ErrForbidden means that a restricted URL has an address that must not be dialled. [URL.Check] and an attempt to dial the address return
// it.
var ErrForbidden = errors.New("address not allowed")

var (
	errUnplaced = fmt.Errorf("%w: no addresses are permitted for the URL", ErrForbidden)
	errOwn      = fmt.Errorf("%w: loopback addresses and addresses of this host are never allowed", ErrForbidden)
	errLocal    = fmt.Errorf("%w: link-local, multicast and cloud metadata addresses are never allowed", ErrForbidden)
	errPrivate  = fmt.Errorf("%w: private network is not listed in org_bounds.networks", ErrForbidden)
)

// metadata lists addresses at which cloud providers serve credentials to virtual machines and that are not link-local.
var metadata = []netip.Addr{ //nolint:gochecknoglobals // never changed
	netip.MustParseAddr("fd00:ec2::254"),      // AWS
	netip.MustParseAddr("fd20:ce::254"),       // Google Cloud
	netip.MustParseAddr("100.100.100.200"),    // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"),      // Azure
	netip.MustParseAddr("192.0.0.192"),        // Oracle Cloud
	netip.MustParseAddr("fd00:42::42"),        // Scaleway
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"), // Oracle Cloud
}

// nat64 is the prefix through which NAT64 translators reach IPv4 addresses (RFC 6052, section 2.1).
var nat64 = netip.MustParsePrefix("64:ff9b::/96") //nolint:gochecknoglobals // never changed

// Network is a private network that a restricted URL may reach.
type Network struct{ netip.Prefix }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (n *Network) UnmarshalText(text []byte) error {
	if n.Prefix.UnmarshalText(text) != nil {
		return errors.New("must be an IP network such as 10.1.0.0/16")
	}
	return nil
}

// Within reports whether a single network in list contains all addresses of n.
func (n Network) Within(list []Network) bool {
	return slices.ContainsFunc(list, func(l Network) bool { return l.Bits() <= n.Bits() && l.Contains(n.Addr()) })
}

// CheckForbidden returns an error if addr is an address that a restricted URL may never reach, even if its networks contain addr: a
// loopback, unspecified, link-local or multicast address, or an address at which cloud providers serve credentials.
func CheckForbidden(addr netip.Addr) error {
	addr = plain(addr)
	switch {
	case addr.IsLoopback(), addr.IsUnspecified(), addr.Is4() && addr.As4()[0] == 0:
		return errOwn
	case addr.IsLinkLocalUnicast(), addr.IsMulticast(), slices.Contains(metadata, addr):
		return errLocal
	}
	return nil
}

// plain returns addr without its zone. It converts an IPv6 address that contains an IPv4 address to the IPv4 address.
func plain(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		bytes := addr.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return addr
}

// public returns a check that accepts public addresses and the addresses in the networks of r.
func (r reach) public() *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for text := range strings.FieldsSeq(r.networks) {
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil: // prefixes were formatted by Prefix.String
		case p.Addr().Is4():
			v4 = append(v4, p)
		default:
			v6 = append(v6, p)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}

// checkAddr returns an error unless addr is an address that a restricted URL may reach. own lists the addresses of this host.
func checkAddr(addr netip.Addr, public *ssrf.Guardian, own []net.Addr) error {
	if err := CheckForbidden(addr); err != nil {
		return err
	}
	addr = plain(addr)
	isOwn := func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && plain(p.Addr()) == addr
	}
	if slices.ContainsFunc(own, isOwn) {
		return errOwn
	}
	if public.SafeAddr(addr) != nil {
		return errPrivate
	}
	return nil
}
