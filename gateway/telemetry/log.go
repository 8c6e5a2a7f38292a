package telemetry

import (
	"context"
	"errors"
	"log" //nolint:depguard // net/http takes no other logger
	"log/slog"
	"regexp"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// WithAttrs returns a handler that adds attrs, and the trace_id from the context, to each record.
func WithAttrs(h slog.Handler, attrs ...slog.Attr) slog.Handler { return withAttrs{h, attrs} }

type withAttrs struct {
	slog.Handler
	attrs []slog.Attr
}

// Handle implements slog.Handler.
func (h withAttrs) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(h.attrs...)
	if s := trace.SpanContextFromContext(ctx); s.HasTraceID() {
		r.AddAttrs(slog.String("trace_id", s.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h withAttrs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withAttrs{h.Handler.WithAttrs(attrs), h.attrs}
}

// WithGroup implements slog.Handler.
func (h withAttrs) WithGroup(name string) slog.Handler {
	return withAttrs{h.Handler.WithGroup(name), h.attrs}
}

// both passes each record that the first handler accepts to the second handler as well.
type both struct {
	slog.Handler

	second slog.Handler
}

// Handle implements slog.Handler.
func (h both) Handle(ctx context.Context, r slog.Record) error {
	return errors.Join(h.Handler.Handle(ctx, r.Clone()), h.second.Handle(ctx, r))
}

// WithAttrs implements slog.Handler.
func (h both) WithAttrs(attrs []slog.Attr) slog.Handler {
	return both{h.Handler.WithAttrs(attrs), h.second.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h both) WithGroup(name string) slog.Handler {
	return both{h.Handler.WithGroup(name), h.second.WithGroup(name)}
}

// StandardLog returns a log.Logger for net/http that writes each message to logger. It omits quoted text because a peer controls that text,
// and the argument of a panic.
func StandardLog(logger *slog.Logger) *log.Logger { return log.New(messages{logger}, "", 0) }

type messages struct{ logger *slog.Logger }

var (
	quoted    = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?`)
	handshake = regexp.MustCompile(`^http: TLS handshake error from (\S+): (.*)`)
	panicking = regexp.MustCompile(`^http: panic serving (\S+): [^\n]*\n`)
)

// Write implements io.Writer. p is one message.
func (m messages) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	if at := panicking.FindStringSubmatch(text + "\n"); at != nil {
		stack := strings.TrimPrefix(text+"\n", at[0])
		m.logger.Error("panic while serving a request", "network.peer.address", at[1], "exception.stacktrace", stack)
		return len(p), nil
	}
	text = clip(quoted.ReplaceAllString(text, `"..."`))
	if at := handshake.FindStringSubmatch(text); at != nil {
		m.logger.Info("TLS handshake failed", "network.peer.address", at[1], "error", at[2])
		return len(p), nil
	}
	m.logger.Warn("net/http", "message", text)
	return len(p), nil
}
