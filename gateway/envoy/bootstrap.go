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

// Bootstrap is the static configuration of one Envoy. The Envoy gets all other configuration from the gateways.
type Bootstrap struct {
	// Node is the ID of this Envoy. Group is the ID of its node group.
	Node, Group string
	// Listen is the address where Envoy accepts requests of callers.
	Listen netip.AddrPort
	// Admin is the address of Envoy's admin interface. It must be a loopback address, because the interface fully controls Envoy.
	Admin netip.AddrPort
	// Doors lists the gateways' gRPC servers by address, and NamedDoors by DNS name. Envoy resolves names again every few seconds, and treats
	// each address of a name as a server.
	Doors      []netip.AddrPort
	NamedDoors []NamedServer
	// Peer configures TLS for connections to the gateways. If Peer.Secrets is empty, Envoy uses the certificates in Files.
	Peer  Peer
	Files Files
	// Token authenticates the Envoy to the gateways. It may be empty.
	Token string
	// Connections is the maximum number of connections of callers.
	Connections int64
	// Heap is a memory limit in bytes. Envoy sheds load when its memory usage approaches the limit. 0 means no limit.
	Heap uint64
}

// NamedServer is a gRPC server with a DNS name.
type NamedServer struct {
	Host string
	Port uint16
}

// JSON returns the bootstrap configuration as JSON. Envoy also accepts JSON in a file with the extension .yaml.
func (c *Bootstrap) JSON() (string, error) {
	b := new(builder)
	boot := &bootstrapv3.Bootstrap{
		Node:  &corev3.Node{Id: c.Node, Cluster: c.Group},
		Admin: &bootstrapv3.Admin{Address: socketAt(c.Admin)},
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

// control returns the gRPC service that serves the configuration.
func (c *Bootstrap) control() *corev3.GrpcService {
	s := &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
		EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
			ClusterName: bootstrapCluster,
			// By default, an Envoy that lost all gateways may wait up to 30 s before it retries.
			RetryPolicy: &corev3.RetryPolicy{RetryBackOff: &corev3.BackoffStrategy{
				BaseInterval: duration(500 * time.Millisecond),
				MaxInterval:  seconds(2),
			}},
		},
	}}
	if c.Token != "" {
		s.InitialMetadata = []*corev3.HeaderValue{{Key: tokenHeader, Value: bearer + c.Token}}
	}
	return s
}

// shortInitialFetch makes Envoy start to listen after one second even if resources are missing. Envoy uses these resources when they
// arrive.
func shortInitialFetch(c *corev3.ConfigSource) *corev3.ConfigSource {
	c.InitialFetchTimeout = seconds(1)
	return c
}

// cluster returns the cluster of the gateways that serve configuration.
func (c *Bootstrap) cluster(b *builder) *clusterv3.Cluster {
	cluster := &clusterv3.Cluster{
		Name:                          bootstrapCluster,
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:                seconds(1),
		TypedExtensionProtocolOptions: b.http2(),
		HealthChecks:                  grpcHealth(),
		LoadAssignment:                assigned(bootstrapCluster, c.addresses()...),
	}
	if len(c.NamedDoors) > 0 {
		cluster.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
		cluster.DnsLookupFamily = clusterv3.Cluster_ALL // a name may resolve to an address of a family that gateways do not listen on
	}
	if c.Peer.Name != "" {
		cluster.TransportSocket = b.mutualTLS(c.Peer, true)
	}
	return cluster
}

// addresses returns the addresses of the gateways, both DNS names and IP addresses.
func (c *Bootstrap) addresses() []*corev3.Address {
	var all []*corev3.Address
	for _, n := range c.NamedDoors {
		all = append(all, socket(n.Host, uint32(n.Port)))
	}
	for _, d := range c.Doors {
		all = append(all, socketAt(d))
	}
	return all
}

// placeholder returns a listener that responds with 503 at the address for callers. Callers reach it only while the real listener is
// missing: until Envoy has reached a gateway, or if Envoy refused the listener's configuration. It binds the IPv4-mapped IPv6 form of the
// address, which Envoy treats as a different address; as soon as the real listener has an IPv4 socket, Linux prefers that socket. Each
// connection is closed after one request, so that callers reconnect to the real listener.
func (c *Bootstrap) placeholder(b *builder) *listenerv3.Listener {
	address := socketAt(netip.AddrPortFrom(netip.AddrFrom16(c.Listen.Addr().As16()), c.Listen.Port()))
	address.GetSocketAddress().Ipv4Compat = true
	return &listenerv3.Listener{
		Name: "closed", Address: address,
		FilterChains: []*listenerv3.FilterChain{{Filters: managed(b, &managerv3.HttpConnectionManager{
			StatPrefix:                "closed",
			LocalReplyConfig:          localReplies(b, InLine),
			PreserveExternalRequestId: true,
			CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{MaxRequestsPerConnection: number(1)},
			HttpFilters:               []*managerv3.HttpFilter{httpFilter(b, "envoy.filters.http.router", &routerv3.Router{})},
			RouteSpecifier: &managerv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
				Name: "closed",
				VirtualHosts: []*routev3.VirtualHost{{Name: "closed", Domains: []string{"*"}, Routes: []*routev3.Route{{
					Match:  prefix("/"),
					Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 503}},
				}}}},
			}},
		})}},
	}
}

// overload limits the connections of the process and, if Heap is set, its memory. As memory usage approaches the limit, Envoy first
// releases free memory, then closes connections after their next response, and finally responds to new requests with 503.
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
