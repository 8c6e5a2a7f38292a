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

// Balancers lists the trusted load balancers, and says how they forward the caller's address. The zero value trusts no load balancer.
type Balancers struct {
	Addresses []netip.Prefix `yaml:"addresses" doc:"networks of the load balancers, such as 10.0.0.0/24"`
	Protocol  bool           `yaml:"proxy_protocol" doc:"require a PROXY protocol header (version 1 or 2) on each connection from a load balancer. Other connections are closed"`
	Hops      int            `yaml:"forwarded_hops" doc:"proxies that append an address to X-Forwarded-For, including the proxy that connects to the gateway; 0 ignores the header" unit:"proxies"`
	Traces    bool           `yaml:"trace_context" doc:"use trace contexts (traceparent) from the load balancers as parents of the gateway's spans. With telemetry.otlp, Envoys that gateways configure send them"`
}

// maxHops is the maximum of Hops.
const maxHops = 16

// Validate returns all faults.
func (c *Balancers) Validate() error {
	var errs fault.Found
	fault.Between(&errs, "forwarded_hops", c.Hops, 0, maxHops)
	errs.If((c.Protocol || c.Hops > 0 || c.Traces) && len(c.Addresses) == 0, "addresses", "must list the load balancers that proxy_protocol, forwarded_hops or trace_context trusts")
	return errors.Join(errs...)
}

// Trusts reports whether addr belongs to a trusted load balancer.
func (c *Balancers) Trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(c.Addresses, func(p netip.Prefix) bool { return p.Contains(addr.Unmap().WithZone("")) })
}

// trustsPeer reports whether a connection with the given remote address, with the port, comes from a trusted load balancer.
func (c *Balancers) trustsPeer(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && c.Trusts(peer.Addr())
}

// Forwards reports whether a request came through a trusted load balancer that sets X-Forwarded-For. remote is the remote address of the
// connection, with the port.
func (c *Balancers) Forwards(remote string) bool { return c.Hops > 0 && c.trustsPeer(remote) }

// TrustsTrace reports whether a trusted load balancer set the trace context of a request. remote is the remote address of the connection,
// with the port.
func (c *Balancers) TrustsTrace(remote string) bool { return c.Traces && c.trustsPeer(remote) }

// Client returns the IP address of the caller. For a connection from a trusted load balancer with Hops set, this is the entry of
// X-Forwarded-For at position Hops from the right. For other connections, and if the header has no valid address at this position, it is
// the remote address of the connection. Client returns "" if remote contains no IP address, as for a Unix socket.
func (c *Balancers) Client(remote string, h http.Header) string {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "" // a Unix socket has no address
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
