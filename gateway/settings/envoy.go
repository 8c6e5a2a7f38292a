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

// Envoy configures the listeners for Envoy proxies and the configuration served to them.
type Envoy struct {
	Listen string    `yaml:"listen" doc:"address of the gRPC server for Envoy, which serves ext_proc, configuration (xDS) and health checks; if empty, it does not run. Beyond loopback it requires tls" reload:"restart"`
	TLS    MutualTLS `yaml:"tls" doc:"mutual TLS between Envoy and the gRPC server" reload:"restart"`
	XDS    XDS       `yaml:"xds" doc:"configuration served to Envoys, see tollgate envoy"`
}

// MutualTLS configures a TLS server that requires client certificates. The zero value disables TLS.
type MutualTLS struct {
	Certificate strictyaml.Secret `yaml:"certificate" doc:"PEM certificate chain, the server's own certificate first; Envoys expect its first DNS name"`
	Key         strictyaml.Secret `yaml:"key" doc:"PEM private key of the certificate"`
	CA          strictyaml.Secret `yaml:"ca" doc:"PEM certificates of the certificate authority that signs Envoys' certificates"`
	// Pair and Pool are the parsed certificate and certificate authorities, or nil if TLS is disabled.
	Pair *tls.Certificate `yaml:"-"`
	Pool *x509.CertPool   `yaml:"-"`
}

// NeedsRestart implements strictyaml.Restarter. New certificates are used immediately, but enabling or disabling TLS requires a restart.
func (t MutualTLS) NeedsRestart(old any) bool {
	return (t.Pair == nil) != (old.(MutualTLS).Pair == nil)
}

// XDS configures the discovery service (xDS) for Envoys.
type XDS struct {
	Advertise  netip.Addr    `yaml:"advertise" doc:"IP address of this gateway for Envoys; if empty, the address of listen or, if that is 0.0.0.0 or [::], the local address of the connection to Redis" reload:"restart"`
	Zone       string        `yaml:"zone" doc:"zone of this gateway, a short name that is also used for groups" reload:"restart"`
	Gateways   []PeerGateway `yaml:"gateways" doc:"other gateways, if the gateways do not share a Redis" reload:"live"`
	PlatformCA string        `yaml:"platform_ca" doc:"file on Envoy's machine with the certificate authorities of the platform, for groups with topology ext_proc, and of an OTLP receiver without ca" reload:"live"`
	Secrets    string        `yaml:"secrets" doc:"directory on Envoy's machine with the files written by tollgate envoy secrets, which name the certificates for TLS to gateways. With it, Envoys use renewed certificates immediately; without it, after their next start" reload:"live"`
	// Token, if set, has the minimum length of an admin token.
	Token  strictyaml.Secret `yaml:"token" doc:"token, at least 16 characters, that Envoys must present to be configured, in addition to a certificate if envoy.tls is set; tollgate envoy bootstrap includes it" reload:"live"`
	Groups []NodeGroup       `yaml:"groups" doc:"groups of Envoys to configure" reload:"live"`
}

// PeerGateway is the address of another gateway.
type PeerGateway struct {
	Data netip.AddrPort `yaml:"data,required" doc:"IP address and port of its data listener"`
	Door netip.AddrPort `yaml:"envoy,required" doc:"IP address and port of its gRPC server for Envoy"`
	Zone string         `yaml:"zone" doc:"zone of the gateway"`
}

// NodeGroup is a group of Envoys with the same configuration.
type NodeGroup struct {
	ID       string         `yaml:"id,required" doc:"short name, which is the node.cluster in the bootstrap configuration of its Envoys"`
	Topology Topology       `yaml:"topology" doc:"in_line sends every request through the data listener; ext_proc makes Envoy ask the gateway for a verdict and call the platform itself. If empty, in_line"`
	Listen   netip.AddrPort `yaml:"listen,required" doc:"IP address and port on which its Envoys listen for callers"`
	TLS      TLS            `yaml:"tls" doc:"TLS of the listener for callers, with HTTP/2"`
	// Certificates are resolved like TLS.
	Certificates []TLS  `yaml:"certificates" doc:"additional certificates of the listener for other host names; if no name matches, the certificate of tls is used"`
	HTTP3        bool   `yaml:"http3" doc:"also listen for HTTP/3, on the UDP port with the same number; requires tls"`
	TrustedHops  int    `yaml:"trusted_hops" doc:"number of proxies in front of its Envoys that append to X-Forwarded-For" unit:"proxies"`
	Zone         string `yaml:"zone" doc:"zone of its Envoys: they prefer gateways in this zone, and use others when too few of those are healthy"`
	Merge        Merge  `yaml:"merge" doc:"changes to the served configuration, as JSON merge patches (RFC 7396) with the field names of Envoy's protocol buffers"`
	AccessLog    string `yaml:"access_log" doc:"absolute path of the access log on Envoy's machine; if empty, standard output"`
}

// Merge holds JSON merge patches by resource name.
type Merge struct {
	Listeners map[string]any `yaml:"listeners" doc:"patches by listener: callers and, with http3, callers_http3"`
	Clusters  map[string]any `yaml:"clusters" doc:"patches by cluster, named as in the output of tollgate envoy snapshot"`
}

// defaultNotice is longer than Envoys need to notice that a gateway is stopping: two heartbeats of the registry, or two health checks.
const defaultNotice = 5 * time.Second

// MinEnvoyToken is the minimum length of the Envoy token in bytes.
const MinEnvoyToken = 16

// Topology says how the Envoys of a group use the gateways.
type Topology string

// Values lists the topologies of package envoy.
func (Topology) Values() []string { return []string{"in_line", "ext_proc"} }

// BalancedDomain returns the host name suffix of load-balanced endpoints, beginning with the dot after the endpoint ID. It is "" if they
// have no host names.
func (c *Config) BalancedDomain() string {
	u, err := url.Parse(strings.Replace(c.PublicBalancedURL, "{id}", "", 1))
	if err != nil {
		return "" // reported elsewhere
	}
	return strings.ToLower(u.Hostname())
}
