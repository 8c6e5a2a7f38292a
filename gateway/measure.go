package gateway

import (
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// meter makes the instruments of this package.
func (g *Gateway) meter() metric.Meter {
	return g.deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/gateway")
}

// newSupervisor makes the supervisor of the tasks that live as long as the process.
func (g *Gateway) newSupervisor() {
	panics := telemetry.Must(g.meter().Int64Counter("tollgate.task.panics", metric.WithDescription("Panics of background tasks, each of which was restarted.")))
	g.tasks = tasks.NewSupervisor(g.deps.Logger, panics)
}
