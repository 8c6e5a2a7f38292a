package gateway

import (
	"log/slog"

	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// newSupervisor makes the supervisor of the tasks that live as long as the process.
func newSupervisor(logger *slog.Logger, meter metric.Meter) *tasks.Supervisor {
	return tasks.NewSupervisor(logger, telemetry.Must(meter.Int64Counter("tollgate.task.panics",
		metric.WithDescription("Panics of background tasks, each of which was restarted."))))
}
