package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// Deps holds the dependencies of a Gateway. A field is optional if its comment describes the zero value; all other fields are required.
type Deps struct {
	// Redis is the client of the shared store. The client must not retry failed commands; redisstore.Open returns a suitable client.
	Redis  redisstore.Client
	Logger *slog.Logger
	// LogLevel, if not nil, is set to the log level of each configuration that comes into force.
	LogLevel  *slog.LevelVar
	Providers *telemetry.Providers
	Now       func() time.Time
	// Sleep waits between two calls of a translator, see translate.Deps. If nil, a timer is used.
	Sleep   func(ctx context.Context, d time.Duration) error
	Version string
	// Instance is the unique name of this gateway among the gateways that share the store. A name in the configuration takes precedence. If
	// both are empty, the name is random.
	Instance string
	// State is the directory that stores the owners of resources across restarts. Gateways may share it. If empty, owners are not stored
	// there.
	State string
	// Stdout is the destination of a decision log on standard output. If nil, such a log is discarded.
	Stdout io.Writer
	// Decisions, if not nil, receives each decision in addition to the configured logs.
	Decisions filter.Decisions
	// Isolate runs untrusted Rego in child processes. If nil, Rego runs in this process, which is only suitable for tests.
	Isolate *policies.Isolator
	// API is the description of the v2 API. If nil, the embedded description is used.
	API *schema.API
	// File reads the current content of the configuration file, without secrets. It is nil if the gateway has no configuration file.
	File func() (*settings.Config, error)
	// Reread reloads the configuration file. It returns when the reload is complete or ctx ends. It is nil if the gateway has no configuration
	// file.
	Reread func(ctx context.Context)
	// Data, Admin and Envoy, if not nil, are the listeners to use in place of the configured addresses.
	Data, Admin, Envoy net.Listener
	// Serving, if not nil, is called once, when all listeners are open.
	Serving func()
}

// Gateway is an instance of tollgate. Use [New] to create a Gateway, and [Gateway.Run] to serve requests.
type Gateway struct {
	*parts
	features []feature
}

// Questions returns the service that explains hypothetical calls (dry runs) and audits resources.
func (g *Gateway) Questions() *operator.Explainer { return g.questions }

// Close releases the resources of a Gateway. Call it only if the Gateway is not running.
func (g *Gateway) Close() {
	g.current.changing.Lock()
	defer g.current.changing.Unlock()
	g.current.closed = true
	g.current.Load().close()
	g.parts.close()
}
