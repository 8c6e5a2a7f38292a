package envoy

import (
	"net/netip"
	"path"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	// ReadyPath is the path at which a gateway reports whether it accepts requests.
	ReadyPath = "/tollgate/ready"
	// bufferSize is the maximum number of bytes of a message that Envoy buffers. It exceeds the platform's body limit of 102400 bytes, so that
	// bodies slightly above the limit are refused by the gateway and not by Envoy.
	bufferSize = 128 << 10
	// upstreamIdle is shorter than the idle timeout of a gateway, so that no request is sent on a connection that the gateway is closing.
	upstreamIdle = 30
	// maxStreams is the maximum number of concurrent requests. Envoy's default, 1024, is too low for many callers.
	maxStreams = 20000
)

// data returns the cluster of the gateways' HTTP listeners.
func (g *Group) data(b *builder, name string) *clusterv3.Cluster {
	c := gateways(name)
	c.HealthChecks = []*corev3.HealthCheck{healthCheck(&corev3.HealthCheck{
		HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: ReadyPath}},
	})}
	c.TypedExtensionProtocolOptions = b.http1(upstreamIdle)
	c.PerConnectionBufferLimitBytes = number(bufferSize)
	if g.Data.Name != "" {
		c.TransportSocket = b.mutualTLS(g.Data, false)
	}
	return c
}

// doors returns the cluster of the gateways' gRPC servers.
func (g *Group) doors(b *builder) *clusterv3.Cluster {
	c := gateways(gatewaysName)
	c.HealthChecks = grpcHealth()
	c.TypedExtensionProtocolOptions = b.http2()
	if g.Door.Name != "" {
		c.TransportSocket = b.mutualTLS(g.Door, true)
	}
	return c
}

// gateways returns a cluster of gateways without endpoints.
func gateways(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: fromADS()},
		ConnectTimeout:       seconds(1),
		LbPolicy:             clusterv3.Cluster_LEAST_REQUEST,
		CircuitBreakers:      budgeted(maxStreams),
		// A gateway that is shutting down gets no new requests, even while its health checks pass.
		IgnoreHealthOnHostRemoval: true,
		CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{
			// If no gateway passes health checks, all of them may merely be slow, so Envoy sends requests to any of them. Gateways that are shutting
			// down are not among them, because they are no longer endpoints.
			HealthyPanicThreshold: &typev3.Percent{Value: 1},
			// Apply health check results immediately. By default, Envoy merges changes within one second.
			UpdateMergeWindow: seconds(0),
		},
		OutlierDetection: unreachable(),
		// Detects a gateway whose machine failed without closing connections.
		UpstreamConnectionOptions: &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{
			KeepaliveProbes: number(3), KeepaliveTime: number(5), KeepaliveInterval: number(2),
		}},
		UpstreamBindConfig: &corev3.BindConfig{SocketOptions: []*corev3.SocketOption{{
			Description: "TCP_USER_TIMEOUT, in ms", Level: 6, Name: 18, Value: &corev3.SocketOption_IntValue{IntValue: 20_000},
			State: corev3.SocketOption_STATE_PREBIND,
		}}},
	}
}

// unreachable removes a gateway for a short time after three consecutive connection failures, which is faster than health checks. Error
// responses of gateways do not count as failures.
func unreachable() *clusterv3.OutlierDetection {
	return &clusterv3.OutlierDetection{
		Interval: seconds(1), BaseEjectionTime: seconds(2), MaxEjectionTime: seconds(10), MaxEjectionPercent: number(50),
		SplitExternalLocalOriginErrors: true,
		ConsecutiveLocalOriginFailure:  number(3), EnforcingConsecutiveLocalOriginFailure: number(100),
		EnforcingConsecutive_5Xx: number(0), EnforcingConsecutiveGatewayFailure: number(0),
		EnforcingSuccessRate: number(0), EnforcingLocalOriginSuccessRate: number(0),
		EnforcingFailurePercentage: number(0), EnforcingFailurePercentageLocalOrigin: number(0),
	}
}

// healthCheck configures a check one second after each response, with a timeout of less than one second. A gateway that responds that it is
// not ready is removed immediately. A gateway that does not respond may only be slow, so it is checked again before it is removed.
func healthCheck(h *corev3.HealthCheck) *corev3.HealthCheck {
	h.Timeout, h.Interval, h.NoTrafficInterval = duration(800*time.Millisecond), seconds(1), seconds(1)
	h.HealthyThreshold, h.UnhealthyThreshold = number(1), number(3)
	return h
}

// grpcHealth returns the health checks of a gRPC server.
func grpcHealth() []*corev3.HealthCheck {
	return []*corev3.HealthCheck{healthCheck(&corev3.HealthCheck{
		HealthChecker: &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{}},
	})}
}

// platform returns the cluster of the platform.
func (g *Group) platform(b *builder) *clusterv3.Cluster {
	c := externalCluster(platformName, socket(g.Platform.Host, g.Platform.Port))
	if g.Platform.TLS {
		c.TransportSocket = b.tls(verified(g.Platform.Host, fileSource(g.Platform.CAFile)))
	}
	return c
}

// externalCluster returns a cluster with one address outside of the gateways.
func externalCluster(name string, address *corev3.Address) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                          name,
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS},
		ConnectTimeout:                seconds(5),
		PerConnectionBufferLimitBytes: number(bufferSize),
		CircuitBreakers:               breakers(maxStreams),
		LoadAssignment:                assigned(name, address),
	}
}

// verified returns a TLS context that verifies the certificate of host with the given certificate authorities.
func verified(host string, authorities *corev3.DataSource) *tlsv3.UpstreamTlsContext {
	return &tlsv3.UpstreamTlsContext{
		Sni: host,
		CommonTlsContext: &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{
			ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: authorities, MatchTypedSubjectAltNames: named(host)},
		}},
	}
}

func breakers(n uint32) *clusterv3.CircuitBreakers {
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections: number(n), MaxRequests: number(n), MaxPendingRequests: number(n), MaxRetries: number(n),
	}}}
}

// budgeted limits the concurrent requests of a cluster to n, and limits retries: if the platform is slow, hedged copies of reads are at
// most half of the active requests.
func budgeted(n uint32) *clusterv3.CircuitBreakers {
	c := breakers(n)
	t := c.GetThresholds()[0]
	t.MaxRetries, t.RetryBudget = nil, &clusterv3.CircuitBreakers_Thresholds_RetryBudget{
		BudgetPercent: &typev3.Percent{Value: 50}, MinRetryConcurrency: number(100),
	}
	return c
}

// http1 configures HTTP/1.1 for a cluster. Envoy then drops trailers.
func (b *builder) http1(idle int64) map[string]*anypb.Any {
	return b.protocol(&httpv3.HttpProtocolOptions{
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{IdleTimeout: seconds(idle)},
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &corev3.Http1ProtocolOptions{}},
		}},
	})
}

// http2 configures HTTP/2 for a cluster, with keepalive pings that detect an unreachable gateway. The gateways accept one ping every 5 s.
func (b *builder) http2() map[string]*anypb.Any {
	return b.protocol(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
				ConnectionKeepalive: &corev3.KeepaliveSettings{Interval: seconds(10), Timeout: seconds(5)},
			}},
		}},
	})
}

func (b *builder) protocol(o *httpv3.HttpProtocolOptions) map[string]*anypb.Any {
	return map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": b.pack(o)}
}

func (b *builder) tls(c *tlsv3.UpstreamTlsContext) *corev3.TransportSocket {
	c.CommonTlsContext.TlsParams = &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2}
	return socketOf(b, "envoy.transport_sockets.tls", c)
}

// mutualTLS configures TLS to gateways. Envoy verifies gateways with the certificate authority on its machine, and presents the certificate
// on its machine if a gateway requests one. If grpc is true, Envoy negotiates HTTP/2.
func (b *builder) mutualTLS(p Peer, grpc bool) *corev3.TransportSocket {
	c := &tlsv3.UpstreamTlsContext{Sni: p.Name, CommonTlsContext: &tlsv3.CommonTlsContext{
		ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
			CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
				DefaultValidationContext:         &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: named(p.Name)},
				ValidationContextSdsSecretConfig: p.secret(bootstrapCA),
			},
		},
	}}
	if grpc {
		c.CommonTlsContext.AlpnProtocols = []string{"h2"} // health checks do not set ALPN themselves
		c.CommonTlsContext.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{p.secret(bootstrapClient)}
	}
	return b.tls(c)
}

// secret refers to a secret on Envoy's machine.
func (p Peer) secret(name string) *tlsv3.SdsSecretConfig {
	s := &tlsv3.SdsSecretConfig{Name: name}
	if p.Secrets != "" {
		s.SdsConfig = &corev3.ConfigSource{
			ResourceApiVersion: corev3.ApiVersion_V3,
			ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: path.Join(p.Secrets,
				secretFile(name))}},
		}
	}
	return s
}

// named matches certificates that are valid for a DNS name.
func named(name string) []*tlsv3.SubjectAltNameMatcher {
	return []*tlsv3.SubjectAltNameMatcher{{
		SanType: tlsv3.SubjectAltNameMatcher_DNS,
		Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}},
	}}
}

// assigned returns the endpoints of a cluster.
func assigned(cluster string, addresses ...*corev3.Address) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
	if len(addresses) == 0 {
		return a
	}
	group := new(endpointv3.LocalityLbEndpoints)
	for _, address := range addresses {
		group.LbEndpoints = append(group.LbEndpoints, endpoint(address))
	}
	a.Endpoints = []*endpointv3.LocalityLbEndpoints{group}
	return a
}

func endpoint(address *corev3.Address) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address}}}
}

func socketAt(at netip.AddrPort) *corev3.Address {
	return socket(at.Addr().String(), uint32(at.Port()))
}

func socket(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func yes() *wrapperspb.BoolValue { return wrapperspb.Bool(true) }
func no() *wrapperspb.BoolValue  { return wrapperspb.Bool(false) }
