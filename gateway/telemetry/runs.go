package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// runs are the metrics of the run interface.
type runs struct {
	queued, executed metric.Float64Histogram
	tokens           metric.Int64Counter
	cost             metric.Float64Counter
}

func newRuns(m metric.Meter) (r runs, err error) {
	var errs [4]error
	r.queued, errs[0] = m.Float64Histogram("tollgate.job.queued", metric.WithUnit("s"),
		metric.WithDescription("How long finished jobs waited for a worker, as answers tell it."))
	r.executed, errs[1] = m.Float64Histogram("tollgate.job.executed", metric.WithUnit("s"),
		metric.WithDescription("How long finished jobs ran, as answers tell it."))
	r.tokens, errs[2] = m.Int64Counter("tollgate.tokens",
		metric.WithDescription("Tokens that language models read and wrote, as answers tell it."))
	r.cost, errs[3] = m.Float64Counter("tollgate.run.usd",
		metric.WithDescription("USD that runs cost, where answers tell it."))
	return r, errors.Join(errs[:]...)
}

// record counts a run. Organisations and teams are those of the configuration, so
// there are only so many series.
func (r *runs) record(ctx context.Context, e *Event) {
	who := metric.WithAttributes(attribute.String("org", e.Org), attribute.String("team", e.Team))
	if e.Job.Finished {
		r.queued.Record(ctx, e.Job.Queued.Seconds(), who)
		r.executed.Record(ctx, e.Job.Executed.Seconds(), who)
	}
	for kind, n := range map[string]int64{"prompt": e.Job.Prompt, "completion": e.Job.Completion} {
		if n > 0 {
			r.tokens.Add(ctx, n, who, metric.WithAttributes(attribute.String("kind", kind)))
		}
	}
	if e.Job.Cost > 0 {
		r.cost.Add(ctx, e.Job.Cost, who)
	}
}
