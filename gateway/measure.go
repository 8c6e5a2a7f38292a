package gateway

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// newSupervisor makes the supervisor of the tasks that live as long as the process.
func newSupervisor(logger *slog.Logger, meter metric.Meter) *tasks.Supervisor {
	panics := telemetry.Must(meter.Int64Counter("tollgate.task.panics", metric.WithDescription("Panics of background tasks, each of which was restarted.")))
	return &tasks.Supervisor{Logger: logger, Failed: make(chan error, 1), Count: func(ctx context.Context, task string) {
		panics.Add(ctx, 1, metric.WithAttributes(attribute.String("task", task)))
	}}
}
