package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// The rival's rules decide as tollgate does on the requests that are measured.
func TestRivalRules(t *testing.T) {
	r, err := record()
	if err != nil {
		t.Fatal(err)
	}
	prices, err := gpuPrices(r.Answers["GET /v2/catalog/gpus"])
	if err != nil || prices["NVIDIA L4"] <= 0 {
		t.Fatalf("prices = %v, %v", prices, err)
	}
	data := object{"callers": object{identity.DigestOf("k").String(): object{"id": "caller0", "team": "team0"}}, "prices": object{}}
	for name, price := range prices {
		data["prices"].(object)[name] = price //nolint:forcetypeassert // written above
	}
	query, err := decider(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, key, gpu, more string
		allowed              bool
		status               int32
	}{
		{"create", "k", "NVIDIA L4", "", true, 0},
		{"unknown key", "no", "NVIDIA L4", "", false, 401},
		{"unknown member", "k", "NVIDIA L4", `,"bogus":true`, false, 422},
		{"GPU that is not allowed", "k", "NVIDIA H200", "", false, 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := decision(t.Context(), query, "POST", "/v2/pods", map[string]string{"authorization": "Bearer " + tc.key}, podBody("run-1", tc.gpu, tc.more))
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed != tc.allowed || d.Status != tc.status {
				t.Errorf("decision = %+v, want allowed %t, status %d", d, tc.allowed, tc.status)
			}
		})
	}
}

// The server around OPA's library answers Envoy: what to set, or what to refuse with.
func TestAuthorizer(t *testing.T) {
	addr, err := port(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	task, err := json.Marshal(authorizer{Addr: addr, Data: object{
		"callers": object{identity.DigestOf("k").String(): object{"id": "caller0", "team": "team0"}}, "prices": object{"NVIDIA L4": 0.4},
	}})
	if err != nil {
		t.Fatal(err)
	}
	in, stop := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serveAuthorizer(t.Context(), io.MultiReader(bytes.NewReader(task), in), io.Discard) }()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	check := func(gpu string) *authv3.CheckResponse {
		t.Helper()
		res, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
			Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
				Method: "POST", Path: "/v2/pods", Headers: map[string]string{"authorization": "Bearer k"}, Body: podBody("run-1", gpu, ""),
			}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	set := map[string]string{}
	for _, h := range check("NVIDIA L4").GetOkResponse().GetHeaders() {
		set[h.GetHeader().GetKey()] = h.GetHeader().GetValue()
	}
	if set["x-team"] != "team0" || set["authorization"] != "Bearer bench-platform-key" {
		t.Errorf("an allowed create sets %v", set)
	}
	if d := check("NVIDIA H200").GetDeniedResponse(); d.GetStatus().GetCode() != typev3.StatusCode_Forbidden || !strings.Contains(d.GetBody(), "gpu_allow_list") {
		t.Errorf("a refused create is answered %v", d)
	}
	_ = conn.Close()
	_ = stop.Close()
	if err := <-ended; err != nil {
		t.Errorf("serveAuthorizer = %v", err)
	}
}

// LiteLLM is asked by its own path and key, and its file is YAML.
func TestLiteLLM(t *testing.T) {
	for _, k := range kinds() {
		got := liteRequest(k.request)
		if strings.Contains(got, "bench-caller-") || strings.Contains(got, chatPath) {
			t.Errorf("%s: %q", k.name, got)
		}
		if k.name == "chat" && !strings.HasPrefix(got, "POST /v1/chat/completions HTTP/1.1\r\n") {
			t.Errorf("chat: %q", got)
		}
	}
	var file struct {
		Routes struct {
			PassThrough []struct{ Target string } `yaml:"pass_through_endpoints"`
		} `yaml:"general_settings"`
	}
	if err := yaml.Unmarshal([]byte(liteConfiguration), &file); err != nil || len(file.Routes.PassThrough) != 1 {
		t.Errorf("configuration = %+v, %v", file, err)
	}
}

// The rival counts nine windows, and has one caller whose quota is spent.
func TestRivalQuotas(t *testing.T) {
	text := rivalQuotas()
	if got := strings.Count(text, "requests_per_unit: 100000000"); got != 9 || len(rivalDescriptors()) != 9 {
		t.Errorf("%d quotas and %d descriptors, want 9:\n%s", got, len(rivalDescriptors()), text)
	}
	if want := "{key: caller_day, value: spent, rate_limit: {unit: day, requests_per_unit: 1}}"; !strings.Contains(text, want) {
		t.Errorf("quotas lack %s:\n%s", want, text)
	}
}
