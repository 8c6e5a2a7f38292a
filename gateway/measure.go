package gateway

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
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
	g.fatal = make(chan error, 1)
	g.tasks = &tasks.Supervisor{
		Logger: g.deps.Logger,
		Count: func(ctx context.Context, task string) {
			panics.Add(ctx, 1, metric.WithAttributes(attribute.String("task", task)))
		},
		End: func(err error) { g.fatal <- err },
	}
}
