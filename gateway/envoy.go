package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/xds"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// Envoy is what Envoys in front connect to, and what they are told.
type Envoy struct {
	Listen string    `yaml:"listen" doc:"address of the gRPC server for Envoy: verdicts (ext_proc), configuration (xds) and health; empty opens none, and beyond loopback it needs tls" reload:"restart"`
	TLS    MutualTLS `yaml:"tls" doc:"mutual TLS between Envoy and its gRPC server" reload:"restart"`
	XDS    XDS       `yaml:"xds" doc:"what Envoys are configured with, see tollgate envoy"`
}

// Retired implements strictyaml.Retirer.
func (Envoy) Retired() map[string]string {
	return map[string]string{"ratelimit": "remove it: there is no rate limit service any more, only calls through the gateway are counted"}
}

// MutualTLS is the encryption of a server whose clients have certificates, too;
// the zero MutualTLS is none.
type MutualTLS struct {
	Certificate strictyaml.Secret `yaml:"certificate" doc:"certificate chain in PEM, the server's own first; its first DNS name is what Envoys expect"`
	Key         strictyaml.Secret `yaml:"key" doc:"its private key in PEM"`
	CA          strictyaml.Secret `yaml:"ca" doc:"certificates in PEM of the authority that Envoys have theirs from"`
	// Pair and Pool are these, parsed; nil without TLS.
	Pair *tls.Certificate `yaml:"-"`
	Pool *x509.CertPool   `yaml:"-"`
}

// NeedsRestart implements strictyaml.Restarter: other certificates are used at
// once, but a listener cannot begin or stop to speak TLS.
func (t MutualTLS) NeedsRestart(old any) bool {
	return (t.Pair == nil) != (old.(MutualTLS).Pair == nil)
}

// XDS is the configuration of Envoys.
type XDS struct {
	Advertise  netip.Addr    `yaml:"advertise" doc:"IP address under which Envoys reach this gateway; empty is that of listen or, where listen is 0.0.0.0 or [::], the one from which it reaches Redis" reload:"restart"`
	Gateways   []PeerGateway `yaml:"gateways" doc:"further gateways, where they do not share a Redis" reload:"live"`
	PlatformCA string        `yaml:"platform_ca" doc:"file on the Envoys' machines with the authorities of the platform's certificate, for groups with topology ext_proc, and of that of an OTLP receiver without ca" reload:"live"`
	Secrets    string        `yaml:"secrets" doc:"directory on the Envoys' machines with what tollgate envoy secrets writes, which says where they have their certificates for TLS to gateways; with it they use others at once, without it from their next start" reload:"live"`
	// Token, if there is one, is at least as long as that of an admin.
	Token  strictyaml.Secret `yaml:"token" doc:"token, at least 16 characters, that Envoys must show to be configured, besides their certificate where envoy.tls is configured; tollgate envoy bootstrap has it in what it prints" reload:"live"`
	Groups []NodeGroup       `yaml:"groups" doc:"the groups of Envoys that are configured" reload:"live"`
}

// PeerGateway is another gateway.
type PeerGateway struct {
	Data netip.AddrPort `yaml:"data,required" doc:"IP address and port of its data listener"`
	Door netip.AddrPort `yaml:"envoy,required" doc:"IP address and port of its gRPC server for Envoy"`
}

// NodeGroup is a group of Envoys with one configuration.
type NodeGroup struct {
	ID          string         `yaml:"id,required" doc:"short name: the node.cluster of its Envoys' bootstrap"`
	Topology    xds.Topology   `yaml:"topology" doc:"in_line sends every request through the data listener; ext_proc has Envoy ask for a verdict and call the platform itself; empty is in_line"`
	Listen      netip.AddrPort `yaml:"listen,required" doc:"IP address and port where callers connect to its Envoys"`
	TLS         TLS            `yaml:"tls" doc:"encryption of that listener, with HTTP/2"`
	HTTP3       bool           `yaml:"http3" doc:"also listen for HTTP/3, on the UDP port of the same number; needs tls"`
	TrustedHops int            `yaml:"trusted_hops" doc:"proxies before its Envoys that add the caller's address to X-Forwarded-For" unit:"proxies"`
	AccessLog   string         `yaml:"access_log" doc:"file on the Envoys' machines that gets their access log, by its absolute path; empty is standard output"`
}

// defaultNotice is longer than Envoys take to hear that a gateway leaves: two
// beats of the registry, or two health checks.
const defaultNotice = 5 * time.Second

// minToken is the least length of the Envoys' token, in bytes.
const minToken = 16

// notice is how long a gateway serves on after it was told to stop.
func (c *Config) notice() time.Duration {
	if c.Timeouts.Notice == 0 && len(c.Envoy.XDS.Groups) > 0 {
		return defaultNotice
	}
	return c.Timeouts.Notice
}

// validateEnvoys reports what is wrong with the configuration of Envoys.
func (c *Config) validateEnvoys() error {
	var errs fault.Found
	seen := make(map[string]bool)
	groups := c.nodeGroups()
	for i, g := range c.Envoy.XDS.Groups {
		at := fault.Index("groups", i)
		errs.If(seen[g.ID], at+".id", "group %q is already defined", g.ID)
		seen[g.ID] = true
		errs.If(g.TrustedHops < 0, at+".trusted_hops", "must not be negative")
		errs.If(g.AccessLog != "" && !path.IsAbs(g.AccessLog), at+".access_log", "must be an absolute path, on the Envoys' machines")
		errs.If(g.HTTP3 && g.TLS.Certificate.IsZero(), at+".http3", "needs tls")
		if needs := groups[i].ThroughData(); needs != "" && len(c.Balancers.Addresses) == 0 {
			errs = append(errs, fault.Errorf(at+".topology", "%s needs balancers.addresses, those of these Envoys: all callers would be one", needs))
		}
		if _, err := groups[i].Snapshot(nil); err != nil {
			errs = append(errs, fault.At(at, err))
		}
	}
	if len(c.Envoy.XDS.Groups) == 0 {
		return errors.Join(errs...)
	}
	if n := len(c.Envoy.XDS.Token.Reveal()); n > 0 && n < minToken {
		errs = append(errs, fault.Errorf("token", "must have at least %d characters", minToken))
	}
	errs.If(c.Envoy.Listen == "", "groups", "need envoy.listen, where their Envoys ask")
	if addr := c.advertised(); !addr.IsValid() || addr.IsUnspecified() && c.Redis.Embedded {
		errs = append(errs, fault.Errorf("advertise", "must be the IP address under which Envoys reach this gateway: neither listen nor a way to Redis says it"))
	}
	for path, pair := range map[string]*tls.Certificate{"tls": c.TLS.Pair, "envoy.tls": c.Envoy.TLS.Pair} {
		errs.If(pair != nil && c.peer(pair).Name == "", "groups", "need a DNS name in the certificate of %s", path)
	}
	errs.If(!c.TLS.Certificate.IsZero() && c.Envoy.TLS.Certificate.IsZero(), "groups", "need envoy.tls.ca, the authority by which Envoys know the certificate of the data listener")
	return fault.At("envoy.xds", errors.Join(errs...))
}

// advertised is where Envoys reach this gateway, as far as the configuration says
// it: an unspecified address means that of the route to Redis.
func (c *Config) advertised() netip.Addr {
	if c.Envoy.XDS.Advertise.IsValid() {
		return c.Envoy.XDS.Advertise
	}
	host, _, _ := net.SplitHostPort(c.Listen)
	if host == "" {
		return netip.IPv6Unspecified()
	}
	addr, _ := netip.ParseAddr(host) // a name is none
	return addr
}

// self is this gateway, for Envoys.
func (c *Config) self(ctx context.Context, data, door net.Addr) (xds.Gateway, error) {
	addr := c.advertised()
	if addr.IsUnspecified() {
		var err error
		if addr, err = routeTo(ctx, c.Redis.URL.Reveal()); err != nil {
			return xds.Gateway{}, fmt.Errorf("the address that Envoys are told: %w", err)
		}
	}
	at := func(a net.Addr) netip.AddrPort {
		own, _ := netip.ParseAddrPort(a.String()) // a listener on TCP has one
		return netip.AddrPortFrom(addr, own.Port())
	}
	return xds.Gateway{Data: at(data), Door: at(door)}, nil
}

// routeTo returns the address from which this machine reaches a Redis: in a
// container, its own. Nothing is sent.
func routeTo(ctx context.Context, url string) (netip.Addr, error) {
	opts, err := redisstore.Options(url)
	if err != nil {
		return netip.Addr{}, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "udp", opts.Addrs[0])
	if err != nil {
		return netip.Addr{}, err
	}
	defer func() { _ = conn.Close() }()
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return local.Addr().Unmap(), err
}

// peers are the gateways that the configuration names.
func (c *Config) peers() []xds.Gateway {
	peers := make([]xds.Gateway, len(c.Envoy.XDS.Gateways))
	for i, p := range c.Envoy.XDS.Gateways {
		peers[i] = xds.Gateway{Data: p.Data, Door: p.Door}
	}
	return peers
}

// nodeGroups turns the configuration into what its Envoys are told.
func (c *Config) nodeGroups() []xds.Group {
	groups := make([]xds.Group, len(c.Envoy.XDS.Groups))
	for i, g := range c.Envoy.XDS.Groups {
		groups[i] = xds.Group{
			ID: g.ID, Topology: cmp.Or(g.Topology, xds.InLine), Listen: g.Listen, TrustedHops: uint32(max(g.TrustedHops, 0)),
			HTTP3: g.HTTP3, AccessLog: g.AccessLog, Data: c.peer(c.TLS.Pair), Door: c.peer(c.Envoy.TLS.Pair), Platform: c.platform(), Runs: c.throughEnvoy(), Tracing: c.tracing(), Body: c.Timeouts.Body, Call: c.Timeouts.Call,
		}
		if g.TLS.Pair != nil {
			groups[i].Certificate, groups[i].Key = []byte(g.TLS.Certificate.Reveal()), []byte(g.TLS.Key.Reveal())
		}
	}
	return groups
}

// tracing is where Envoys send their spans.
func (c *Config) tracing() xds.Tracing {
	r := &c.Telemetry.OTLP.Receiver
	t := xds.Tracing{URL: r.Traces(), Headers: make(map[string]string, len(r.Headers)), Ratio: c.Telemetry.SampleRatio, Trusted: c.Telemetry.Context.Trusted}
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

// peer is who shows a certificate, nil for none.
func (c *Config) peer(pair *tls.Certificate) xds.Peer {
	if pair == nil || len(pair.Leaf.DNSNames) == 0 {
		return xds.Peer{}
	}
	return xds.Peer{Name: pair.Leaf.DNSNames[0], Secrets: c.Envoy.XDS.Secrets}
}

// platform is where Envoys send calls.
func (c *Config) platform() xds.Platform {
	base, err := url.Parse(c.Platform.BaseURL)
	if err != nil {
		return xds.Platform{} // a fault of its own
	}
	p := xds.Platform{Host: base.Hostname(), Port: 80, TLS: base.Scheme == "https", CAFile: c.Envoy.XDS.PlatformCA}
	if p.TLS {
		p.Port = 443
	}
	if port, err := strconv.ParseUint(base.Port(), 10, 16); err == nil {
		p.Port = uint32(port)
	}
	return p
}

// NodeGroup returns what a group of Envoys is told, and the gateways that are
// known without asking: those that the configuration names, and this one if its
// address is there, too.
func (c *Config) NodeGroup(id string) (xds.Group, []xds.Gateway, error) {
	groups := c.nodeGroups()
	i := slices.IndexFunc(groups, func(g xds.Group) bool { return g.ID == id || id == "" && len(groups) == 1 })
	if i < 0 {
		return xds.Group{}, nil, fmt.Errorf("no node group %q in envoy.xds.groups", id)
	}
	at := func(listen string) netip.AddrPort {
		_, port, _ := net.SplitHostPort(listen)
		n, _ := strconv.ParseUint(port, 10, 16) // validated
		return netip.AddrPortFrom(c.advertised(), uint16(n))
	}
	known := c.peers()
	if !c.advertised().IsUnspecified() {
		known = append(known, xds.Gateway{Data: at(c.Listen), Door: at(c.Envoy.Listen)})
	}
	return groups[i], xds.Sorted(known), nil
}
