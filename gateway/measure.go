package gateway

import (
	"log/slog"

	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// newSupervisor returns the supervisor of long-running tasks.
func newSupervisor(logger *slog.Logger, meter metric.Meter) *tasks.Supervisor {
	return tasks.NewSupervisor(logger, telemetry.Must(meter.Int64Counter("tollgate.task.panics",
		metric.WithDescription("Number of panics in background tasks. The gateway restarts a task after a panic."))))
}
