package otlptest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Receiver takes exports until the test ends. It is safe for concurrent use.
type Receiver struct {
	*httptest.Server

	mu       sync.Mutex // guards what follows
	status   int
	header   http.Header
	resource *resource.Resource
	logs     []*logs.LogRecord
	spans    []*traces.Span
	metrics  map[string]*metrics.Metric
}

// New returns a receiver that does not listen yet: Start or StartTLS it.
func New(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{status: http.StatusOK, metrics: make(map[string]*metrics.Metric)}
	r.Server = httptest.NewUnstartedServer(r)
	t.Cleanup(r.Close)
	return r
}

// RunT returns a receiver that listens without TLS.
func RunT(t testing.TB) *Receiver {
	t.Helper()
	r := New(t)
	r.Start()
	return r
}

// Answer makes the receiver answer with a status, and take nothing unless it is 200.
func (r *Receiver) Answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err == nil && req.Header.Get("Content-Encoding") == "gzip" {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil || req.Method != http.MethodPost || req.Header.Get("Content-Type") != "application/x-protobuf":
		w.WriteHeader(http.StatusBadRequest)
		return
	case r.status != http.StatusOK:
		w.WriteHeader(r.status)
		return
	}
	r.header = req.Header
	switch req.URL.Path {
	case "/v1/logs":
		err = r.takeLogs(body)
	case "/v1/metrics":
		err = r.takeMetrics(body)
	case "/v1/traces":
		err = r.takeTraces(body)
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (r *Receiver) takeLogs(body []byte) error {
	var m collogs.ExportLogsServiceRequest
	if err := proto.Unmarshal(body, &m); err != nil {
		return err
	}
	r.addLogs(&m)
	return nil
}

func (r *Receiver) addLogs(m *collogs.ExportLogsServiceRequest) {
	for _, of := range m.ResourceLogs {
		r.resource = of.Resource
		for _, s := range of.ScopeLogs {
			r.logs = append(r.logs, s.LogRecords...)
		}
	}
}

func (r *Receiver) takeMetrics(body []byte) error {
	var m colmetrics.ExportMetricsServiceRequest
	if err := proto.Unmarshal(body, &m); err != nil {
		return err
	}
	r.addMetrics(&m)
	return nil
}

func (r *Receiver) addMetrics(m *colmetrics.ExportMetricsServiceRequest) {
	for _, of := range m.ResourceMetrics {
		r.resource = of.Resource
		for _, s := range of.ScopeMetrics {
			for _, one := range s.Metrics {
				r.metrics[one.Name] = one
			}
		}
	}
}

func (r *Receiver) takeTraces(body []byte) error {
	var m coltraces.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &m); err != nil {
		return err
	}
	r.addTraces(&m)
	return nil
}

func (r *Receiver) addTraces(m *coltraces.ExportTraceServiceRequest) {
	for _, of := range m.ResourceSpans {
		r.resource = of.Resource
		for _, s := range of.ScopeSpans {
			r.spans = append(r.spans, s.Spans...)
		}
	}
}

// Header returns the headers of the last export that was taken.
func (r *Receiver) Header() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.header.Clone()
}

// Resource returns the resource attributes of the last export.
func (r *Receiver) Resource() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Attributes(r.resource.GetAttributes())
}

// Logs returns the log records that were taken, in order.
func (r *Receiver) Logs() []*logs.LogRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*logs.LogRecord(nil), r.logs...)
}

// Spans returns the spans that were taken, in order.
func (r *Receiver) Spans() []*traces.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*traces.Span(nil), r.spans...)
}

// Metric returns the metric of a name as it was last taken, nil for none.
func (r *Receiver) Metric(name string) *metrics.Metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.metrics[name]
}

// Attributes returns attributes as text, by name.
func Attributes(list []*common.KeyValue) map[string]string {
	out := make(map[string]string, len(list))
	for _, kv := range list {
		switch v := kv.Value.GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[kv.Key] = strconv.FormatInt(v.IntValue, 10)
		default:
			out[kv.Key] = kv.Value.String()
		}
	}
	return out
}
