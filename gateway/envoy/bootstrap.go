package envoy

import (
	"net/netip"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	connectionsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	heapv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/fixed_heap/v3"
)

// Bootstrap is all that an Envoy is started with; the rest it is served.
type Bootstrap struct {
	// Node names this Envoy, Group its group.
	Node, Group string
	// Listen is where callers connect.
	Listen netip.AddrPort
	// Admin is the admin interface, which shows and changes everything: loopback.
	Admin netip.AddrPort
	// Doors are the gRPC servers of gateways, Named those that DNS knows: an address
	// behind a name is found out every few seconds, and each of several is one.
	Doors      []netip.AddrPort
	NamedDoors []NamedServer
	// Peer is how they are connected to; with TLS and without Peer.Secrets, by Files.
	Peer  Peer
	Files Files
	// Token is shown to gateways, "" for none.
	Token string
	// Connections bounds those of callers.
	Connections int64
	// Heap is the memory, in bytes, near which Envoy sheds load; 0 is no bound.
	Heap uint64
}

// NamedDoorsServer is a server that DNS knows.
type NamedServer struct {
	Host string
	Port uint16
}

// JSON returns the bootstrap as JSON, which Envoy reads as it does YAML.
func (c *Bootstrap) JSON() (string, error) {
	b := new(builder)
	boot := &bootstrapv3.Bootstrap{
		Node:  &corev3.Node{Id: c.Node, Cluster: c.Group},
		Admin: &bootstrapv3.Admin{Address: socket(c.Admin.Addr().String(), uint32(c.Admin.Port()))},
		DynamicResources: &bootstrapv3.Bootstrap_DynamicResources{
			LdsConfig: shortInitialFetch(fromADS()),
			CdsConfig: shortInitialFetch(fromADS()),
			AdsConfig: &corev3.ApiConfigSource{
				ApiType: corev3.ApiConfigSource_DELTA_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
				GrpcServices: []*corev3.GrpcService{c.control()},
			},
		},
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{c.cluster(b)}},
		OverloadManager: c.overload(b),
	}
	if c.Peer.Name != "" && c.Peer.Secrets == "" {
		boot.StaticResources.Secrets = c.Files.secrets()
	}
	if c.Listen.Addr().Is4() && c.Listen.Port() != 0 {
		boot.StaticResources.Listeners = []*listenerv3.Listener{c.placeholder(b)}
	}
	if b.err != nil {
		return "", b.err
	}
	if err := validate(boot); err != nil {
		return "", err
	}
	return indented(boot)
}

// control is how gateways are asked for configuration.
func (c *Bootstrap) control() *corev3.GrpcService {
	s := &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
		EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
			ClusterName: bootstrapCluster,
			// Without a bound, an Envoy whose gateways were all away asks again after up to 30 s.
			RetryPolicy: &corev3.RetryPolicy{RetryBackOff: &corev3.BackoffStrategy{BaseInterval: duration(500 * time.Millisecond), MaxInterval: seconds(2)}},
		},
	}}
	if c.Token != "" {
		s.InitialMetadata = []*corev3.HeaderValue{{Key: tokenHeader, Value: bearer + c.Token}}
	}
	return s
}

// shortInitialFetch has Envoy begin to listen after a second without the parts that are missing;
// later ones are taken all the same.
func shortInitialFetch(c *corev3.ConfigSource) *corev3.ConfigSource {
	c.InitialFetchTimeout = seconds(1)
	return c
}

// cluster is the gateways, as those that serve configuration.
func (c *Bootstrap) cluster(b *builder) *clusterv3.Cluster {
	cluster := &clusterv3.Cluster{
		Name:                          bootstrapCluster,
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:                seconds(1),
		TypedExtensionProtocolOptions: b.http2(),
		HealthChecks: []*corev3.HealthCheck{healthCheck(&corev3.HealthCheck{
			HealthChecker: &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{}},
		})},
		LoadAssignment: assignment(bootstrapCluster, c.Doors...),
	}
	if len(c.NamedDoors) > 0 {
		cluster.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
		cluster.DnsLookupFamily = clusterv3.Cluster_ALL // one of a name's addresses may be of a family that gateways do not listen on
		cluster.LoadAssignment = assigned(bootstrapCluster, c.addresses()...)
	}
	if c.Peer.Name != "" {
		cluster.TransportSocket = b.mutualTLS(c.Peer, true)
	}
	return cluster
}

// addresses are those of gateways, by names and without.
func (c *Bootstrap) addresses() []*corev3.Address {
	var all []*corev3.Address
	for _, n := range c.NamedDoors {
		all = append(all, socket(n.Host, uint32(n.Port)))
	}
	for _, d := range c.Doors {
		all = append(all, socket(d.Addr().String(), uint32(d.Port())))
	}
	return all
}

// placeholder answers 503 where callers connect, while the listener they want is not
// there: before a gateway is reached for the first time, or if the configuration
// is refused. It has the same address within IPv6. Envoy takes that for another
// one, and Linux prefers a socket of IPv4 to it as soon as there is one. Each
// connection carries one request, so that none stays.
func (c *Bootstrap) placeholder(b *builder) *listenerv3.Listener {
	address := socket(netip.AddrFrom16(c.Listen.Addr().As16()).String(), uint32(c.Listen.Port()))
	address.GetSocketAddress().Ipv4Compat = true
	return &listenerv3.Listener{
		Name: "closed", Address: address,
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: b.pack(&managerv3.HttpConnectionManager{
				StatPrefix:                "closed",
				LocalReplyConfig:          localReplies(b, InLine),
				PreserveExternalRequestId: true,
				CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{MaxRequestsPerConnection: number(1)},
				HttpFilters: []*managerv3.HttpFilter{{
					Name:       "envoy.filters.http.router",
					ConfigType: &managerv3.HttpFilter_TypedConfig{TypedConfig: b.pack(&routerv3.Router{})},
				}},
				RouteSpecifier: &managerv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
					Name: "closed",
					VirtualHosts: []*routev3.VirtualHost{{Name: "closed", Domains: []string{"*"}, Routes: []*routev3.Route{{
						Match:  prefix("/"),
						Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 503}},
					}}}},
				}},
			})},
		}}}},
	}
}

// overload bounds the connections of the process and, where it is told how much there
// is, its memory: near the bound memory is given back to the system, then connections
// end with their next response, and at last new requests are answered 503.
func (c *Bootstrap) overload(b *builder) *overloadv3.OverloadManager {
	m := &overloadv3.OverloadManager{ResourceMonitors: []*overloadv3.ResourceMonitor{{
		Name: "envoy.resource_monitors.global_downstream_max_connections",
		ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: b.pack(&connectionsv3.DownstreamConnectionsConfig{
			MaxActiveDownstreamConnections: c.Connections,
		})},
	}}}
	if c.Heap == 0 {
		return m
	}
	m.RefreshInterval = duration(250 * time.Millisecond)
	m.ResourceMonitors = append(m.ResourceMonitors, &overloadv3.ResourceMonitor{
		Name:       fixedHeap,
		ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: b.pack(&heapv3.FixedHeapConfig{MaxHeapSizeBytes: c.Heap})},
	})
	for _, at := range []struct {
		action string
		full   float64
	}{{"shrink_heap", 0.90}, {"disable_http_keepalive", 0.93}, {"stop_accepting_requests", 0.96}} {
		m.Actions = append(m.Actions, &overloadv3.OverloadAction{
			Name: "envoy.overload_actions." + at.action,
			Triggers: []*overloadv3.Trigger{{
				Name:         fixedHeap,
				TriggerOneof: &overloadv3.Trigger_Threshold{Threshold: &overloadv3.ThresholdTrigger{Value: at.full}},
			}},
		})
	}
	return m
}

const fixedHeap = "envoy.resource_monitors.fixed_heap"
