package telemetry

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Apply replaces the settings for trace contexts.
func (r *Recorder) Apply(c settings.TraceContext) { r.contexts.Store(&c) }

// WithRemoteParent returns ctx with the trace context from a trusted header.
func WithRemoteParent(ctx context.Context, header http.Header) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header))
}

// Begin starts the span of an exchange. Its parent is the trace context that ctx has from [WithRemoteParent]. Without one, a trace
// context in the header becomes the parent if the caller's address is trusted, and is linked otherwise, so that external callers
// cannot control sampling.
func (r *Recorder) Begin(ctx context.Context, header http.Header, peer string) (context.Context, trace.Span) {
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	if trace.SpanContextFromContext(ctx).IsRemote() {
		return r.tracer.Start(ctx, "exchange", options...) //nolint:spancheck // Record ends it
	}
	if header.Get("Traceparent") != "" {
		remote := WithRemoteParent(ctx, header)
		switch sc := trace.SpanContextFromContext(remote); {
		case !sc.IsValid():
		case r.trusts(peer):
			return r.tracer.Start(remote, "exchange", options...) //nolint:spancheck // Record ends it
		default:
			options = append(options, trace.WithLinks(trace.Link{SpanContext: sc}))
		}
	}
	//nolint:spancheck // Record ends it
	return r.tracer.Start(ctx, "exchange", append(options, trace.WithNewRoot())...)
}

func (r *Recorder) trusts(peer string) bool {
	addr, err := netip.ParseAddr(peer)
	return err == nil && slices.ContainsFunc(r.contexts.Load().Trusted,
		func(p netip.Prefix) bool { return p.Contains(addr.Unmap().WithZone("")) })
}

// Stage starts a child span for a stage that waits for something outside the process.
func (r *Recorder) Stage(ctx context.Context, name string) (context.Context, trace.Span) {
	return r.tracer.Start(ctx, name) //nolint:spancheck // the caller ends it
}

// Inject adds the trace context to the header of a call to the platform, if configured.
func (r *Recorder) Inject(ctx context.Context, header http.Header) {
	if r.contexts.Load().Propagate {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// Call starts the span of an HTTP call to another host. end must be called with the status of the response, or 0, and the error.
func (r *Recorder) Call(ctx context.Context, name, method, host string) (_ context.Context, end func(status int, err error)) {
	ctx, span := r.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	if !span.IsRecording() {
		return ctx, func(int, error) { span.End() }
	}
	span.SetAttributes(semconv.HTTPRequestMethodKey.String(method), semconv.ServerAddress(host))
	return ctx, func(status int, err error) {
		defer span.End()
		if status != 0 {
			span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		}
		switch {
		case err != nil:
			span.SetAttributes(semconv.ErrorTypeOther)
			span.SetStatus(codes.Error, "") // the exchange's event contains the error
		case status >= http.StatusBadRequest:
			span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(status)))
			span.SetStatus(codes.Error, "")
		}
	}
}

// span completes the span of an exchange, using OpenTelemetry's semantic conventions where they apply.
func (r *Recorder) span(s trace.Span, e *Event) {
	defer s.End()
	if !s.IsRecording() {
		return
	}
	s.SetName(e.Method + " " + e.Operation)
	s.SetAttributes(
		semconv.HTTPRequestMethodKey.String(e.Method),
		semconv.HTTPResponseStatusCode(e.Status),
		semconv.ClientAddress(e.Peer),
		semconv.UserAgentOriginal(clip(e.Agent)),
		attribute.String("tollgate.operation", e.Operation),
		attribute.String("tollgate.dialect", e.Dialect),
		attribute.String("tollgate.door", e.Door),
		attribute.String("tollgate.request_id", e.RequestID),
		attribute.String("tollgate.decision_id", e.DecisionID),
		attribute.String("tollgate.outcome", string(e.Outcome)),
		attribute.String("tollgate.org", e.Org),
		attribute.String("tollgate.team", e.Team),
		attribute.String("tollgate.key", e.Key),
	)
	if e.Refusal != "" {
		s.SetAttributes(attribute.String("tollgate.refusal", e.Refusal), attribute.StringSlice("tollgate.denied", e.Denied))
	}
	if e.Outcome == OutcomeFault || e.Outcome == OutcomeUpstream {
		s.SetAttributes(semconv.ErrorTypeKey.String(cmp.Or(e.Refusal, strconv.Itoa(e.Status))))
		s.SetStatus(codes.Error, e.Refusal)
	}
}
