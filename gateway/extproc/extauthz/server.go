package extauthz

import (
	"context"
	"maps"
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"

	"github.com/tollgate-dev/tollgate/gateway/extproc"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// Server is the authorization service.
type Server struct {
	authv3.UnimplementedAuthorizationServer

	// Pipeline returns the configuration in force; it is called once for each
	// request and must not return nil.
	Pipeline func() *filter.Pipeline
	Recorder *telemetry.Recorder
}

// Check judges one request. A request of a filter that is not set up to be judged for
// is an error, FailedPrecondition, which Envoy takes for a refusal unless it is told
// otherwise (failure_mode_allow).
func (s *Server) Check(ctx context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	p := s.Pipeline()
	in := inbound(req.GetAttributes())
	in.Received = s.Recorder.Now()
	ex := p.NewExchange(in)
	ctx, _ = s.Recorder.Begin(extproc.Traced(ctx), in.Header, in.Peer)
	defer func() { s.Recorder.Record(ctx, ex.Event) }()
	if err := checkFilter(req.GetAttributes().GetRequest().GetHttp(), &in); err != nil {
		ex.Event.Outcome, ex.Event.Cause = telemetry.OutcomeFault, err
		return nil, err
	}
	if !p.Check.RunHead(ctx, ex) || !p.Check.RunContent(ctx, ex) {
		p.Check.RunResponse(ctx, ex)
		return denied(ex.Answer), nil
	}
	auth, err := p.Authorization(ex.Caller.Org)
	if err != nil {
		p.Check.Fail(ex, filter.StageDispatch, err)
		p.Check.RunResponse(ctx, ex)
		return denied(ex.Answer), nil
	}
	s.Recorder.Inject(ctx, ex.Out.Header)
	ex.Leave()
	// What the response phase puts on an answer goes on the platform's.
	verdict := &filter.Answer{Status: http.StatusOK, Header: make(http.Header, 8)}
	ex.Answer = verdict
	if p.Check.RunResponse(ctx, ex); ex.Answer != verdict {
		return denied(ex.Answer), nil
	}
	return allowed(ex, auth), nil
}

// allowed sends a request on, with the headers that the platform is to get, a credential
// among them, and has others put on the answer.
func allowed(ex *filter.Exchange, auth string) *authv3.CheckResponse {
	want := maps.Clone(ex.Out.Header)
	want["Authorization"] = []string{auth}
	m := extproc.Mutation(ex.In.Header, want)
	path := &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: ":path", RawValue: []byte(ex.Out.Target())},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
	return &authv3.CheckResponse{
		Status: &rpcstatus.Status{Code: int32(codes.OK)},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			Headers:              plain(append(m.GetSetHeaders(), path)),
			HeadersToRemove:      m.GetRemoveHeaders(),
			ResponseHeadersToAdd: plain(extproc.Mutation(nil, ex.Answer.Header).GetSetHeaders()),
		}},
	}
}

// denied answers a request in the place of the platform.
func denied(a *filter.Answer) *authv3.CheckResponse {
	return &authv3.CheckResponse{
		Status: &rpcstatus.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode(a.Status)},
			Headers: plain(extproc.Mutation(nil, a.Header).GetSetHeaders()),
			Body:    string(a.Body),
		}},
	}
}

// plain sends header values as value: unlike the ext_proc filter, this one drops
// raw_value.
func plain(options []*corev3.HeaderValueOption) []*corev3.HeaderValueOption {
	for _, o := range options {
		o.Header.Value, o.Header.RawValue = string(o.Header.RawValue), nil
	}
	return options
}
