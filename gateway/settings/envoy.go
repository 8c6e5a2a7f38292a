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
	Listen string    `yaml:"listen" doc:"address of the gRPC server for Envoy: ext_proc, configuration (xDS) and health checks. Non-loopback addresses require tls. If empty, no server runs" reload:"restart"`
	TLS    MutualTLS `yaml:"tls" doc:"mutual TLS between Envoy and the gRPC server" reload:"restart"`
	XDS    XDS       `yaml:"xds" doc:"configuration served to Envoys; see tollgate envoy"`
}

// MutualTLS configures a TLS server that requires client certificates. The zero value disables TLS.
type MutualTLS struct {
	Certificate strictyaml.Secret `yaml:"certificate" doc:"PEM certificate chain, starting with the server certificate. Envoys expect its first DNS name"`
	Key         strictyaml.Secret `yaml:"key" doc:"PEM private key of the certificate"`
	CA          strictyaml.Secret `yaml:"ca" doc:"PEM certificates of the authority that signs the Envoys' certificates"`
	// Pair is the parsed certificate with its key, and Pool holds the parsed certificate authorities. Both are nil if TLS is disabled.
	Pair *tls.Certificate `yaml:"-"`
	Pool *x509.CertPool   `yaml:"-"`
}

// NeedsRestart implements strictyaml.Restarter. New certificates are used immediately, but enabling or disabling TLS requires a restart.
func (t MutualTLS) NeedsRestart(old any) bool {
	return (t.Pair == nil) != (old.(MutualTLS).Pair == nil)
}

// XDS configures the discovery service (xDS) for Envoys.
type XDS struct {
	Advertise netip.Addr `yaml:"advertise" doc:"IP address that Envoys connect to; default the address of the data listener or, if that is 0.0.0.0 or [::], the local address of the connection to Redis" reload:"restart"`

	Zone string `yaml:"zone" doc:"zone of this gateway, as in groups[].zone" reload:"restart"`

	Gateways   []PeerGateway `yaml:"gateways" doc:"other gateways; required only if the gateways do not share a Redis" reload:"live"`
	PlatformCA string        `yaml:"platform_ca" doc:"CA file on Envoy's machine for connections to the platform (topology ext_proc) and to an OTLP receiver without ca" reload:"live"`

	Secrets string `yaml:"secrets" doc:"directory on Envoy's machine with the output of tollgate envoy secrets. If set, Envoys load renewed certificates immediately, otherwise after a restart" reload:"live"`

	// Token has at least MinEnvoyToken bytes if it is set.
	Token  strictyaml.Secret `yaml:"token" doc:"token of at least 16 characters that Envoys must present to get their configuration, in addition to a certificate if envoy.tls is set. tollgate envoy bootstrap prints the token" reload:"live"`
	Groups []NodeGroup       `yaml:"groups" doc:"groups of Envoys to configure" reload:"live"`
}

// PeerGateway is the address of a gateway for Envoys.
type PeerGateway struct {
	Data netip.AddrPort `yaml:"data,required" doc:"IP address and port of the data listener"`
	Door netip.AddrPort `yaml:"envoy,required" doc:"IP address and port of the gRPC server for Envoy"`
	Zone string         `yaml:"zone" doc:"zone of the gateway"`
}

// NodeGroup is a group of Envoys with the same configuration.
type NodeGroup struct {
	ID string `yaml:"id,required" doc:"short name of the group, and node.cluster in the bootstrap configuration of its Envoys"`

	Topology Topology       `yaml:"topology" doc:"in_line (default) sends every request to the data listener; ext_proc asks the gateway for a verdict and calls the platform directly"`
	Listen   netip.AddrPort `yaml:"listen,required" doc:"IP address and port of the listener for callers"`
	TLS      TLS            `yaml:"tls" doc:"TLS of the listener for callers, with HTTP/2"`
	// Certificates lists additional certificates. They are resolved like TLS.
	Certificates []TLS `yaml:"certificates" doc:"additional certificates for other host names; tls applies if none matches"`
	HTTP3        bool  `yaml:"http3" doc:"also listen for HTTP/3 on the same UDP port. Requires tls"`

	TrustedHops int `yaml:"trusted_hops" doc:"proxies in front of the Envoys that append to X-Forwarded-For" unit:"proxies"`

	Zone string `yaml:"zone" doc:"zone of the Envoys. Envoys prefer gateways in their zone, and use other zones if too few of these gateways are healthy"`

	Merge Merge `yaml:"merge" doc:"JSON merge patches (RFC 7396) for the served configuration, with Envoy's field names"`

	AccessLog string `yaml:"access_log" doc:"absolute path of the access log on Envoy's machine; default standard output"`
}

// Merge maps resource names to JSON merge patches (RFC 7396).
type Merge struct {
	Listeners map[string]any `yaml:"listeners" doc:"patches by listener name: callers and, with http3, callers_http3"`
	Clusters  map[string]any `yaml:"clusters" doc:"patches by cluster name, as in the output of tollgate envoy snapshot"`
}

// defaultNotice is the default shutdown notice of a gateway with Envoys. It is longer than the time when Envoys notice that a gateway
// is stopping (two heartbeats of the registry, or two health checks).
const defaultNotice = 5 * time.Second

// MinEnvoyToken is the minimum length of the Envoy token in bytes.
const MinEnvoyToken = 16

// Topology is the way the Envoys of a group use the gateways: "in_line" or "ext_proc".
type Topology string

// Values lists the topologies.
func (Topology) Values() []string { return []string{"in_line", "ext_proc"} }

// BalancedDomain returns the host name suffix of load-balanced endpoints. The suffix begins with the dot that follows the endpoint ID. It
// is "" if load-balanced endpoints have no host names.
func (c *Config) BalancedDomain() string {
	u, err := url.Parse(strings.Replace(c.PublicBalancedURL, "{id}", "", 1))
	if err != nil {
		return "" // reported elsewhere
	}
	return strings.ToLower(u.Hostname())
}
