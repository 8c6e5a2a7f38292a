package gateway

import (
	"context"
	"net"

	"github.com/tollgate-dev/tollgate/gateway/tasks"
)

// Tasks lists the tasks of a gateway that would listen for Envoys at a listener, nil for none. They cannot be run.
func (g *Gateway) Tasks(ctx context.Context, envoy net.Listener) []tasks.Task {
	return g.listTasks(opened{envoy: envoy}, ctx, ctx)
}
