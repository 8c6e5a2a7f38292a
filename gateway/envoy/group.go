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

// Topology is where tollgate stands.
type Topology string

// The topologies.
const (
	// InLine sends every request through tollgate's HTTP door.
	InLine Topology = "in_line"
	// ExtProc has Envoy ask tollgate about every request, and send it on itself.
	ExtProc Topology = "ext_proc"
)

// Group is the configuration of the Envoys of one node group. It is data: everything they
// need to know of tollgate's configuration.
type Group struct {
	ID       string
	Topology Topology
	// Listen is where callers connect.
	Listen netip.AddrPort
	// TrustedHops is the number of proxies in front of Envoy that add to
	// X-Forwarded-For.
	TrustedHops uint32
	// Certificate and Key are the listener's, in PEM; both are nil without TLS.
	Certificate, Key []byte
	// Further are certificates for other host names.
	Further []Certificate
	// HTTP3 adds a listener for HTTP/3, on the UDP port of Listen; it needs a certificate.
	HTTP3 bool

	// AccessLog is the file on Envoy's machine that gets the access log, "" for standard
	// output.
	AccessLog string

	// Zone is where the Envoys are, "" for anywhere: gateways of that zone are asked
	// first.
	Zone string
	// Merge changes listeners and clusters.
	Merge Merge

	// Data and Door are how Envoy connects to the HTTP door and to the gRPC server.
	Data, Door Peer
	// Platform is where requests go in the topology ExtProc.
	Platform Platform
	// Runs are the requests that go through the HTTP door in either topology.
	Runs Runs
	// Tracing is where spans go.
	Tracing Tracing
	// Body bounds receiving a request, Call a whole call to the platform.
	Body, Call time.Duration
}

// Certificate is a chain and its key, in PEM.
type Certificate struct{ Chain, Key []byte }

// Runs is the run interface, which no ext_proc server can judge: its bodies are far
// larger than what Envoy holds. The zero Runs is not served.
type Runs struct {
	// Paths matches the paths of jobs and chat, "" without any.
	Paths string
	// Balanced is the prefix of the paths of load-balanced endpoints, and Domain what
	// all their host names match, "*.lb.example.com"; "" without any. Both take WebSockets.
	Balanced, Domain string
}

// served reports whether there is a run interface.
func (r Runs) served() bool { return r != Runs{} }

// Peer is how Envoy connects to gateways.
type Peer struct {
	// Name is what their certificates are for, "" without TLS. The authority is
	// that of the bootstrap.
	Name string
	// Secrets is the directory on Envoy's machine with the files that say where its own
	// certificate and the gateways' authority are, see [Files.Secrets], so that they can be
	// replaced; "" is those of the bootstrap, which Envoy reads once.
	Secrets string
}

// Platform is where the platform is.
type Platform struct {
	Host string
	Port uint32
	TLS  bool
	// CAFile has the authorities of its certificate, on Envoy's machine.
	CAFile string
}

// DirectRequests names the requests that go through the gateways' data listeners, "" for none.
func (g *Group) DirectRequests() string {
	switch {
	case g.Topology == InLine:
		return string(InLine)
	case g.Runs.served():
		return "the run interface"
	}
	return ""
}

// Gateway is where the doors of one gateway are.
type Gateway struct {
	Data, Door netip.AddrPort
	// Zone is where it runs, "" if it does not say.
	Zone string
}

func (g Gateway) data() netip.AddrPort { return g.Data }
func (g Gateway) door() netip.AddrPort { return g.Door }

// Names of resources, and of the secrets that the bootstrap has.
const (
	listenerName     = "callers"
	quicName         = "callers_http3"
	gatewaysName     = "tollgate"
	dataName         = "tollgate_http" // the gateways' HTTP doors, where gatewaysName is the others
	platformName     = "platform"
	certificateName  = "callers"
	bootstrapClient  = "tollgate_client"
	bootstrapCA      = "tollgate_ca"
	bootstrapCluster = "tollgate_xds"
)

// Snapshot returns the resources of the group while these gateways are ready.
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

// digest names the content of resources.
func digest(list []types.Resource) (string, error) {
	h := sha256.New()
	for _, r := range list {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(h, "%d ", len(b)) // a hash takes everything
		_, _ = h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}

// merge applies the patches.
func (g *Group) merge(resources map[resource.Type][]types.Resource) error {
	var errs [2]error
	resources[resource.ListenerType], errs[0] = merged("listeners", resources[resource.ListenerType], g.Merge.Listeners)
	resources[resource.ClusterType], errs[1] = merged("clusters", resources[resource.ClusterType], g.Merge.Clusters)
	return errors.Join(errs[:]...)
}

// endpoints lists one of the doors of each gateway, by zone, in order. Those of another
// zone than the group's are a second choice.
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
		if listed[address] { // for some seconds, one that was in another zone before
			continue
		}
		listed[address] = true
		if len(all.Endpoints) == 0 || zone != gw.Zone {
			zone = gw.Zone
			next := new(endpointv3.LocalityLbEndpoints)
			if gw.Zone != "" {
				next.Locality = &corev3.Locality{Zone: gw.Zone}
			}
			if far(gateways[0]) == 0 { // priorities begin with 0
				next.Priority = uint32(far(gw))
			}
			all.Endpoints = append(all.Endpoints, next)
		}
		last := all.Endpoints[len(all.Endpoints)-1]
		last.LbEndpoints = append(last.LbEndpoints, endpoint(socket(address.Addr().String(), uint32(address.Port()))))
	}
	return all
}

// certificates are those of the listener, by the names of their secrets, in order.
func (g *Group) certificates() (names []string, all []Certificate) {
	if g.Certificate == nil {
		return nil, nil
	}
	all = append([]Certificate{{g.Certificate, g.Key}}, g.Further...)
	for i := range all {
		names = append(names, strings.TrimSuffix(fmt.Sprint(certificateName, "_", i), "_0"))
	}
	return names, all
}

// secrets are the certificates of the listener and for the receiver of spans.
func (g *Group) secrets() []types.Resource {
	names, all := g.certificates()
	if g.Tracing.Certificate != nil {
		names, all = append(names, tracingName), append(all, Certificate{g.Tracing.Certificate, g.Tracing.Key})
	}
	list := make([]types.Resource, len(all))
	for i, c := range all {
		list[i] = &tlsv3.Secret{Name: names[i], Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: inline(c.Chain), PrivateKey: inline(c.Key),
		}}}
	}
	return list
}
