package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// scope names this instrumentation in traces and metrics.
const scope = "github.com/tollgate-dev/tollgate"

// Recorder turns finished Events into a log line, metrics and span attributes.
// It is safe for concurrent use.
type Recorder struct {
	logger   *slog.Logger
	tracer   trace.Tracer
	now      func() time.Time
	duration metric.Float64Histogram
	refusals metric.Int64Counter
	policies metric.Int64Counter
	upstream metric.Float64Histogram
}

// NewRecorder registers the instruments with the providers. now is the clock
// events are timed by.
func NewRecorder(logger *slog.Logger, tp trace.TracerProvider, mp metric.MeterProvider, now func() time.Time) (*Recorder, error) {
	r := &Recorder{logger: logger, tracer: tp.Tracer(scope), now: now}
	m := mp.Meter(scope)
	var err error
	if r.duration, err = m.Float64Histogram("tollgate.request.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the first byte of a request to the last of its answer.")); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if r.refusals, err = m.Int64Counter("tollgate.refusals",
		metric.WithDescription("Requests the gateway refused by itself, by kind.")); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if r.policies, err = m.Int64Counter("tollgate.policy.verdicts",
		metric.WithDescription("Policies that spoke, by policy and mode.")); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if r.upstream, err = m.Float64Histogram("tollgate.upstream.duration", metric.WithUnit("s"),
		metric.WithDescription("Time until the platform's response headers.")); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return r, nil
}

// Now returns the recorder's time.
func (r *Recorder) Now() time.Time { return r.now() }

// Begin starts the exchange's span. A trace context sent by the caller is
// linked by the door, never trusted as parent: the edge is public.
func (r *Recorder) Begin(ctx context.Context, links ...trace.Link) (context.Context, trace.Span) {
	//nolint:spancheck // Record ends it
	return r.tracer.Start(ctx, "exchange", trace.WithSpanKind(trace.SpanKindServer), trace.WithNewRoot(), trace.WithLinks(links...))
}

// Stage starts a child span for a stage that waits for something outside.
func (r *Recorder) Stage(ctx context.Context, name string) (context.Context, trace.Span) {
	return r.tracer.Start(ctx, name) //nolint:spancheck // the caller ends it
}

// Refused counts a request that was refused before it became an exchange.
func (r *Recorder) Refused(ctx context.Context, kind string) {
	r.refusals.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", kind), attribute.String("dialect", "none")))
}

// Record ends the exchange: it logs and counts the event and completes the
// span in ctx.
func (r *Recorder) Record(ctx context.Context, e *Event) {
	took := r.now().Sub(e.Start)
	e.log(ctx, r.logger, took)

	r.duration.Record(ctx, took.Seconds(), metric.WithAttributes(
		attribute.String("operation", e.Operation),
		attribute.String("door", e.Door),
		attribute.String("dialect", e.Dialect),
		attribute.String("outcome", string(e.Outcome)),
		attribute.Int("status", e.Status),
	))
	if e.Refusal != "" {
		r.refusals.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", e.Refusal), attribute.String("dialect", e.Dialect)))
	}
	for mode, names := range map[string][]string{"enforce": e.Denied, "warn": e.Warned, "shadow": e.Shadowed} {
		for _, name := range names {
			r.policies.Add(ctx, 1, metric.WithAttributes(attribute.String("policy", name), attribute.String("mode", mode)))
		}
	}
	if e.UpstreamStatus != 0 {
		r.upstream.Record(ctx, e.UpstreamLatency.Seconds(), metric.WithAttributes(attribute.Int("status", e.UpstreamStatus)))
	}
	r.span(trace.SpanFromContext(ctx), e)
}

func (r *Recorder) span(s trace.Span, e *Event) {
	if s.IsRecording() {
		s.SetName(e.Method + " " + e.Operation)
		s.SetAttributes(
			attribute.String("http.request.method", e.Method),
			attribute.Int("http.response.status_code", e.Status),
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
			s.SetStatus(codes.Error, e.Refusal)
		}
	}
	s.End()
}
