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
	Listen string    `yaml:"listen" doc:"address of the gRPC server for Envoy, which serves ext_proc, configuration (xDS) and health checks. If empty, the server does not run. Non-loopback addresses require tls" reload:"restart"`
	TLS    MutualTLS `yaml:"tls" doc:"mutual TLS between Envoy and the gRPC server" reload:"restart"`
	XDS    XDS       `yaml:"xds" doc:"configuration that is served to Envoys; see tollgate envoy"`
}

// MutualTLS configures a TLS server that requires client certificates. The zero value disables TLS.
type MutualTLS struct {
	Certificate strictyaml.Secret `yaml:"certificate" doc:"PEM certificate chain that starts with the server's own certificate. Envoys expect the first DNS name of this certificate"`
	Key         strictyaml.Secret `yaml:"key" doc:"PEM private key of the certificate"`
	CA          strictyaml.Secret `yaml:"ca" doc:"PEM certificates of the certificate authority that signs the Envoys' certificates"`
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
	Advertise netip.Addr `yaml:"advertise" doc:"IP address of this gateway for Envoys. If empty, the address of the data listener is used or, if the data listener is at 0.0.0.0 or [::], the local address of the connection to Redis" reload:"restart"`

	Zone string `yaml:"zone" doc:"short name of the zone of this gateway. Groups refer to zones by the same names" reload:"restart"`

	Gateways   []PeerGateway `yaml:"gateways" doc:"other gateways; required only if the gateways do not share a Redis" reload:"live"`
	PlatformCA string        `yaml:"platform_ca" doc:"file on Envoy's machine with the certificate authorities that verify the platform, for groups with topology ext_proc, and an OTLP receiver without ca" reload:"live"`

	Secrets string `yaml:"secrets" doc:"directory on Envoy's machine with the files that tollgate envoy secrets writes, which contain the paths of the certificates for TLS to gateways. If set, Envoys use renewed certificates immediately, otherwise after a restart" reload:"live"`

	// Token, if set, has the minimum length of an admin token.
	Token  strictyaml.Secret `yaml:"token" doc:"token of at least 16 characters that Envoys must present to get their configuration, in addition to a certificate if envoy.tls is set. The output of tollgate envoy bootstrap contains the token" reload:"live"`
	Groups []NodeGroup       `yaml:"groups" doc:"groups of Envoys to configure" reload:"live"`
}

// PeerGateway is the address of another gateway.
type PeerGateway struct {
	Data netip.AddrPort `yaml:"data,required" doc:"IP address and port of the gateway's data listener"`
	Door netip.AddrPort `yaml:"envoy,required" doc:"IP address and port of the gateway's gRPC server for Envoy"`
	Zone string         `yaml:"zone" doc:"zone of the gateway"`
}

// NodeGroup is a group of Envoys with the same configuration.
type NodeGroup struct {
	ID string `yaml:"id,required" doc:"short name of the group, used as node.cluster in the bootstrap configuration of the group's Envoys"`

	Topology Topology       `yaml:"topology" doc:"use of the gateway: with in_line, Envoy sends every request to the data listener; with ext_proc, Envoy asks the gateway for a verdict and calls the platform itself. If empty, in_line is used"`
	Listen   netip.AddrPort `yaml:"listen,required" doc:"IP address and port on which the group's Envoys listen for callers"`
	TLS      TLS            `yaml:"tls" doc:"TLS of the listener for callers, with HTTP/2"`
	// Certificates are resolved like TLS.
	Certificates []TLS `yaml:"certificates" doc:"additional certificates of the listener for other host names. If no host name matches, the certificate in tls is used"`
	HTTP3        bool  `yaml:"http3" doc:"also listen for HTTP/3 on the UDP port with the same number. Requires tls"`

	TrustedHops int `yaml:"trusted_hops" doc:"number of proxies that append to X-Forwarded-For in front of the group's Envoys" unit:"proxies"`

	Zone string `yaml:"zone" doc:"zone of the group's Envoys. The Envoys prefer gateways in this zone, and use gateways in other zones if too few are healthy"`

	Merge Merge `yaml:"merge" doc:"JSON merge patches (RFC 7396) for the served configuration, with field names of Envoy's protocol buffers"`

	AccessLog string `yaml:"access_log" doc:"absolute path of the access log on Envoy's machine. If empty, standard output is used"`
}

// Merge holds JSON merge patches by resource name.
type Merge struct {
	Listeners map[string]any `yaml:"listeners" doc:"patches by name of the listener: callers and, with http3, callers_http3"`
	Clusters  map[string]any `yaml:"clusters" doc:"patches by name of the cluster, as in the output of tollgate envoy snapshot"`
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
