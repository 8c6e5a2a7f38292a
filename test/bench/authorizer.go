package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// authorizer is the input of the role authorizer.
type authorizer struct {
	Addr string `json:"addr"`
	// Data are the callers and prices that rival.rego reads.
	Data object `json:"data"`
}

// serveAuthorizer is the role authorizer: Envoy's ext_authz over OPA's library, for
// machines without OPA's plugin. It gives the rules the members of the plugin's input
// that they read, and logs each decision. The plugin's further work (the whole request
// as input, its masks, its own metrics) is missing, so this is the cheaper of the two.
func serveAuthorizer(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var a authorizer
	ctx, err := told(ctx, stdin, &a)
	if err != nil {
		return err
	}
	decide, err := decider(ctx, a.Data)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", a.Addr)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	authv3.RegisterAuthorizationServer(s, &authorization{decide: decide, log: slog.New(slog.NewJSONHandler(stdout, nil))})
	defer context.AfterFunc(ctx, s.Stop)()
	return s.Serve(l)
}

// decider compiles the rival's rules once.
func decider(ctx context.Context, data object) (rego.PreparedEvalQuery, error) {
	return rego.New(rego.Query("data.bench.decision"), rego.Module("bench.rego", rivalRules), rego.Store(inmem.NewFromObject(data))).PrepareForEval(ctx)
}

// authorization answers Envoy.
type authorization struct {
	authv3.UnimplementedAuthorizationServer
	decide rego.PreparedEvalQuery
	log    *slog.Logger
}

// Check implements authv3.AuthorizationServer. An error makes Envoy answer 503.
func (a *authorization) Check(ctx context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	asked := req.GetAttributes().GetRequest().GetHttp()
	d, err := decision(ctx, a.decide, asked.GetMethod(), asked.GetPath(), asked.GetHeaders(), asked.GetBody())
	if err != nil {
		return nil, err
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "decision", slog.String("method", asked.GetMethod()), slog.String("path", asked.GetPath()), slog.Any("result", d))
	if d.Allowed {
		return &authv3.CheckResponse{
			Status:       &rpcstatus.Status{Code: int32(codes.OK)},
			HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{Headers: fields(d.Headers)}},
		}, nil
	}
	return &authv3.CheckResponse{
		Status: &rpcstatus.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status: &typev3.HttpStatus{Code: typev3.StatusCode(d.Status)}, Headers: fields(d.Headers), Body: d.Body,
		}},
	}, nil
}

// verdict is the value of the rule decision in rival.rego.
type verdict struct {
	Allowed bool              `json:"allowed"`
	Status  int32             `json:"http_status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// decision judges one request. A body that is no JSON is left out of the input, as by the plugin.
func decision(ctx context.Context, by rego.PreparedEvalQuery, method, path string, headers map[string]string, body string) (d verdict, err error) {
	input := object{
		"attributes":  object{"request": object{"http": object{"method": method, "path": path, "headers": headers}}},
		"parsed_path": strings.Split(strings.Trim(path, "/"), "/"),
	}
	var parsed any
	if json.Unmarshal([]byte(body), &parsed) == nil {
		input["parsed_body"] = parsed
	}
	results, err := by.Eval(ctx, rego.EvalInput(input))
	if err != nil {
		return d, err
	}
	if len(results) != 1 {
		return d, fmt.Errorf("%d decisions", len(results))
	}
	text, err := json.Marshal(results[0].Expressions[0].Value)
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(text, &d)
}

func fields(headers map[string]string) (all []*corev3.HeaderValueOption) {
	for name, value := range headers {
		all = append(all, &corev3.HeaderValueOption{
			Header: &corev3.HeaderValue{Key: name, Value: value}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		})
	}
	return all
}
