package xds

import (
	"time"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// processor is the ext_proc filter. Without a verdict nothing passes.
func (g *Group) processor() *extprocv3.ExternalProcessor {
	return &extprocv3.ExternalProcessor{
		GrpcService: &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: gatewaysName, SkipEnvoyHeaders: true},
		}},
		StatusOnError: &typev3.HttpStatus{Code: typev3.StatusCode_ServiceUnavailable},
		// Calls in the old dialects are carried out inside.
		MessageTimeout: duration(g.Call + 10*time.Second),
		ProcessingMode: &extprocv3.ProcessingMode{
			RequestHeaderMode:   extprocv3.ProcessingMode_SEND,
			ResponseHeaderMode:  extprocv3.ProcessingMode_SEND,
			RequestBodyMode:     extprocv3.ProcessingMode_BUFFERED, // always: a question that Envoy ignores leaves bodies unjudged
			ResponseBodyMode:    extprocv3.ProcessingMode_NONE,     // those of errors are asked for
			RequestTrailerMode:  extprocv3.ProcessingMode_SKIP,
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
