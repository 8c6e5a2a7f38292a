package gateway

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// newSupervisor makes the supervisor of the tasks that live as long as the process. fatal receives the error that ends the process: too many
// tasks have panicked.
func newSupervisor(logger *slog.Logger, meter metric.Meter) (_ *tasks.Supervisor, fatal chan error) {
	panics := telemetry.Must(meter.Int64Counter("tollgate.task.panics", metric.WithDescription("Panics of background tasks, each of which was restarted.")))
	fatal = make(chan error, 1)
	return &tasks.Supervisor{
		Logger: logger,
		Count: func(ctx context.Context, task string) {
			panics.Add(ctx, 1, metric.WithAttributes(attribute.String("task", task)))
		},
		End: func(err error) { fatal <- err },
	}, fatal
}
