package envoy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// selfOf returns the addresses where Envoys reach this gateway.
func selfOf(ctx context.Context, c *settings.Config, data, door net.Addr) (Gateway, error) {
	addr := c.AdvertisedAddr()
	if addr.IsUnspecified() {
		var err error
		if addr, err = redisstore.LocalAddr(ctx, c.Redis.URL.Reveal()); err != nil {
			return Gateway{}, fmt.Errorf("cannot determine the address of this gateway for Envoys: %w; set envoy.xds.advertise", err)
		}
	}
	at := func(a net.Addr) netip.AddrPort {
		own, _ := netip.ParseAddrPort(a.String()) // a TCP listener always has an address
		return netip.AddrPortFrom(addr, own.Port())
	}
	return Gateway{Data: at(data), Door: at(door), Zone: c.Envoy.XDS.Zone}, nil
}

// peersOf returns the gateways listed in the configuration.
func peersOf(c *settings.Config) []Gateway {
	peers := make([]Gateway, len(c.Envoy.XDS.Gateways))
	for i, p := range c.Envoy.XDS.Gateways {
		peers[i] = Gateway{Data: p.Data, Door: p.Door, Zone: p.Zone}
	}
	return peers
}

// Groups returns a Group for each node group in the configuration.
func Groups(c *settings.Config) []Group {
	groups := make([]Group, len(c.Envoy.XDS.Groups))
	for i, g := range c.Envoy.XDS.Groups {
		groups[i] = Group{
			ID: g.ID, Topology: cmp.Or(Topology(g.Topology), InLine), Listen: g.Listen, TrustedHops: uint32(max(g.TrustedHops, 0)),
			HTTP3: g.HTTP3, AccessLog: g.AccessLog, Zone: g.Zone, Merge: Merge(g.Merge), Data: newPeer(c, c.TLS.Pair),
			Door: newPeer(c, c.Envoy.TLS.Pair), Platform: platformOf(c), Runs: runsOf(c), Tracing: tracingOf(c),
			Body: c.Timeouts.Body, Call: c.Timeouts.Call,
		}
		if g.TLS.Pair != nil {
			groups[i].Certificates = []Certificate{{[]byte(g.TLS.Certificate.Reveal()), []byte(g.TLS.Key.Reveal())}}
		}
		for _, t := range g.Certificates {
			groups[i].Certificates = append(groups[i].Certificates, Certificate{[]byte(t.Certificate.Reveal()), []byte(t.Key.Reveal())})
		}
	}
	return groups
}

// tracingOf returns the trace settings of Envoys.
func tracingOf(c *settings.Config) Tracing {
	r := &c.Telemetry.OTLP.Receiver
	t := Tracing{
		URL: r.TracesURL(), Headers: make(map[string]string, len(r.Headers)), Ratio: c.Telemetry.SampleRatio,
		Trusted: c.Telemetry.Context.Trusted,
	}
	for name, value := range r.Headers {
		t.Headers[name] = value.Reveal()
	}
	if r.CA.Resolved() {
		t.CA = []byte(r.CA.Reveal())
	}
	if r.Certificate.Resolved() {
		t.Certificate, t.Key = []byte(r.Certificate.Reveal()), []byte(r.Key.Reveal())
	}
	return t
}

// newPeer returns a Peer with the DNS name in the certificate of pair. It returns the zero Peer if pair is nil.
func newPeer(c *settings.Config, pair *tls.Certificate) Peer {
	if pair == nil || len(pair.Leaf.DNSNames) == 0 {
		return Peer{}
	}
	return Peer{Name: pair.Leaf.DNSNames[0], Secrets: c.Envoy.XDS.Secrets}
}

// platformOf returns the platform settings of Envoys.
func platformOf(c *settings.Config) Platform {
	base, err := url.Parse(c.Platform.BaseURL)
	if err != nil {
		return Platform{} // reported elsewhere
	}
	return Platform{Host: base.Hostname(), Port: portOf(base), TLS: base.Scheme == "https", CAFile: c.Envoy.XDS.PlatformCA}
}

// portOf returns the port of an http or https URL.
func portOf(u *url.URL) uint32 {
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		return uint32(n)
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}

// NodeGroup returns the node group with the given ID, and the gateways that the configuration contains: the listed gateways, and this
// gateway if its address is configured. If id is "", there must be only one node group.
func NodeGroup(c *settings.Config, id string) (Group, []Gateway, error) {
	groups := Groups(c)
	i := slices.IndexFunc(groups, func(g Group) bool { return g.ID == id || id == "" && len(groups) == 1 })
	switch {
	case i >= 0:
	case len(groups) == 0:
		return Group{}, nil, errors.New("envoy.xds.groups does not define a node group")
	case id == "":
		return Group{}, nil, errors.New("envoy.xds.groups defines several node groups: select one with --node-group")
	default:
		return Group{}, nil, fmt.Errorf("node group %q is not defined in envoy.xds.groups", id)
	}
	at := func(listen string) netip.AddrPort {
		_, port, _ := net.SplitHostPort(listen)
		n, _ := strconv.ParseUint(port, 10, 16) // already validated
		return netip.AddrPortFrom(c.AdvertisedAddr(), uint16(n))
	}
	known := peersOf(c)
	if !c.AdvertisedAddr().IsUnspecified() {
		known = append(known, Gateway{Data: at(c.Listen), Door: at(c.Envoy.Listen), Zone: c.Envoy.XDS.Zone})
	}
	return groups[i], sortGateways(known), nil
}

// runPaths matches the paths of jobs and chat. It also matches some paths of the REST API; the gateways' HTTP listeners handle these
// requests with the same result.
const runPaths = `/v2/[^/]+/(run|runsync|status|status-sync|stream|cancel|retry|purge-queue|health|requests|batch|openai)(/.*)?`

// runsOf returns the settings of the run interface for Envoys.
func runsOf(c *settings.Config) Runs {
	var r Runs
	if c.Platform.RunURL != "" {
		r.Paths = runPaths
	}
	if c.Platform.BalancedURL != "" {
		r.Balanced = filter.BalancedPath
		if domain := c.BalancedDomain(); domain != "" {
			r.Domain = "*" + domain
		}
	}
	return r
}
