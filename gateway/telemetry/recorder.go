package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// scope names this instrumentation in traces and metrics.
const scope = "github.com/tollgate-dev/tollgate"

// Recorder turns finished Events into a log line, metrics and span attributes.
// It is safe for concurrent use.
type Recorder struct {
	contexts atomic.Pointer[settings.TraceContext] // what is made of them

	logger   *slog.Logger
	tracer   trace.Tracer
	now      func() time.Time
	duration metric.Float64Histogram
	refusals metric.Int64Counter
	policies metric.Int64Counter
	upstream metric.Float64Histogram
	runs     runs

	// Attributes of the metrics that each exchange is counted in. There are as many
	// as the metrics have series.
	exchanges options[series]
	answers   options[answer]
	refused   options[refusal]
	spoken    options[policyResult]
}

// series holds the attributes that tell request durations apart.
type series struct {
	operation, door, dialect string
	outcome                  Outcome
	status                   int
}

// attributes is the series as attributes of a metric.
func (s series) attributes() attribute.Set {
	return attribute.NewSet(
		attribute.String("operation", s.operation),
		attribute.String("door", s.door),
		attribute.String("dialect", s.dialect),
		attribute.String("outcome", string(s.outcome)),
		attribute.Int("status", s.status),
	)
}

// options keeps the options that values are recorded with: making them costs more
// than recording. The zero value is ready to use.
type options[K comparable] struct {
	mu    sync.RWMutex // guards known
	known map[K]option
}

// option carries the attributes of a recorded value, in a histogram or a counter.
type option struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

// of returns the option for a key, made of the attributes it has.
func (o *options[K]) of(key K, attributes func(K) attribute.Set) option {
	o.mu.RLock()
	opt, ok := o.known[key]
	o.mu.RUnlock()
	if ok {
		return opt
	}
	set := metric.WithAttributeSet(attributes(key))
	opt = option{[]metric.RecordOption{set}, []metric.AddOption{set}}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = map[K]option{}
	}
	o.known[key] = opt
	return opt
}

// answer holds the attributes that tell durations of platform calls apart. status is 0
// when no response was received.
type answer struct {
	operation string
	status    int
}

// attributes is the answer as attributes of a metric.
func (a answer) attributes() attribute.Set {
	return attribute.NewSet(attribute.String("operation", a.operation), attribute.Int("status", a.status))
}

// refusal holds the attributes that tell refusals apart. Organisations and teams are those of the
// configuration, so there are only so many.
type refusal struct{ kind, dialect, org, team string }

// attributes is the refusal as attributes of a metric.
func (x refusal) attributes() attribute.Set {
	return attribute.NewSet(attribute.String("kind", x.kind), attribute.String("dialect", x.dialect),
		attribute.String("org", x.org), attribute.String("team", x.team))
}

// policyResult holds the attributes that tell verdicts of policies apart.
type policyResult struct{ policy, mode, org, team string }

// attributes is the verdict as attributes of a metric.
func (x policyResult) attributes() attribute.Set {
	return attribute.NewSet(attribute.String("policy", x.policy), attribute.String("mode", x.mode),
		attribute.String("org", x.org), attribute.String("team", x.team))
}

// NewRecorder registers the instruments with the providers. now is the clock
// events are timed by.
func NewRecorder(logger *slog.Logger, tp trace.TracerProvider, mp metric.MeterProvider, now func() time.Time) (*Recorder, error) {
	r := &Recorder{logger: logger, tracer: tp.Tracer(scope), now: now}
	r.Apply(settings.TraceContext{})
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
		metric.WithDescription("Time until the platform's response headers, or until it was known that none would come (status 0).")); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	if err = r.runs.register(m); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return r, nil
}

// Now returns the recorder's time.
func (r *Recorder) Now() time.Time { return r.now() }

// Refused counts a request that was refused before it became an exchange.
func (r *Recorder) Refused(ctx context.Context, kind string) {
	r.refuse(ctx, refusal{kind: kind, dialect: "none"})
}

func (r *Recorder) refuse(ctx context.Context, x refusal) {
	r.refusals.Add(ctx, 1, r.refused.of(x, refusal.attributes).add...)
}

// Record ends the exchange: it logs and counts the event and completes the
// span in ctx.
func (r *Recorder) Record(ctx context.Context, e *Event) {
	now := r.now()
	took := now.Sub(e.Start)
	e.log(ctx, r.logger, now)

	r.duration.Record(ctx, took.Seconds(), r.exchanges.of(series{e.Operation, e.Door, e.Dialect, e.Outcome, e.Status}, series.attributes).record...)
	if e.Refusal != "" {
		r.refuse(ctx, refusal{e.Refusal, e.Dialect, e.Org, e.Team})
	}
	r.spoke(ctx, e, "enforce", e.Denied)
	r.spoke(ctx, e, "warn", e.Warned)
	r.spoke(ctx, e, "shadow", e.Shadowed)
	if e.UpstreamStatus != 0 || e.UpstreamLatency > 0 {
		r.upstream.Record(ctx, e.UpstreamLatency.Seconds(), r.answers.of(answer{e.Operation, e.UpstreamStatus}, answer.attributes).record...)
	}
	if e.Job != nil {
		r.runs.record(ctx, e)
	}
	r.span(trace.SpanFromContext(ctx), e)
}

// spoke counts policies that spoke in a mode.
func (r *Recorder) spoke(ctx context.Context, e *Event, mode string, names []string) {
	for _, name := range names {
		r.policies.Add(ctx, 1, r.spoken.of(policyResult{name, mode, e.Org, e.Team}, policyResult.attributes).add...)
	}
}
