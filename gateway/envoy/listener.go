package envoy

import (
	"fmt"
	"net/netip"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	previousv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	quicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// listeners returns the listeners for callers.
func (g *Group) listeners(b *builder) []types.Resource {
	var encryption *corev3.TransportSocket
	if g.Certificates != nil {
		encryption = socketOf(b, "envoy.transport_sockets.tls", g.callersTLS("h2", "http/1.1"))
	}
	tcp := g.listener(b, encryption, func(*managerv3.HttpConnectionManager) {})
	if !g.HTTP3 {
		return []types.Resource{tcp}
	}
	return []types.Resource{tcp, g.quic(b)}
}

// listener returns a TCP listener for callers. The function shape adapts the HTTP connection manager to the protocol.
func (g *Group) listener(
	b *builder, encryption *corev3.TransportSocket, shape func(*managerv3.HttpConnectionManager),
) *listenerv3.Listener {
	l := &listenerv3.Listener{
		Name:                          listenerName,
		Address:                       socketAt(g.Listen),
		PerConnectionBufferLimitBytes: number(bufferSize),
	}
	chain := func(of *listenerv3.FilterChainMatch, remove ...string) {
		m := g.manager(b, remove)
		shape(m)
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{FilterChainMatch: of, TransportSocket: encryption, Filters: managed(b, m)})
	}
	switch {
	case !g.Tracing.on():
		chain(nil, envoyHeaders)
	case len(g.Tracing.Trusted) > 0:
		chain(from(g.Tracing.Trusted), envoyHeaders)
		fallthrough
	default: // untrusted clients do not decide about sampling
		chain(nil, envoyHeaders, "traceparent", "tracestate")
	}
	return l
}

// managed returns the network filters of connections with the HTTP connection manager m.
func managed(b *builder, m *managerv3.HttpConnectionManager) []*listenerv3.Filter {
	return []*listenerv3.Filter{{
		Name:       "envoy.filters.network.http_connection_manager",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: b.pack(m)},
	}}
}

// from returns a filter chain match for connections from the given addresses.
func from(prefixes []netip.Prefix) *listenerv3.FilterChainMatch {
	m := new(listenerv3.FilterChainMatch)
	for _, p := range prefixes {
		m.SourcePrefixRanges = append(m.SourcePrefixRanges,
			&corev3.CidrRange{AddressPrefix: p.Addr().String(), PrefixLen: number(uint32(p.Bits()))})
	}
	return m
}

// quic returns the HTTP/3 listener for callers. Early data is disabled, because an attacker can replay it (RFC 9001, section 9.2).
func (g *Group) quic(b *builder) *listenerv3.Listener {
	encryption := socketOf(b, "envoy.transport_sockets.quic", &quicv3.QuicDownstreamTransport{
		DownstreamTlsContext: g.callersTLS("h3"), EnableEarlyData: no(),
	})
	l := g.listener(b, encryption, func(m *managerv3.HttpConnectionManager) {
		m.CodecType = managerv3.HttpConnectionManager_HTTP3
		m.Http3ProtocolOptions = &corev3.Http3ProtocolOptions{QuicProtocolOptions: &corev3.QuicProtocolOptions{
			MaxConcurrentStreams: number(100), InitialStreamWindowSize: number(bufferSize), InitialConnectionWindowSize: number(1 << 20),
		}}
	})
	l.Name = quicName
	l.Address.GetSocketAddress().Protocol = corev3.SocketAddress_UDP
	l.UdpListenerConfig = &listenerv3.UdpListenerConfig{
		QuicOptions: new(listenerv3.QuicProtocolOptions), DownstreamSocketConfig: &corev3.UdpSocketConfig{PreferGro: yes()},
	}
	return l
}

// callersTLS returns the TLS context of a listener for callers. With several certificates, Envoy selects one by the requested host name.
func (g *Group) callersTLS(protocols ...string) *tlsv3.DownstreamTlsContext {
	secrets := make([]*tlsv3.SdsSecretConfig, len(g.Certificates))
	for i := range secrets {
		secrets[i] = &tlsv3.SdsSecretConfig{Name: secretName(i), SdsConfig: fromADS()}
	}
	return &tlsv3.DownstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
		TlsParams:                      &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2},
		AlpnProtocols:                  protocols,
		TlsCertificateSdsSecretConfigs: secrets,
	}}
}

func socketOf(b *builder, name string, config proto.Message) *corev3.TransportSocket {
	return &corev3.TransportSocket{Name: name, ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: b.pack(config)}}
}

// manager returns the HTTP connection manager. It does not normalise requests, because normalisation would hide ambiguous requests, which
// the gateway refuses. It deletes headers whose names begin with an entry of remove.
func (g *Group) manager(b *builder, remove []string) *managerv3.HttpConnectionManager {
	m := &managerv3.HttpConnectionManager{
		StatPrefix:                    listenerName,
		UseRemoteAddress:              yes(),
		XffNumTrustedHops:             g.TrustedHops,
		SkipXffAppend:                 g.Topology == ExtProc && !g.Runs.served(), // ext_proc gets the address as an attribute
		EarlyHeaderMutationExtensions: []*corev3.TypedExtensionConfig{removeHeaders(b, remove)},
		GenerateRequestId:             wrapperspb.Bool(g.Topology == InLine), // the gateway adopts the ID
		PreserveExternalRequestId:     true,
		NormalizePath:                 no(),
		PathWithEscapedSlashesAction:  managerv3.HttpConnectionManager_KEEP_UNCHANGED,
		HttpProtocolOptions:           &corev3.Http1ProtocolOptions{AllowAbsoluteUrl: no()},
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{
			HeadersWithUnderscoresAction: corev3.HttpProtocolOptions_ALLOW,
			MaxHeadersCount:              number(200),
			IdleTimeout:                  seconds(60),
		},
		MaxRequestHeadersKb: number(60),
		Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
			MaxConcurrentStreams: number(100), InitialStreamWindowSize: number(bufferSize), InitialConnectionWindowSize: number(1 << 20),
		},
		RequestHeadersTimeout:      seconds(5),
		RequestTimeout:             duration(g.body()),
		StreamIdleTimeout:          duration(g.idle()),
		ServerHeaderTransformation: managerv3.HttpConnectionManager_PASS_THROUGH,
		AccessLog:                  []*accesslogv3.AccessLog{g.accessLog(b)},
		HttpFilters:                g.filters(b),
		RouteSpecifier: &managerv3.HttpConnectionManager_Rds{Rds: &managerv3.Rds{
			ConfigSource: fromADS(), RouteConfigName: listenerName,
		}},
	}
	m.LocalReplyConfig = localReplies(b, g.Topology)
	if g.Tracing.on() {
		g.trace(b, m)
	}
	return m
}

// idle returns the idle timeout of a request. In the topology InLine, the gateway itself limits the time of everything except streams.
func (g *Group) idle() time.Duration {
	if g.Topology == InLine {
		return streamLife
	}
	return 5 * time.Minute
}

// largestRun is the maximum size of a run interface body, in MiB. A gateway grants the time limit of a REST API body for each MiB.
const largestRun = 30

// body returns the time limit for receiving a complete request.
func (g *Group) body() time.Duration {
	if g.Runs.served() {
		return largestRun * g.Body
	}
	return g.Body
}

// filters returns the HTTP filters in order: first the check by the gateway, then the router.
func (g *Group) filters(b *builder) []*managerv3.HttpFilter {
	router := httpFilter(b, "envoy.filters.http.router", &routerv3.Router{SuppressEnvoyHeaders: true})
	if g.Topology == InLine {
		return []*managerv3.HttpFilter{router}
	}
	return []*managerv3.HttpFilter{httpFilter(b, extProcFilter, g.processor(b)), router}
}

func httpFilter(b *builder, name string, config proto.Message) *managerv3.HttpFilter {
	return &managerv3.HttpFilter{Name: name, ConfigType: &managerv3.HttpFilter_TypedConfig{TypedConfig: b.pack(config)}}
}

// envoyHeaders is the prefix of request headers that control retries, timeouts and hosts.
const envoyHeaders = "x-envoy-"

func removeHeaders(b *builder, prefixes []string) *corev3.TypedExtensionConfig {
	m := new(earlyv3.HeaderMutation)
	for _, p := range prefixes {
		m.Mutations = append(m.Mutations, &mutationv3.HeaderMutation{
			Action: &mutationv3.HeaderMutation_RemoveOnMatch_{RemoveOnMatch: &mutationv3.HeaderMutation_RemoveOnMatch{
				KeyMatcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: p}},
			}},
		})
	}
	return &corev3.TypedExtensionConfig{Name: "envoy.http.early_header_mutation.header_mutation", TypedConfig: b.pack(m)}
}

// accessLog contains neither request headers nor paths, because a query may contain a key.
func (g *Group) accessLog(b *builder) *accesslogv3.AccessLog {
	format := jsonFormat(map[string]string{
		"time":        "%START_TIME%",
		"peer":        "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
		"method":      "%REQ(:METHOD)%",
		"protocol":    "%PROTOCOL%",
		"status":      "%RESPONSE_CODE%",
		"details":     "%RESPONSE_CODE_DETAILS%",
		"flags":       "%RESPONSE_FLAGS%",
		"bytes_in":    "%BYTES_RECEIVED%",
		"bytes_out":   "%BYTES_SENT%",
		"duration_ms": "%DURATION%",
		"upstream":    "%UPSTREAM_HOST%",
		"request_id":  "%RESP(X-REQUEST-ID)%",
		"decision_id": "%RESP(X-TOLLGATE-DECISION)%",
	})
	if g.AccessLog != "" {
		return logger(b, "envoy.access_loggers.file", &filev3.FileAccessLog{
			Path: g.AccessLog, AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: format},
		})
	}
	return logger(b, "envoy.access_loggers.stdout",
		&streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: format}})
}

func logger(b *builder, name string, config proto.Message) *accesslogv3.AccessLog {
	return &accesslogv3.AccessLog{Name: name, ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: b.pack(config)}}
}

// streamLife is the maximum lifetime of a log stream that bypasses the gateway. The client must then reconnect and is checked again, so
// that a revoked key loses access.
const streamLife = 15 * time.Minute

// logs matches the paths of log streams, which are server-sent events.
const logs = `/v2/(pods/[^/]+|serverless/[^/]+/workers/[^/]+)/logs`

const extProcFilter = "envoy.filters.http.ext_proc"

// routes returns the routes of the listeners. In the topology InLine, all requests go to the gateways' HTTP listeners. In the topology
// ExtProc, requests of the run interface go there, and all other requests pass the ext_proc filter and go to the platform.
func (g *Group) routes(b *builder) *routev3.RouteConfiguration {
	var routes []*routev3.Route
	if g.Runs.Balanced != "" {
		routes = append(routes, g.webSockets(b, g.Runs.Balanced))
	}
	if g.Runs.Paths != "" {
		routes = append(routes, g.direct(b, pattern(g.Runs.Paths), unsent))
	}
	if g.Topology == InLine {
		routes = append(routes,
			g.direct(b, pattern(logs), unanswered),
			hedged(g.bounded(g.direct(b, reads(), unanswered))),
			g.bounded(g.direct(b, prefix("/"), unsent)),
		)
	} else {
		routes = append(routes,
			g.toPlatform(pattern(logs), 0, streamLife, safeMethodOverride(b)),
			g.toPlatform(reads(), g.Call, 0, safeMethodOverride(b)),
			g.toPlatform(prefix("/"), g.Call, 0, nil),
		)
	}
	hosts := []*routev3.VirtualHost{{Name: listenerName, Domains: []string{"*"}, Routes: routes}}
	if g.Runs.Domain != "" {
		hosts = append(hosts, &routev3.VirtualHost{
			Name: "endpoints", Domains: []string{g.Runs.Domain},
			Routes: []*routev3.Route{g.webSockets(b, "/")},
		})
	}
	return &routev3.RouteConfiguration{
		ResponseHeadersToAdd:     g.alternatives(),
		Name:                     listenerName,
		ValidateClusters:         no(), // clusters are served separately
		IgnorePortInHostMatching: true,
		VirtualHosts:             hosts,
	}
}

// alternatives returns the header that advertises HTTP/3 to callers (RFC 7838). It is used only in the topology InLine, because in the
// topology ExtProc the gateway drops unknown headers.
func (g *Group) alternatives() []*corev3.HeaderValueOption {
	if !g.HTTP3 || g.Topology == ExtProc {
		return nil
	}
	return []*corev3.HeaderValueOption{replaced("alt-svc", fmt.Sprintf(`h3=":%d"; ma=86400`, g.Listen.Port()))}
}

// Conditions under which Envoy retries a request to a gateway, or an ext_proc stream, that ended without a response. The retry uses another
// gateway.
const (
	// unsent is for requests that must not be executed twice. It covers only failures after which the gateway cannot have received the
	// request.
	unsent = "connect-failure,refused-stream,reset-before-request"
	// unanswered is for requests with safe methods (RFC 9110, section 9.2.2).
	unanswered = "connect-failure,refused-stream,reset"
)

// A retry selects a host at random until it is a different gateway.
const (
	retries       = 2
	hostAttempts  = 32
	previousHosts = "envoy.retry_host_predicates.previous_hosts"
)

// direct returns a route to the HTTP listener of a gateway, which checks requests itself.
func (g *Group) direct(b *builder, match *routev3.RouteMatch, retryOn string) *routev3.Route {
	r := &routev3.Route{Match: match, Action: &routev3.Route_Route{Route: g.inLine(b, retryOn)}}
	if g.Topology == ExtProc {
		r.TypedPerFilterConfig = map[string]*anypb.Any{
			extProcFilter: b.pack(&extprocv3.ExtProcPerRoute{Override: &extprocv3.ExtProcPerRoute_Disabled{Disabled: true}}),
		}
	}
	return r
}

const (
	// answering is the time that a gateway may take in addition to a complete call to the platform. After this time, Envoy ends the request.
	answering = time.Second
	// patience is the time after which Envoy also sends a request to a second gateway.
	patience = 1500 * time.Millisecond
)

// bounded limits the time of a route. If the gateway does not respond in time, Envoy responds with 504.
func (g *Group) bounded(r *routev3.Route) *routev3.Route {
	r.GetRoute().Timeout = duration(g.Call + answering)
	return r
}

// hedged makes Envoy send a request to further gateways if the first gateway is slow, and use the first response. Slow gateways are not
// removed from the cluster, because the platform may be the cause.
func hedged(r *routev3.Route) *routev3.Route {
	a := r.GetRoute()
	a.RetryPolicy.PerTryTimeout = duration(patience)
	a.HedgePolicy = &routev3.HedgePolicy{HedgeOnPerTryTimeout: true}
	return r
}

// webSockets is like direct for requests under the path below, but also permits WebSockets.
func (g *Group) webSockets(b *builder, below string) *routev3.Route {
	r := g.direct(b, prefix(below), unsent)
	r.GetRoute().UpgradeConfigs = []*routev3.RouteAction_UpgradeConfig{{UpgradeType: "websocket"}}
	return r
}

func prefix(path string) *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: path}}
}

// reads matches requests with safe methods.
func reads() *routev3.RouteMatch {
	m := prefix("/")
	m.Headers = []*routev3.HeaderMatcher{{Name: ":method", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
		StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: "GET|HEAD"}}},
	}}}
	return m
}

func pattern(regex string) *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: regex}}}
}

// inLine returns a route to a gateway without time limits, because the gateway limits the time of requests itself.
func (g *Group) inLine(b *builder, retryOn string) *routev3.RouteAction {
	cluster := gatewaysName
	if g.Topology == ExtProc {
		cluster = dataName
	}
	return &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster},
		Timeout:          seconds(0),
		IdleTimeout:      duration(streamLife),
		RetryPolicy: &routev3.RetryPolicy{
			RetryOn: retryOn, NumRetries: number(retries), HostSelectionRetryMaxAttempts: hostAttempts,
			RetryHostPredicate: []*routev3.RetryPolicy_RetryHostPredicate{{
				Name:       previousHosts,
				ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: b.pack(&previousv3.PreviousHostsPredicate{})},
			}},
		},
	}
}

// toPlatform returns a route to the platform. It does not retry, because only the caller knows whether a call may be repeated.
func (g *Group) toPlatform(match *routev3.RouteMatch, timeout, life time.Duration, perFilter map[string]*anypb.Any) *routev3.Route {
	a := &routev3.RouteAction{
		ClusterSpecifier:     &routev3.RouteAction_Cluster{Cluster: platformName},
		HostRewriteSpecifier: &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: g.Platform.Host},
		Timeout:              duration(timeout),
	}
	if life > 0 {
		a.IdleTimeout = duration(life)
		a.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: duration(life)}
	}
	return &routev3.Route{Match: match, Action: &routev3.Route_Route{Route: a}, TypedPerFilterConfig: perFilter}
}
