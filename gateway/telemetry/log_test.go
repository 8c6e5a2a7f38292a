package telemetry_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// textLog returns a logger that writes lines without their time.
func textLog(b *bytes.Buffer, attrs ...slog.Attr) *slog.Logger {
	return slog.New(telemetry.WithAttrs(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}), attrs...))
}

func TestStandardLog(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"handshake": {
			"http: TLS handshake error from 10.0.0.9:4711: tls: first record does not look like a TLS handshake",
			`level=INFO msg="TLS handshake failed" network.peer.address=10.0.0.9:4711 error="tls: first record does not look like a TLS handshake"`,
		},
		"panic": {
			"http: panic serving 10.0.0.9:4711: Bearer tg_secret\ngoroutine 7 [running]:\nmain.f()",
			`level=ERROR msg="panic while serving a request" network.peer.address=10.0.0.9:4711 exception.stacktrace="goroutine 7 [running]:\nmain.f()\n"`,
		},
		"quoted": {
			`Unsolicited response received on idle HTTP channel starting with "HTTP/1.1 200 OK\r\nX: \"tg_secret\""; err=<nil>`,
			`level=WARN msg=net/http message="Unsolicited response received on idle HTTP channel starting with \"...\"; err=<nil>"`,
		},
		"cut off": {`odd "tg_secret`, `level=WARN msg=net/http message="odd \"...\""`},
		"plain":   {"http: superfluous response.WriteHeader call from x.go:1", `level=WARN msg=net/http message="http: superfluous response.WriteHeader call from x.go:1"`},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			telemetry.StandardLog(textLog(&b)).Print(tc.message)
			if got := strings.TrimSpace(b.String()); got != tc.want {
				t.Errorf("logged\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestRecordsCarryTheirTrace(t *testing.T) {
	var b bytes.Buffer
	logger := textLog(&b, slog.String("instance", "x")).With("a", 1).WithGroup("g")
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{0xab}}))
	logger.InfoContext(ctx, "traced")
	logger.InfoContext(t.Context(), "not")
	want := "level=INFO msg=traced a=1 g.instance=x g.trace_id=ab000000000000000000000000000000\nlevel=INFO msg=not a=1 g.instance=x\n"
	if b.String() != want {
		t.Errorf("logged\n%swant\n%s", b.String(), want)
	}
}
