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
	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
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

// canned is an upstream that answers at once: what is left is the gateway.
func canned(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/v2/catalog/gpus":
		_, _ = io.WriteString(w, `{"gpus":[{"id":"NVIDIA L4","name":"L4","pool":null,"manufacturer":"NVIDIA","memory":24,"secure":true,"community":true,"price":{"secure":0.43,"community":0.39},"maxCount":{"secure":8,"community":4}}]}`)
	case "/v2/catalog/cpus":
		_, _ = io.WriteString(w, `{"cpus":[{"id":"cpu3c","name":"c","group":"c","vcpu":{"min":2,"max":32},"ramGbPerVcpu":2,"price":{"securePerVcpu":0.04,"serverlessPerVcpu":0.03}}]}`)
	case "/v2/catalog/datacenters":
		_, _ = io.WriteString(w, `{"dataCenters":[{"id":"EU-RO-1","networkVolumeTypes":["STANDARD"]}]}`)
	default:
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, `{"id":"p1"}`)
	}
}

func benchHandler(b *testing.B) http.Handler {
	b.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(canned))
	b.Cleanup(upstream.Close)
	cfg := world.Configuration(b, strings.ReplaceAll(benchConfiguration, "UPSTREAM", upstream.URL), map[string]string{"KEY": "pk"})
	return world.Gateway(b, cfg, gateway.Deps{
		Redis: world.Redis(b, redistest.Start(b)), Logger: slog.New(slog.NewJSONHandler(new(nothing), nil)), Decisions: unchecked(b),
	}).Handler()
}

// unchecked is a log of decisions that holds none against their schema, which would
// be most of what is measured.
func unchecked(t testing.TB) *decisionlog.Log {
	t.Helper()
	l, err := decisionlog.New(decisionlog.DefaultConfig(), decisionlog.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// BenchmarkHandler is the whole gateway in process, upstream round trip
// included. What the pipeline costs beside a bare proxy is test/bench's to say.
func BenchmarkHandler(b *testing.B) {
	const pod = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"},"env":{"A":"1","B":"2"},"ports":["8888/http","22/tcp"]}`
	for _, c := range []struct{ name, method, target, key, body string }{
		{"get/exempt", "GET", "/v2/pods", "key_exempt", ""},
		{"get/counted", "GET", "/v2/pods", "key_counted", ""},
		{"post/exempt", "POST", "/v2/pods", "key_exempt", pod},
		{"post/counted", "POST", "/v2/pods", "key_counted", pod},
		{"post/refused", "POST", "/v2/pods", "key_exempt", strings.Replace(pod, "L4", "H200", 1)},
		{"v1/get", "GET", "/v1/pods/p1", "key_exempt", ""},
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
