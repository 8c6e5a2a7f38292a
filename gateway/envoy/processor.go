package envoy

import (
	"time"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	previousv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// processorService returns the ext_proc service. Under the conditions in retryOn, Envoy retries a stream with another gateway if it has not
// received a message from the first gateway. Envoy has sent only the request headers until then.
func processorService(b *builder, retryOn string) *corev3.GrpcService {
	return &corev3.GrpcService{
		TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: gatewaysName, SkipEnvoyHeaders: true},
		},
		RetryPolicy: &corev3.RetryPolicy{
			RetryOn: retryOn, NumRetries: number(retries), HostSelectionRetryMaxAttempts: hostAttempts,
			RetryHostPredicate: []*corev3.RetryPolicy_RetryHostPredicate{{
				Name:       previousHosts,
				ConfigType: &corev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: b.pack(&previousv3.PreviousHostsPredicate{})},
			}},
		},
	}
}

// safeMethodOverride returns the filter configuration for routes with safe methods. On these routes, Envoy may send a request to a second
// gateway.
func safeMethodOverride(b *builder) map[string]*anypb.Any {
	return map[string]*anypb.Any{extProcFilter: b.pack(&extprocv3.ExtProcPerRoute{Override: &extprocv3.ExtProcPerRoute_Overrides{
		Overrides: &extprocv3.ExtProcOverrides{GrpcService: processorService(b, unanswered)},
	}})}
}

// processor returns the configuration of the ext_proc filter. Envoy refuses a request if no gateway returns a verdict.
func (g *Group) processor(b *builder) *extprocv3.ExternalProcessor {
	return &extprocv3.ExternalProcessor{
		GrpcService:   processorService(b, unsent),
		StatusOnError: &typev3.HttpStatus{Code: typev3.StatusCode_ServiceUnavailable},
		// Calls of retired interfaces are executed within the filter.
		MessageTimeout: duration(g.Call + 10*time.Second),
		ProcessingMode: &extprocv3.ProcessingMode{
			RequestHeaderMode:   extprocv3.ProcessingMode_SEND,
			ResponseHeaderMode:  extprocv3.ProcessingMode_SEND,
			RequestBodyMode:     extprocv3.ProcessingMode_BUFFERED, // always, because bodies would not be checked if Envoy ignored a mode override
			ResponseBodyMode:    extprocv3.ProcessingMode_NONE,     // requested for errors only
			RequestTrailerMode:  extprocv3.ProcessingMode_SEND,     // trailers without a body would pass unchecked
			ResponseTrailerMode: extprocv3.ProcessingMode_SKIP,
		},
		AllowModeOverride: true,
		RouteCacheAction:  extprocv3.ExternalProcessor_RETAIN,
		MutationRules: &mutationv3.HeaderMutationRules{
			AllowEnvoy: yes(), AllowAllRouting: no(), DisallowIsError: yes(),
		},
		RequestAttributes:  []string{"source.address", "request.protocol"},
		ResponseAttributes: []string{"response.code_details"},
	}
}
