package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// runs holds the metrics of the run interface.
type runs struct {
	queued, executed metric.Float64Histogram
	tokens           metric.Int64Counter
	cost             metric.Float64Counter

	whose options[owner]
	read  options[read]
}

// owner identifies the owner of runs. Organisations and teams are configured, so their number is limited.
type owner struct{ org, team string }

func (x owner) attributes() attribute.Set {
	return attribute.NewSet(attribute.String("org", x.org), attribute.String("team", x.team))
}

// read holds the attributes of a token count.
type read struct {
	owner
	kind string
}

func (x read) attributes() attribute.Set {
	return attribute.NewSet(attribute.String("org", x.org), attribute.String("team", x.team), attribute.String("kind", x.kind))
}

func (r *runs) register(m metric.Meter) {
	r.queued = Must(m.Float64Histogram("tollgate.job.queued", metric.WithUnit("s"),
		metric.WithDescription("Time that finished jobs waited for a worker, as reported in responses.")))
	r.executed = Must(m.Float64Histogram("tollgate.job.executed", metric.WithUnit("s"),
		metric.WithDescription("Execution time of finished jobs, as reported in responses.")))
	r.tokens = Must(m.Int64Counter("tollgate.tokens",
		metric.WithDescription("Tokens read and written by language models, as reported in responses.")))
	r.cost = Must(m.Float64Counter("tollgate.run.usd",
		metric.WithDescription("Cost of runs in USD, as reported in responses.")))
}

// record counts a run.
func (r *runs) record(ctx context.Context, e *Event) {
	who := owner{e.Org, e.Team}
	of := r.whose.of(who)
	if e.Job.Finished {
		r.queued.Record(ctx, e.Job.Queued.Seconds(), of.record...)
		r.executed.Record(ctx, e.Job.Executed.Seconds(), of.record...)
	}
	r.count(ctx, read{who, "prompt"}, e.Job.Prompt)
	r.count(ctx, read{who, "completion"}, e.Job.Completion)
	if e.Job.Cost > 0 {
		r.cost.Add(ctx, e.Job.Cost, of.add...)
	}
}

// count counts tokens.
func (r *runs) count(ctx context.Context, x read, n int64) {
	if n > 0 {
		r.tokens.Add(ctx, n, r.read.of(x).add...)
	}
}
