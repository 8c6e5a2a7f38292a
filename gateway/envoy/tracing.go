package envoy

import (
	"maps"
	"net/netip"
	"net/url"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	uuidv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/request_id/uuid/v3"
	samplersv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/tracers/opentelemetry/samplers/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// Tracing configures the export of spans. The zero Tracing disables it.
type Tracing struct {
	// URL is the OTLP/HTTP endpoint that receives spans. Headers holds the headers of export requests.
	URL     string
	Headers map[string]string
	// CA holds the certificate authorities that verify the receiver. If nil, the certificate authorities of the platform are used. Certificate
	// and Key are an optional client certificate. All are PEM-encoded.
	CA, Certificate, Key []byte
	// Ratio is the share of sampled requests, from 0 to 1. The trace context of a request takes precedence.
	Ratio float64
	// Trusted lists the addresses of callers whose trace context is accepted.
	Trusted []netip.Prefix
}

const (
	tracingName = "telemetry" // name of the cluster and of its secret
	service     = "tollgate-envoy"
	sampler     = "envoy.tracers.opentelemetry.samplers."
	perMillion  = 1_000_000
)

func (t *Tracing) on() bool { return t.URL != "" }

// trace configures tracing in an HTTP connection manager. Spans do not contain the path, because its query may contain a key. In the
// topology ExtProc, the gateway sets the trace context of requests to the platform.
func (g *Group) trace(b *builder, m *managerv3.HttpConnectionManager) {
	ratio := &samplersv3.TraceIdRatioBasedSamplerConfig{SamplingPercentage: &typev3.FractionalPercent{
		Numerator: uint32(g.Tracing.Ratio * perMillion), Denominator: typev3.FractionalPercent_MILLION,
	}}
	config := &tracev3.OpenTelemetryConfig{
		ServiceName: service,
		HttpService: &corev3.HttpService{
			HttpUri: &corev3.HttpUri{
				Uri: g.Tracing.URL, Timeout: seconds(5), HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: tracingName},
			},
			RequestHeadersToAdd: g.Tracing.headers(),
		},
		Sampler: &corev3.TypedExtensionConfig{
			Name: sampler + "parent_based",
			TypedConfig: b.pack(&samplersv3.ParentBasedSamplerConfig{WrappedSampler: &corev3.TypedExtensionConfig{
				Name: sampler + "trace_id_ratio_based", TypedConfig: b.pack(ratio),
			}}),
		},
	}
	m.Tracing = &managerv3.HttpConnectionManager_Tracing{
		MaxPathTagLength:     number(0),
		SpawnUpstreamSpan:    yes(),
		NoContextPropagation: g.Topology == ExtProc,
		Provider: &tracev3.Tracing_Http{
			Name:       "envoy.tracers.opentelemetry",
			ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: b.pack(config)},
		},
	}
	// Sampling must not depend on the request ID, because a caller may set it.
	m.RequestIdExtension = &managerv3.RequestIDExtension{TypedConfig: b.pack(&uuidv3.UuidRequestIdConfig{
		PackTraceReason: no(), UseRequestIdForTraceSampling: no(),
	})}
}

func (t *Tracing) headers() []*corev3.HeaderValueOption {
	var list []*corev3.HeaderValueOption
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		list = append(list, replaced(name, t.Headers[name]))
	}
	return list
}

// receiver returns the cluster of the trace receiver.
func (g *Group) receiver(b *builder) *clusterv3.Cluster {
	u, err := url.Parse(g.Tracing.URL)
	if err != nil {
		b.err = err
		return nil
	}
	c := externalCluster(tracingName, socket(u.Hostname(), portOf(u)))
	if u.Scheme == "https" {
		tls := verified(u.Hostname(), fileSource(g.Platform.CAFile))
		if g.Tracing.CA != nil {
			tls = verified(u.Hostname(), inline(g.Tracing.CA))
		}
		if g.Tracing.Certificate != nil {
			tls.CommonTlsContext.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{{Name: tracingName, SdsConfig: fromADS()}}
		}
		c.TransportSocket = b.tls(tls)
	}
	return c
}
