package settings

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// Envoy configures the listeners for Envoys in front, and the configuration that they get.
type Envoy struct {
	Listen string    `yaml:"listen" doc:"address of the gRPC server for Envoy: verdicts (ext_proc), configuration (xds) and health; empty opens none, and beyond loopback it needs tls" reload:"restart"`
	TLS    MutualTLS `yaml:"tls" doc:"mutual TLS between Envoy and its gRPC server" reload:"restart"`
	XDS    XDS       `yaml:"xds" doc:"what Envoys are configured with, see tollgate envoy"`
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
	Zone       string        `yaml:"zone" doc:"zone in which this gateway runs: short name, which groups have, too" reload:"restart"`
	Gateways   []PeerGateway `yaml:"gateways" doc:"further gateways, where they do not share a Redis" reload:"live"`
	PlatformCA string        `yaml:"platform_ca" doc:"file on the Envoys' machines with the authorities of the platform's certificate, for groups with topology ext_proc, and of that of an OTLP receiver without ca" reload:"live"`
	Secrets    string        `yaml:"secrets" doc:"directory on the Envoys' machines with what tollgate envoy secrets writes, which says where they have their certificates for TLS to gateways; with it they use others at once, without it from their next start" reload:"live"`
	// Token, if there is one, is at least as long as that of an admin.
	Token  strictyaml.Secret `yaml:"token" doc:"token, at least 16 characters, that Envoys must show to be configured, besides their certificate where envoy.tls is configured; tollgate envoy bootstrap prints it" reload:"live"`
	Groups []NodeGroup       `yaml:"groups" doc:"the groups of Envoys that are configured" reload:"live"`
}

// PeerGateway is another gateway.
type PeerGateway struct {
	Data netip.AddrPort `yaml:"data,required" doc:"IP address and port of its data listener"`
	Door netip.AddrPort `yaml:"envoy,required" doc:"IP address and port of its gRPC server for Envoy"`
	Zone string         `yaml:"zone" doc:"zone in which it runs"`
}

// NodeGroup is a group of Envoys with one configuration.
type NodeGroup struct {
	ID       string         `yaml:"id,required" doc:"short name: the node.cluster of its Envoys' bootstrap"`
	Topology Topology       `yaml:"topology" doc:"in_line sends every request through the data listener; ext_proc has Envoy ask for a verdict and call the platform itself; empty is in_line"`
	Listen   netip.AddrPort `yaml:"listen,required" doc:"IP address and port where callers connect to its Envoys"`
	TLS      TLS            `yaml:"tls" doc:"encryption of that listener, with HTTP/2"`
	// Certificates are resolved as TLS is.
	Certificates []TLS  `yaml:"certificates" doc:"further certificates of that listener, for other host names: callers are shown that of the name they ask for, or the one of tls"`
	HTTP3        bool   `yaml:"http3" doc:"also listen for HTTP/3, on the UDP port of the same number; needs tls"`
	TrustedHops  int    `yaml:"trusted_hops" doc:"proxies before its Envoys that add the caller's address to X-Forwarded-For" unit:"proxies"`
	Zone         string `yaml:"zone" doc:"zone in which its Envoys run: they send requests to gateways of that zone, and to others when too few of those are healthy"`
	Merge        Merge  `yaml:"merge" doc:"changes to what its Envoys are told, as JSON merge patches (RFC 7396) with the field names of Envoy's protocol buffers"`
	AccessLog    string `yaml:"access_log" doc:"file on the Envoys' machines that gets their access log, by its absolute path; empty is standard output"`
}

// Merge has merge patches by the names of resources.
type Merge struct {
	Listeners map[string]any `yaml:"listeners" doc:"of listeners: callers, and with http3 callers_http3"`
	Clusters  map[string]any `yaml:"clusters" doc:"of clusters, as tollgate envoy snapshot names them"`
}

// defaultNotice is longer than Envoys take to hear that a gateway leaves: two
// beats of the registry, or two health checks.
const defaultNotice = 5 * time.Second

// MinEnvoyToken is the least length of the Envoys' token, in bytes.
const MinEnvoyToken = 16

// Topology is how the Envoys of a group work with the gateways.
type Topology string

// Values lists the topologies: those of package xds.
func (Topology) Values() []string { return []string{"in_line", "ext_proc"} }

// BalancedDomain is the end of host names of load-balanced endpoints, from
// the dot behind the endpoint's id; "" when they have none.
func (c *Config) BalancedDomain() string {
	u, err := url.Parse(strings.Replace(c.PublicBalancedURL, "{id}", "", 1))
	if err != nil {
		return "" // a fault of its own
	}
	return strings.ToLower(u.Hostname())
}
