package telemetry_test

import (
	"encoding/pem"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/test/otlptest"
)

// An exchange arrives as a span, as a point of a metric and as a record of the log,
// which has the ids of the trace; by TLS, with the headers that are configured.
func TestExports(t *testing.T) {
	t.Run("http", func(t *testing.T) {
		r := otlptest.New(t)
		r.StartTLS()
		testExports(t, r, settings.Receiver{Endpoint: r.URL})
	})
	t.Run("grpc", func(t *testing.T) {
		r := otlptest.New(t)
		r.StartTLS()
		addr := r.ServeGRPC(t, &r.TLS.Certificates[0])
		testExports(t, r, settings.Receiver{Endpoint: "https://" + addr, Protocol: settings.ProtocolGRPC})
	})
}

func testExports(t *testing.T, r *otlptest.Receiver, to settings.Receiver) {
	t.Helper()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}))
	to.CA, to.Headers = strictyaml.NewSecret(ca), map[string]strictyaml.Secret{"Authorization": strictyaml.NewSecret("Bearer of-tests")}
	cfg := settings.Telemetry{SampleRatio: 1, OTLP: settings.OTLP{Metrics: time.Hour, Logs: true, Receiver: to}}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	p, err := telemetry.NewProviders(t.Context(), cfg, telemetry.Process{Version: "v1", Instance: "gateway-1"})
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	recorder := telemetry.NewRecorder(slog.New(p.Logged(slog.NewTextHandler(&lines, nil))), p.Tracer(), p.Meter(), fixed)
	ctx, _ := recorder.Begin(t.Context(), nil, "")
	recorder.Record(ctx, event())
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.Header().Get("Authorization"); got != "Bearer of-tests" {
		t.Errorf("Authorization = %q, want the configured one", got)
	}
	want := map[string]string{"service.name": "tollgate", "service.version": "v1", "service.instance.id": "gateway-1"}
	if diff := cmp.Diff(want, r.Resource()); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	spans, records := r.Spans(), r.Logs()
	if len(spans) != 1 || len(records) != 1 {
		t.Fatalf("%d spans and %d records, want one of each", len(spans), len(records))
	}
	if record := records[0]; record.Body.GetStringValue() != "exchange" || string(record.TraceId) != string(spans[0].TraceId) || otlptest.Attributes(record.Attributes)["operation"] != "createPod" {
		t.Errorf("record = %v, want the exchange in trace %x", record, spans[0].TraceId)
	}
	if !strings.Contains(lines.String(), "msg=exchange") {
		t.Errorf("the log has %q, want the exchange there, too", lines.String())
	}
	points := r.Metric("tollgate.request.duration").GetHistogram().GetDataPoints()
	if len(points) != 1 || points[0].Count != 1 || otlptest.Attributes(points[0].Attributes)["operation"] != "createPod" {
		t.Errorf("tollgate.request.duration = %v, want one point", points)
	}
}

// Each fault of a receiver is found when the configuration is read, and shows no
// secret.
func TestReceiverFaults(t *testing.T) {
	secret := strictyaml.NewSecret("hush\n")
	for want, r := range map[string]settings.Receiver{
		"endpoint: must be":                          {Endpoint: "collector:4318"},
		"endpoint: must be an":                       {Endpoint: "https://user:hush@collector"},
		`headers["a b"]: is not a valid header name`: {Headers: map[string]strictyaml.Secret{"a b": {}}},
		"headers.x: contains characters":             {Headers: map[string]strictyaml.Secret{"x": secret}},
		"ca: contains no certificate":                {CA: secret},
		"certificate: must be set together with key": {Certificate: secret},
		"must be set together with key":              {Key: secret},
		"endpoint: must be https if":                 {Endpoint: "http://collector", CA: secret},
		"contains no PEM certificate":                {Certificate: secret, Key: secret},
		"protocol: must be http or grpc":             {Protocol: "udp"},
		"endpoint: must contain a port":              {Endpoint: "http://collector", Protocol: settings.ProtocolGRPC},
		"endpoint: must not have a path":             {Endpoint: "http://collector:4317/v1/traces"},
	} {
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("Validate = %v, want %q", err, want)
		}
	}
}

// The port of OTLP/gRPC is spoken to by gRPC without another word.
func TestTheProtocolIsThatOfThePort(t *testing.T) {
	for want, r := range map[string]settings.Receiver{
		"":                                {Endpoint: "http://collector:4317"},
		"http://collector:4318/v1/traces": {Endpoint: "http://collector:4318"},
		"http://collector:4317/v1/traces": {Endpoint: "http://collector:4317", Protocol: settings.ProtocolHTTP},
		"https://collector/v1/traces":     {Endpoint: "https://collector"},
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", r.Endpoint, err)
		}
		if got := r.TracesURL(); got != want {
			t.Errorf("%s by %q takes spans over HTTP at %q, want %q", r.Endpoint, r.Protocol, got, want)
		}
	}
}
