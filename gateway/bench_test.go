package gateway_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

const benchConfiguration = `
platform: {base_url: "UPSTREAM"}
redis: {embedded: true}
limits: {timeout: 10s}
orgs:
  - id: bench
    credential: {env: KEY}
    policies:
      - {policy: gpu_allow_list, params: {gpus: ["NVIDIA L4", "NVIDIA GeForce RTX 4090"]}}
      - {policy: gpu_count, params: {max_per_pod: 2}}
      - {policy: price_ceiling, params: {max_usd_per_hour: 40}}
    keys:
      - {id: counted, sha256: SHA256(key_counted), roles: [operator], limits: {minute: 100000000, hour: 100000000, day: 100000000}}
      - {id: exempt, sha256: SHA256(key_exempt), roles: [operator], exempt: true}
`

// nothing takes log lines after they were encoded, which is part of the cost.
type nothing struct{}

func (*nothing) Write(p []byte) (int, error) { return len(p), nil }

// listedPod is a pod as the platform lists it.
const listedPod = `{"id":"edakugmnck","name":"train-7b","status":"RUNNING","actions":["stop","restart","terminate"],` +
	`"image":"registry.example/team/trainer:2026-08","args":"","cmd":[],"entrypoint":[],"disk":80,"env":{"HF_HOME":"/data/hf","BATCH":"32"},` +
	`"ports":["8888/http","22/tcp"],"registry":null,"mounts":{},"gpu":{"id":"NVIDIA L4","count":1,"vcpuCount":12,"memory":50},` +
	`"cloud":"SECURE","dataCenterId":"EU-NL-1","cudaVersion":"12.4","ssh":{"proxy":null,"direct":null},"template":null,"cost":0.43,` +
	`"locked":false,"globalNetworking":{"enabled":false},"runtime":null,"createdAt":"2026-08-21T22:15:09.469Z","startedAt":null}`

// canned is an upstream that answers at once, which leaves the gateway's own cost.
func canned(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/v2/catalog/gpus":
		_, _ = io.WriteString(w, `{"gpus":[{"id":"NVIDIA L4","name":"L4","pool":null,"manufacturer":"NVIDIA","memory":24,"secure":true,"community":true,"price":{"secure":0.43,"community":0.39},"maxCount":{"secure":8,"community":4}}]}`)
	case "/v2/catalog/cpus":
		_, _ = io.WriteString(w, `{"cpus":[{"id":"cpu3c","name":"c","group":"c","vcpu":{"min":2,"max":32},"ramGbPerVcpu":2,"price":{"securePerVcpu":0.04,"serverlessPerVcpu":0.03}}]}`)
	case "/v2/catalog/datacenters":
		_, _ = io.WriteString(w, `{"dataCenters":[{"id":"EU-RO-1","networkVolumeTypes":["STANDARD"]}]}`)
	case "/v2/pods":
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"pods":[`+strings.Repeat(listedPod+",", 19)+listedPod+`]}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, listedPod)
	default:
		_, _ = io.WriteString(w, `{"id":"p1"}`)
	}
}

func benchHandler(b *testing.B) http.Handler {
	b.Helper()
	return benchGateway(b, world.Redis(b, redistest.Start(b))).Handler()
}

func benchGateway(tb testing.TB, client redisstore.Client) *gateway.Gateway {
	tb.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(canned))
	tb.Cleanup(upstream.Close)
	cfg := world.Configuration(tb, strings.ReplaceAll(benchConfiguration, "UPSTREAM", upstream.URL), map[string]string{"KEY": "pk"})
	return world.Gateway(tb, cfg, gateway.Deps{
		Redis: client, Logger: slog.New(slog.NewJSONHandler(new(nothing), nil)), Decisions: unchecked(tb),
	})
}

// unchecked is a log of decisions that checks none against their schema. The check would
// dominate the measurement.
func unchecked(t testing.TB) *decisionlog.Log {
	t.Helper()
	l, err := decisionlog.New(policyconfig.DefaultDecisionLog(), decisionlog.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// BenchmarkHandler is the whole gateway in process, upstream round trip
// included. test/bench compares the pipeline with a bare proxy.
func BenchmarkHandler(b *testing.B) {
	const pod = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"},"env":{"A":"1","B":"2"},"ports":["8888/http","22/tcp"]}`
	const long = `{"name":"train-llama-17","image":"ghcr.io/acme/pytorch:2.1.0-py3.10-cuda11.8.0-devel-ubuntu22.04","gpu":{"id":"NVIDIA L4"},"args":"python -m train --config /workspace/configs/llama-7b.yaml --epochs 3 --lr 2e-5",` +
		`"env":{"HF_HOME":"/workspace/.cache/huggingface","WANDB_PROJECT":"llama-17","WANDB_API_KEY":"3f2a9c1be7d84f60a5c2d1e0b9f8a7c6d5e4f3a2","OUTPUT":"s3://acme-models/runs/2026-11-28/llama-17/checkpoints","MASTER_ADDR":"10.0.0.12",` +
		`"PUBLIC_KEY":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBqXn7bq3v9mQ1u2cYt8s5LkP0wZr4JhGd6eFyXaTnUo dev@acme.example","REDIS_URL":"redis://default:p4ssw0rd@cache.acme.example:6379/3"},"ports":["8888/http","22/tcp"]}`
	const v1 = `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"env":{"A":"1","B":"2"},"ports":["8888/http","22/tcp"]}`
	const graphql = `{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"img:1\", gpuTypeId: \"NVIDIA L4\", gpuCount: 1, ` +
		`ports: \"8888/http,22/tcp\", env: [{key: \"A\", value: \"1\"}, {key: \"B\", value: \"2\"}]}) { id desiredStatus } }"}`
	for _, c := range []struct{ name, method, target, key, body string }{
		{"get/exempt", "GET", "/v2/pods", "key_exempt", ""},
		{"get/counted", "GET", "/v2/pods", "key_counted", ""},
		{"post/exempt", "POST", "/v2/pods", "key_exempt", pod},
		{"post/counted", "POST", "/v2/pods", "key_counted", pod},
		{"post/long", "POST", "/v2/pods", "key_exempt", long},
		{"post/refused", "POST", "/v2/pods", "key_exempt", strings.Replace(pod, "L4", "H200", 1)},
		{"v1/get", "GET", "/v1/pods/p1", "key_exempt", ""},
		{"v1/list", "GET", "/v1/pods", "key_exempt", ""},
		{"v1/post", "POST", "/v1/pods", "key_exempt", v1},
		{"graphql/post", "POST", "/graphql", "key_exempt", graphql},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := benchHandler(b)
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
				r.RequestURI = c.target
				r.Header.Set("Authorization", "Bearer "+c.key)
				if c.body != "" {
					r.Header.Set("Content-Type", "application/json")
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code >= 500 || c.name != "post/refused" && w.Code >= 400 {
					b.Fatalf("answered %d: %s", w.Code, w.Body)
				}
			}
		})
	}
}
