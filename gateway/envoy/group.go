package envoy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
)

// Topology determines how Envoys send requests to the gateways and to the platform.
type Topology string

// Values of Topology.
const (
	// InLine means that Envoy sends every request to the gateway's HTTP listener.
	InLine Topology = "in_line"
	// ExtProc means that the gateway checks each request through Envoy's ext_proc filter, and Envoy forwards the request to the platform.
	ExtProc Topology = "ext_proc"
)

// Group holds the settings of the gateway's configuration that affect the Envoys of one node group.
type Group struct {
	ID       string
	Topology Topology
	// Listen is the address where the Envoys accept requests of callers.
	Listen netip.AddrPort
	// TrustedHops is the number of proxies in front of Envoy that append to X-Forwarded-For.
	TrustedHops uint32
	// Certificates holds the certificates of the listener, one for each host name, or nil without TLS.
	Certificates []Certificate
	// HTTP3 adds an HTTP/3 listener on the UDP port of Listen. It requires a certificate.
	HTTP3 bool

	// AccessLog is the path of the access log on Envoy's machine, or "" for standard output.
	AccessLog string

	// Zone is the zone of the Envoys. They prefer gateways in the same zone. "" means no preference.
	Zone string
	// Merge holds patches for listeners and clusters.
	Merge Merge

	// Data configures TLS to the gateways' HTTP listeners, and Door configures TLS to their gRPC servers.
	Data, Door Peer
	// Platform is the upstream of the topology ExtProc.
	Platform Platform
	// Runs describes the requests that pass through the gateways' HTTP listeners in both topologies.
	Runs Runs
	// Tracing configures the export of spans.
	Tracing Tracing
	// Body is the time limit for receiving a request body. Call is the time limit of a complete call to the platform.
	Body, Call time.Duration
}

// Certificate is a PEM-encoded certificate chain and its key.
type Certificate struct{ Chain, Key []byte }

// Runs describes which requests belong to the run interface. Envoys send these requests to the gateways, because the bodies are too large
// for ext_proc. The zero Runs disables the run interface.
type Runs struct {
	// Paths is a regular expression for the paths of jobs and chat, or "".
	Paths string
	// Balanced is the path prefix of load-balanced endpoints. Domain is the pattern of their host names, for example "*.lb.example.com". Both
	// may be "". Requests that match either of them may be WebSockets.
	Balanced, Domain string
}

// served reports whether the run interface is enabled.
func (r Runs) served() bool { return r != Runs{} }

// Peer configures TLS for connections from Envoy to gateways.
type Peer struct {
	// Name is the DNS name in the gateways' certificates. "" disables TLS. The bootstrap configuration sets the certificate authority.
	Name string
	// Secrets is a directory on Envoy's machine with the files that [Files.Secrets] returns. Envoy then reloads replaced certificates. If
	// Secrets is "", Envoy uses the certificate files in the bootstrap configuration, which it reads only once.
	Secrets string
}

// Platform describes the address of the platform and how Envoys connect to it.
type Platform struct {
	Host string
	Port uint32
	TLS  bool
	// CAFile is the path of the file, on Envoy's machine, with the certificate authorities that verify the platform.
	CAFile string
}

// DirectRequests describes, for messages, the requests that Envoy sends to the gateways' data listeners. It returns "" if Envoy sends all
// requests elsewhere.
func (g *Group) DirectRequests() string {
	switch {
	case g.Topology == InLine:
		return string(InLine)
	case g.Runs.served():
		return "the run interface"
	}
	return ""
}

// Gateway holds the addresses where Envoys reach one gateway.
type Gateway struct {
	Data, Door netip.AddrPort
	// Zone is the zone of the gateway, or "" if it is unknown.
	Zone string
}

func (g Gateway) data() netip.AddrPort { return g.Data }
func (g Gateway) door() netip.AddrPort { return g.Door }

// The names of resources, and of secrets in the bootstrap configuration.
const (
	listenerName     = "callers"
	quicName         = "callers_http3"
	gatewaysName     = "tollgate"
	dataName         = "tollgate_http" // the gateways' HTTP listeners; gatewaysName is their gRPC servers
	platformName     = "platform"
	certificateName  = "callers"
	bootstrapClient  = "tollgate_client"
	bootstrapCA      = "tollgate_ca"
	bootstrapCluster = "tollgate_xds"
)

// Snapshot generates the xDS resources of the group. gateways lists the gateways that accept requests.
func (g *Group) Snapshot(gateways []Gateway) (*cache.Snapshot, error) {
	b := new(builder)
	resources := map[resource.Type][]types.Resource{
		resource.ListenerType: g.listeners(b),
		resource.RouteType:    {g.routes(b)},
	}
	if g.Topology == InLine {
		resources[resource.ClusterType] = []types.Resource{g.data(b, gatewaysName)}
		resources[resource.EndpointType] = []types.Resource{g.endpoints(gatewaysName, gateways, Gateway.data)}
	} else {
		resources[resource.ClusterType] = []types.Resource{g.doors(b), g.platform(b)}
		resources[resource.EndpointType] = []types.Resource{g.endpoints(gatewaysName, gateways, Gateway.door)}
		if g.Runs.served() {
			resources[resource.ClusterType] = append(resources[resource.ClusterType], g.data(b, dataName))
			resources[resource.EndpointType] = append(resources[resource.EndpointType], g.endpoints(dataName, gateways, Gateway.data))
		}
	}
	if g.Tracing.on() {
		resources[resource.ClusterType] = append(resources[resource.ClusterType], g.receiver(b))
	}
	resources[resource.SecretType] = g.secrets()
	if b.err != nil {
		return nil, fmt.Errorf("node group %s: %w", g.ID, b.err)
	}
	if err := g.merge(resources); err != nil {
		return nil, err
	}
	snapshot, err := cache.NewSnapshot("", resources)
	if err != nil {
		return nil, fmt.Errorf("node group %s: %w", g.ID, err)
	}
	if err := snapshot.Consistent(); err != nil {
		return nil, fmt.Errorf("node group %s: %w", g.ID, err)
	}
	for typeURL, list := range resources {
		for _, r := range list {
			if err := validate(r); err != nil {
				return nil, fmt.Errorf("node group %s: %s: %w", g.ID, typeURL, err)
			}
		}
		version, err := digest(list)
		if err != nil {
			return nil, fmt.Errorf("node group %s: %w", g.ID, err)
		}
		snapshot.Resources[cache.GetResponseType(typeURL)].Version = version
	}
	return snapshot, snapshot.ConstructVersionMap()
}

// digest returns a digest of resources.
func digest(list []types.Resource) (string, error) {
	h := sha256.New()
	for _, r := range list {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(h, "%d ", len(b)) // writing to a hash cannot fail
		_, _ = h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}

// merge applies the patches in Merge to resources.
func (g *Group) merge(resources map[resource.Type][]types.Resource) error {
	var errs [2]error
	resources[resource.ListenerType], errs[0] = merged("listeners", resources[resource.ListenerType], g.Merge.Listeners)
	resources[resource.ClusterType], errs[1] = merged("clusters", resources[resource.ClusterType], g.Merge.Clusters)
	return errors.Join(errs[:]...)
}

// endpoints returns the endpoints of a cluster, sorted by zone. The function door selects an address of each gateway. Gateways outside of
// the group's zone have a lower priority.
func (g *Group) endpoints(cluster string, gateways []Gateway, door func(Gateway) netip.AddrPort) types.Resource {
	gateways = slices.Clone(gateways)
	far := func(gw Gateway) int {
		if g.Zone != "" && gw.Zone != g.Zone {
			return 1
		}
		return 0
	}
	slices.SortFunc(gateways, func(a, b Gateway) int {
		x, y := door(a), door(b)
		return cmp.Or(cmp.Compare(far(a), far(b)), cmp.Compare(a.Zone, b.Zone), x.Addr().Compare(y.Addr()), cmp.Compare(x.Port(), y.Port()))
	})
	all := &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
	listed := make(map[netip.AddrPort]bool)
	zone := ""
	for _, gw := range gateways {
		address := door(gw)
		if listed[address] { // for some seconds, an address may be listed in two zones
			continue
		}
		listed[address] = true
		if len(all.Endpoints) == 0 || zone != gw.Zone {
			zone = gw.Zone
			next := new(endpointv3.LocalityLbEndpoints)
			if gw.Zone != "" {
				next.Locality = &corev3.Locality{Zone: gw.Zone}
			}
			if far(gateways[0]) == 0 { // priorities start at 0
				next.Priority = uint32(far(gw))
			}
			all.Endpoints = append(all.Endpoints, next)
		}
		last := all.Endpoints[len(all.Endpoints)-1]
		last.LbEndpoints = append(last.LbEndpoints, endpoint(socketAt(address)))
	}
	return all
}

// secretName returns the name of the secret with certificate i of the listener.
func secretName(i int) string { return strings.TrimSuffix(fmt.Sprint(certificateName, "_", i), "_0") }

// secrets returns the certificates of the listener and of the trace receiver as secrets.
func (g *Group) secrets() (list []types.Resource) {
	for i, c := range g.Certificates {
		list = append(list, secret(secretName(i), c))
	}
	if g.Tracing.Certificate != nil {
		list = append(list, secret(tracingName, Certificate{g.Tracing.Certificate, g.Tracing.Key}))
	}
	return list
}

func secret(name string, c Certificate) *tlsv3.Secret {
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: inline(c.Chain), PrivateKey: inline(c.Key),
	}}}
}
