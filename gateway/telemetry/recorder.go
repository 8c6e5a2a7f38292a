package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// scope is the name of the instrumentation scope in traces and metrics.
const scope = "github.com/tollgate-dev/tollgate"

// Recorder converts finished Events into a log line, metrics and span attributes. It is safe for concurrent use.
type Recorder struct {
	contexts atomic.Pointer[settings.TraceContext] // how trace contexts are handled

	logger   *slog.Logger
	tracer   trace.Tracer
	now      func() time.Time
	duration metric.Float64Histogram
	refusals metric.Int64Counter
	policies metric.Int64Counter
	upstream metric.Float64Histogram
	runs     runs

	// Cached attributes of the metrics recorded for each exchange. Their number equals the number of series.
	exchanges options[series]
	answers   options[answer]
	refused   options[refusal]
	spoken    options[policyResult]
}

// series holds the attributes of a request duration.
type series struct {
	operation, door, dialect string
	outcome                  Outcome
	status                   int
}

// attributes returns s as metric attributes.
func (s series) attributes() attribute.Set {
	return attribute.NewSet(
		attribute.String("operation", s.operation),
		attribute.String("door", s.door),
		attribute.String("dialect", s.dialect),
		attribute.String("outcome", string(s.outcome)),
		attribute.Int("status", s.status),
	)
}

// options caches recording options, because creating them costs more than recording. The zero value is ready to use.
type options[K attributed] struct {
	mu    sync.RWMutex // guards known
	known map[K]option
}

// attributed is a key with metric attributes.
type attributed interface {
	comparable
	attributes() attribute.Set
}

// option holds the attributes of a recorded value for a histogram or a counter.
type option struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

// of returns the option for a key.
func (o *options[K]) of(key K) option {
	o.mu.RLock()
	opt, ok := o.known[key]
	o.mu.RUnlock()
	if ok {
		return opt
	}
	set := metric.WithAttributeSet(key.attributes())
	opt = option{[]metric.RecordOption{set}, []metric.AddOption{set}}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = map[K]option{}
	}
	o.known[key] = opt
	return opt
}

// answer holds the attributes of the duration of a platform call. status is 0 if no response was received.
type answer struct {
	operation string
	status    int
}

// attributes returns a as metric attributes.
func (a answer) attributes() attribute.Set {
	return attribute.NewSet(attribute.String("operation", a.operation), attribute.Int("status", a.status))
}

// refusal holds the attributes of a refusal. Organisations and teams are configured, so their number is limited.
type refusal struct{ kind, dialect, org, team string }

// attributes returns x as metric attributes.
func (x refusal) attributes() attribute.Set {
	return attribute.NewSet(attribute.String("kind", x.kind), attribute.String("dialect", x.dialect),
		attribute.String("org", x.org), attribute.String("team", x.team))
}

// policyResult holds the attributes of a policy verdict.
type policyResult struct{ policy, mode, org, team string }

// attributes returns x as metric attributes.
func (x policyResult) attributes() attribute.Set {
	return attribute.NewSet(attribute.String("policy", x.policy), attribute.String("mode", x.mode),
		attribute.String("org", x.org), attribute.String("team", x.team))
}

// NewRecorder returns a Recorder and registers its instruments with the providers. now is the clock for events.
func NewRecorder(logger *slog.Logger, tp trace.TracerProvider, mp metric.MeterProvider, now func() time.Time) *Recorder {
	r := &Recorder{logger: logger, tracer: tp.Tracer(scope), now: now}
	r.Apply(settings.TraceContext{})
	m := mp.Meter(scope)
	r.duration = Must(m.Float64Histogram("tollgate.request.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the first byte of a request to the last byte of its response.")))
	r.refusals = Must(m.Int64Counter("tollgate.refusals",
		metric.WithDescription("Requests refused by the gateway, by kind of problem.")))
	r.policies = Must(m.Int64Counter("tollgate.policy.verdicts",
		metric.WithDescription("Policy violations by policy and mode.")))
	r.upstream = Must(m.Float64Histogram("tollgate.upstream.duration", metric.WithUnit("s"),
		metric.WithDescription("Time until the platform sent response headers, or until the call failed (status 0).")))
	r.runs.register(m)
	return r
}

// Now returns the current time of the recorder's clock.
func (r *Recorder) Now() time.Time { return r.now() }

// Refused counts a request that was refused before an exchange started.
func (r *Recorder) Refused(ctx context.Context, kind string) {
	r.refuse(ctx, refusal{kind: kind, dialect: "none"})
}

func (r *Recorder) refuse(ctx context.Context, x refusal) {
	r.refusals.Add(ctx, 1, r.refused.of(x).add...)
}

// Record ends an exchange: it logs and counts the event and completes the span in ctx.
func (r *Recorder) Record(ctx context.Context, e *Event) {
	now := r.now()
	took := now.Sub(e.Start)
	e.log(ctx, r.logger, now)

	r.duration.Record(ctx, took.Seconds(), r.exchanges.of(series{e.Operation, e.Door, e.Dialect, e.Outcome, e.Status}).record...)
	if e.Refusal != "" {
		r.refuse(ctx, refusal{e.Refusal, e.Dialect, e.Org, e.Team})
	}
	r.spoke(ctx, e, "enforce", e.Denied)
	r.spoke(ctx, e, "warn", e.Warned)
	r.spoke(ctx, e, "shadow", e.Shadowed)
	if e.UpstreamStatus != 0 || e.UpstreamLatency > 0 {
		r.upstream.Record(ctx, e.UpstreamLatency.Seconds(), r.answers.of(answer{e.Operation, e.UpstreamStatus}).record...)
	}
	if e.Job != nil {
		r.runs.record(ctx, e)
	}
	r.span(trace.SpanFromContext(ctx), e)
}

// spoke counts the policies that had a verdict in a mode.
func (r *Recorder) spoke(ctx context.Context, e *Event, mode string, names []string) {
	for _, name := range names {
		r.policies.Add(ctx, 1, r.spoken.of(policyResult{name, mode, e.Org, e.Team}).add...)
	}
}
