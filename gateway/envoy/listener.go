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
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// listeners are where callers connect.
func (g *Group) listeners(b *builder) []types.Resource {
	var encryption *corev3.TransportSocket
	if g.Certificate != nil {
		encryption = socketOf(b, "envoy.transport_sockets.tls", g.callersTLS("h2", "http/1.1"))
	}
	tcp := g.listener(b, encryption, func(*managerv3.HttpConnectionManager) {})
	if !g.HTTP3 {
		return []types.Resource{tcp}
	}
	return []types.Resource{tcp, g.quic(b)}
}

// listener is where callers connect by TCP. shape makes its manager fit the protocol.
func (g *Group) listener(b *builder, encryption *corev3.TransportSocket, shape func(*managerv3.HttpConnectionManager)) *listenerv3.Listener {
	l := &listenerv3.Listener{
		Name:                          listenerName,
		Address:                       socket(g.Listen.Addr().String(), uint32(g.Listen.Port())),
		PerConnectionBufferLimitBytes: number(bufferSize),
	}
	chain := func(of *listenerv3.FilterChainMatch, remove ...string) {
		m := g.manager(b, remove)
		shape(m)
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: of, TransportSocket: encryption,
			Filters: []*listenerv3.Filter{{
				Name:       "envoy.filters.network.http_connection_manager",
				ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: b.pack(m)},
			}},
		})
	}
	switch {
	case !g.Tracing.on():
		chain(nil, envoyHeaders)
	case len(g.Tracing.Trusted) > 0:
		chain(from(g.Tracing.Trusted), envoyHeaders)
		fallthrough
	default: // whoever stands outside does not decide what is sampled
		chain(nil, envoyHeaders, "traceparent", "tracestate")
	}
	return l
}

// from matches connections from addresses.
func from(prefixes []netip.Prefix) *listenerv3.FilterChainMatch {
	m := new(listenerv3.FilterChainMatch)
	for _, p := range prefixes {
		m.SourcePrefixRanges = append(m.SourcePrefixRanges, &corev3.CidrRange{AddressPrefix: p.Addr().String(), PrefixLen: number(uint32(p.Bits()))})
	}
	return m
}

// quic is where callers connect by HTTP/3. Early data is not taken: it can be sent a
// second time by others than the caller (RFC 9001 section 9.2).
func (g *Group) quic(b *builder) *listenerv3.Listener {
	encryption := socketOf(b, "envoy.transport_sockets.quic", &quicv3.QuicDownstreamTransport{
		DownstreamTlsContext: g.callersTLS("h3"), EnableEarlyData: no(),
	})
	l := g.listener(b, encryption, func(m *managerv3.HttpConnectionManager) {
		m.CodecType = managerv3.HttpConnectionManager_HTTP3
		m.Http3ProtocolOptions = &corev3.Http3ProtocolOptions{QuicProtocolOptions: &corev3.QuicProtocolOptions{
			MaxConcurrentStreams: number(100), InitialStreamWindowSize: number(64 << 10), InitialConnectionWindowSize: number(1 << 20),
		}}
	})
	l.Name = quicName
	l.Address.GetSocketAddress().Protocol = corev3.SocketAddress_UDP
	l.UdpListenerConfig = &listenerv3.UdpListenerConfig{
		QuicOptions: new(listenerv3.QuicProtocolOptions), DownstreamSocketConfig: &corev3.UdpSocketConfig{PreferGro: yes()},
	}
	return l
}

// callersTLS is the encryption of a listener of callers. Of several certificates a caller
// is shown that of the name that it asks for.
func (g *Group) callersTLS(protocols ...string) *tlsv3.DownstreamTlsContext {
	names, _ := g.certificates()
	secrets := make([]*tlsv3.SdsSecretConfig, len(names))
	for i, name := range names {
		secrets[i] = &tlsv3.SdsSecretConfig{Name: name, SdsConfig: fromADS()}
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

// manager is the HTTP connection manager. Requests pass as they came: tollgate
// refuses what can be read in two ways, and a proxy that tidies up hides it. Headers of
// callers that begin with one of remove are none.
func (g *Group) manager(b *builder, remove []string) *managerv3.HttpConnectionManager {
	m := &managerv3.HttpConnectionManager{
		StatPrefix:                    listenerName,
		UseRemoteAddress:              yes(),
		XffNumTrustedHops:             g.TrustedHops,
		SkipXffAppend:                 g.Topology == ExtProc && !g.Runs.served(), // which has an attribute for it
		EarlyHeaderMutationExtensions: []*corev3.TypedExtensionConfig{removeHeaders(b, remove)},
		GenerateRequestId:             wrapperspb.Bool(g.Topology == InLine), // which is adopted there
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
			MaxConcurrentStreams: number(100), InitialStreamWindowSize: number(64 << 10), InitialConnectionWindowSize: number(1 << 20),
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

// idle is how long a stream may be silent. In line, the gateway has bounds of its
// own for all but streams.
func (g *Group) idle() time.Duration {
	if g.Topology == InLine {
		return streamLife
	}
	return 5 * time.Minute
}

// largestRun is the size of the largest body of the run interface, in MiB: a gateway
// gives each of them the time of a whole body of the REST API.
const largestRun = 30

// body bounds receiving a request.
func (g *Group) body() time.Duration {
	if g.Runs.served() {
		return largestRun * g.Body
	}
	return g.Body
}

// filters lists the filters in order: the verdict, then the way out.
func (g *Group) filters(b *builder) []*managerv3.HttpFilter {
	router := &managerv3.HttpFilter{
		Name:       "envoy.filters.http.router",
		ConfigType: &managerv3.HttpFilter_TypedConfig{TypedConfig: b.pack(&routerv3.Router{SuppressEnvoyHeaders: true})},
	}
	if g.Topology == InLine {
		return []*managerv3.HttpFilter{router}
	}
	return []*managerv3.HttpFilter{{
		Name:       extProcFilter,
		ConfigType: &managerv3.HttpFilter_TypedConfig{TypedConfig: b.pack(g.processor(b))},
	}, router}
}

// envoyHeaders begins the names of headers that steer retries, time-outs and hosts.
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

// accessLog holds neither headers of requests nor paths: a query can hold a key.
func (g *Group) accessLog(b *builder) *accesslogv3.AccessLog {
	fields := make(map[string]*structpb.Value)
	for name, value := range map[string]string{
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
	} {
		fields[name] = structpb.NewStringValue(value)
	}
	format := &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: &structpb.Struct{Fields: fields}}}
	if g.AccessLog != "" {
		return logger(b, "envoy.access_loggers.file", &filev3.FileAccessLog{
			Path: g.AccessLog, AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: format},
		})
	}
	return logger(b, "envoy.access_loggers.stdout", &streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: format}})
}

func logger(b *builder, name string, config proto.Message) *accesslogv3.AccessLog {
	return &accesslogv3.AccessLog{Name: name, ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: b.pack(config)}}
}

// streamLife is how long a log stream lives that is out of tollgate's hands: its
// client connects again and is judged anew, so that a key that is revoked loses
// it.
const streamLife = 15 * time.Minute

// logs matches the event streams.
const logs = `/v2/(pods/[^/]+|serverless/[^/]+/workers/[^/]+)/logs`

const extProcFilter = "envoy.filters.http.ext_proc"

// routes leads everything through a door of the gateways: in the topology ExtProc, the
// run interface through the HTTP door, and everything else past the filter to the
// platform.
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
			&routev3.Route{Match: pattern(logs), Action: &routev3.Route_Route{Route: g.toPlatform(0, streamLife)}, TypedPerFilterConfig: safeMethodOverride(b)},
			&routev3.Route{Match: reads(), Action: &routev3.Route_Route{Route: g.toPlatform(g.Call, 0)}, TypedPerFilterConfig: safeMethodOverride(b)},
			&routev3.Route{Match: prefix("/"), Action: &routev3.Route_Route{Route: g.toPlatform(g.Call, 0)}},
		)
	}
	hosts := []*routev3.VirtualHost{{Name: listenerName, Domains: []string{"*"}, Routes: routes}}
	if g.Runs.Domain != "" {
		hosts = append(hosts, &routev3.VirtualHost{Name: "endpoints", Domains: []string{g.Runs.Domain}, Routes: []*routev3.Route{g.webSockets(b, "/")}})
	}
	return &routev3.RouteConfiguration{
		ResponseHeadersToAdd:     g.alternatives(),
		Name:                     listenerName,
		ValidateClusters:         no(), // clusters come beside routes
		IgnorePortInHostMatching: true,
		VirtualHosts:             hosts,
	}
}

// alternatives tells callers of HTTP/3 (RFC 7838), in line: the filter's door lets no
// header pass that it does not know.
func (g *Group) alternatives() []*corev3.HeaderValueOption {
	if !g.HTTP3 || g.Topology == ExtProc {
		return nil
	}
	return []*corev3.HeaderValueOption{{
		Header:       &corev3.HeaderValue{Key: "alt-svc", Value: fmt.Sprintf(`h3=":%d"; ma=86400`, g.Listen.Port())},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}}
}

// When a request to a gateway, or a question about one, that ends without an answer is
// sent to another gateway.
const (
	// unsent is for requests that must not be carried out twice: the gateway cannot have
	// received it.
	unsent = "connect-failure,refused-stream,reset-before-request"
	// unanswered is for those of safe methods (RFC 9110 section 9.2.2).
	unanswered = "connect-failure,refused-stream,reset"
)

// A repeated call goes to another gateway than before: the balancer, which draws by lot,
// is asked again until it names one.
const (
	retries       = 2
	hostAttempts  = 32
	previousHosts = "envoy.retry_host_predicates.previous_hosts"
)

// direct is a route to the HTTP door of a gateway, which judges by itself.
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
	// answering is how much longer than a whole call to the platform a gateway may take
	// to answer, before it is taken to hang.
	answering = time.Second
	// patience is how long one gateway is waited for before another is asked as well.
	patience = 1500 * time.Millisecond
)

// bounded ends a request that a gateway does not answer, with 504.
func (g *Group) bounded(r *routev3.Route) *routev3.Route {
	r.GetRoute().Timeout = duration(g.Call + answering)
	return r
}

// hedged sends a request on to further gateways while the first is slow to answer, and
// takes the first answer. The platform may be the slow part, so no gateway is given up.
func hedged(r *routev3.Route) *routev3.Route {
	a := r.GetRoute()
	a.RetryPolicy.PerTryTimeout = duration(patience)
	a.HedgePolicy = &routev3.HedgePolicy{HedgeOnPerTryTimeout: true}
	return r
}

// webSockets is direct for paths that WebSockets are opened to, too.
func (g *Group) webSockets(b *builder, below string) *routev3.Route {
	r := g.direct(b, prefix(below), unsent)
	r.GetRoute().UpgradeConfigs = []*routev3.RouteAction_UpgradeConfig{{UpgradeType: "websocket"}}
	return r
}

func prefix(path string) *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: path}}
}

// reads matches the requests of safe methods.
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

// inLine sends to a gateway, which bounds everything in time by itself while it runs.
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

// toPlatform sends to the platform, without retries: only the caller knows whether
// a call may be repeated.
func (g *Group) toPlatform(timeout, life time.Duration) *routev3.RouteAction {
	a := &routev3.RouteAction{
		ClusterSpecifier:     &routev3.RouteAction_Cluster{Cluster: platformName},
		HostRewriteSpecifier: &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: g.Platform.Host},
		Timeout:              duration(timeout),
	}
	if life > 0 {
		a.IdleTimeout = duration(life)
		a.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: duration(life)}
	}
	return a
}
