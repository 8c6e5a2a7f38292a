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

// Balancers lists the trusted load balancers, and how they forward the caller's address. The zero value trusts none.
type Balancers struct {
	Addresses []netip.Prefix `yaml:"addresses" doc:"networks of the load balancers, such as 10.0.0.0/24"`
	Protocol  bool           `yaml:"proxy_protocol" doc:"require a PROXY protocol header (version 1 or 2) at the start of each connection from a load balancer. Connections without this header are closed"`
	Hops      int            `yaml:"forwarded_hops" doc:"number of proxies that append an address to X-Forwarded-For, including the proxy that connects to the gateway; 0 means that the header is ignored" unit:"proxies"`
	Traces    bool           `yaml:"trace_context" doc:"use the trace contexts (traceparent) that the load balancers send as parents of the gateway's spans. Set this for Envoys that get their configuration from a gateway with telemetry.otlp"`
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

// Forwards reports whether a request came through a trusted load balancer that sets X-Forwarded-For. remote is the address of the
// connection, with its port.
func (c *Balancers) Forwards(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && c.Hops > 0 && c.Trusts(peer.Addr())
}

// TrustsTrace reports whether the trace context of a request was set by a trusted load balancer. remote is the address of the connection,
// with its port.
func (c *Balancers) TrustsTrace(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && c.Traces && c.Trusts(peer.Addr())
}

// Client returns the IP address of the caller. This is the address of the connection, unless it comes from a trusted balancer and Hops is
// set: then it is the entry of X-Forwarded-For at position Hops from the right. A header with too few entries, or without an address at
// that position, is ignored, because it was not written by the balancers.
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
