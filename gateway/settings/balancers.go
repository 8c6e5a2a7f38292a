package settings

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Balancers says which load balancers there are, and how they tell the caller's address. The
// zero value has none.
type Balancers struct {
	Addresses []netip.Prefix `yaml:"addresses" doc:"prefixes that the balancers connect from, such as 10.0.0.0/24"`
	Protocol  bool           `yaml:"proxy_protocol" doc:"they begin each connection with a header of the PROXY protocol, version 1 or 2; one without it is closed"`
	Hops      int            `yaml:"forwarded_hops" doc:"how many proxies append to X-Forwarded-For, the one that connects included; 0 does not read it" unit:"proxies"`
	Traces    bool           `yaml:"trace_context" doc:"they send trace contexts (traceparent) of their own, which become the parents of exchanges' spans; Envoys that a gateway with telemetry.otlp configures do"`
}

// maxHops bounds Hops.
const maxHops = 16

// Validate reports every fault.
func (c *Balancers) Validate() error {
	var errs fault.Found
	fault.Between(&errs, "forwarded_hops", c.Hops, 0, maxHops)
	errs.If((c.Protocol || c.Hops > 0 || c.Traces) && len(c.Addresses) == 0, "addresses", "must list the balancers that are believed")
	return errors.Join(errs...)
}

// Trusts reports whether addr is a balancer's.
func (c *Balancers) Trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(c.Addresses, func(p netip.Prefix) bool { return p.Contains(addr.Unmap().WithZone("")) })
}

// Forwards reports whether a request came by way of a balancer that writes X-Forwarded-For, given the address of the connection.
func (c *Balancers) Forwards(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && c.Hops > 0 && c.Trusts(peer.Addr())
}

// TrustsTrace reports whether the trace context of a request is its balancer's, given the
// address of the connection.
func (c *Balancers) TrustsTrace(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && c.Traces && c.Trusts(peer.Addr())
}

// Client returns the address, without port, that a request came from: that of the
// connection, or the one its balancer has found, the entry of X-Forwarded-For as many
// from the right as there are hops. A header with fewer entries, or with something
// else in that place, does not come from the balancers, and is not believed.
func (c *Balancers) Client(remote string, h http.Header) string {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "" // a local socket has none
	}
	if c.Hops == 0 || !c.Trusts(peer.Addr()) {
		return peer.Addr().String()
	}
	entries := strings.Split(strings.Join(h.Values("X-Forwarded-For"), ","), ",")
	if len(entries) < c.Hops {
		return peer.Addr().String()
	}
	entry := strings.TrimSpace(entries[len(entries)-c.Hops])
	if host, _, err := net.SplitHostPort(entry); err == nil {
		entry = host
	}
	addr, err := netip.ParseAddr(strings.Trim(entry, "[]"))
	if err != nil {
		return peer.Addr().String()
	}
	return addr.Unmap().WithZone("").String()
}
