package otlptest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"testing"

	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// ServeGRPC serves OTLP/gRPC until the test ends, with TLS if there is a certificate, and returns
// the address. Its exports are the receiver's. A receiver that was made to fail answers
// Unavailable.
func (r *Receiver) ServeGRPC(t testing.TB, certificate *tls.Certificate) (addr string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var opts []grpc.ServerOption
	if certificate != nil {
		opts = append(opts, grpc.Creds(credentials.NewServerTLSFromCert(certificate)))
	}
	s := grpc.NewServer(opts...)
	collogs.RegisterLogsServiceServer(s, logsServer{r: r})
	colmetrics.RegisterMetricsServiceServer(s, metricsServer{r: r})
	coltraces.RegisterTraceServiceServer(s, tracesServer{r: r})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-ended; err != nil {
			t.Errorf("OTLP/gRPC receiver: %v", err)
		}
	})
	return l.Addr().String()
}

// export takes an export of a service.
func (r *Receiver) export(ctx context.Context, take func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != http.StatusOK {
		return status.Error(codes.Unavailable, http.StatusText(r.status))
	}
	sent, _ := metadata.FromIncomingContext(ctx)
	r.header = make(http.Header, len(sent))
	for name, values := range sent {
		for _, v := range values {
			r.header.Add(name, v)
		}
	}
	take()
	return nil
}

type logsServer struct {
	collogs.UnimplementedLogsServiceServer

	r *Receiver
}

func (s logsServer) Export(ctx context.Context, m *collogs.ExportLogsServiceRequest) (*collogs.ExportLogsServiceResponse, error) {
	return &collogs.ExportLogsServiceResponse{}, s.r.export(ctx, func() { s.r.addLogs(m) })
}

type metricsServer struct {
	colmetrics.UnimplementedMetricsServiceServer

	r *Receiver
}

func (s metricsServer) Export(ctx context.Context, m *colmetrics.ExportMetricsServiceRequest) (*colmetrics.ExportMetricsServiceResponse, error) {
	return &colmetrics.ExportMetricsServiceResponse{}, s.r.export(ctx, func() { s.r.addMetrics(m) })
}

type tracesServer struct {
	coltraces.UnimplementedTraceServiceServer

	r *Receiver
}

func (s tracesServer) Export(ctx context.Context, m *coltraces.ExportTraceServiceRequest) (*coltraces.ExportTraceServiceResponse, error) {
	return &coltraces.ExportTraceServiceResponse{}, s.r.export(ctx, func() { s.r.addTraces(m) })
}
