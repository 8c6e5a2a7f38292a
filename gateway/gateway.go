package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// Deps are the runtime dependencies of a Gateway. All are required except API, the listeners, and fields whose comment describes a zero
// value.
type Deps struct {
	// Redis is the shared store. It must not retry by itself; redisstore.Open returns a suitable client.
	Redis  redisstore.Client
	Logger *slog.Logger
	// LogLevel is set to the log level of each configuration put in force; nil is ignored.
	LogLevel  *slog.LevelVar
	Providers *telemetry.Providers
	Now       func() time.Time
	// Sleep waits between two calls of a translator; nil uses a timer. See translate.Deps.
	Sleep   func(ctx context.Context, d time.Duration) error
	Version string
	// Instance is the name of the gateway among those that share the store, unless the configuration has one. The default is a random name.
	Instance string
	// State is the directory for storing owners of resources across restarts. Gateways may share it. "" stores nothing.
	State string
	// Stdout is the destination of a decision log on standard output; nil discards it.
	Stdout io.Writer
	// Decisions receives each decision in addition to the configured log; it may be nil.
	Decisions filter.Decisions
	// Isolate runs untrusted Rego in child processes; nil runs it in this process, for tests.
	Isolate *policies.Isolator
	// API is the v2 API description; nil uses the embedded one.
	API *schema.API
	// File reads the configuration file again, without secrets; nil for a gateway without a file.
	File func() (*settings.Config, error)
	// Reread reloads the configuration file. It returns when a valid configuration is in force or ctx ends. It is nil for a gateway without
	// a file.
	Reread func(ctx context.Context)
	// Data, Admin and Envoy replace the configured listen addresses if they are not nil.
	Data, Admin, Envoy net.Listener
	// Serving is called once all listeners are open; nil is ignored.
	Serving func()
}

// Gateway is a running tollgate. Use New.
type Gateway struct {
	*kit
	features   []feature
	rows       []adminapi.Endpoint // of the admin listener
	health     *health
	counts     *operator.Limiters
	keys       *callers.Keys
	decisions  *decisions.Decisions
	questions  *operator.Explainer
	audit      *audit.Shipping
	envoys     *envoy.Server
	closeFiles func() // closes the features' files
}

// Questions returns the service for dry runs and audits.
func (g *Gateway) Questions() *operator.Explainer { return g.questions }

// Close releases the resources of a Gateway that is not running.
func (g *Gateway) Close() {
	g.current.changing.Lock()
	defer g.current.changing.Unlock()
	g.current.closed = true
	g.current.Load().close()
	g.closeFiles()
}

func orgIDs(cfg *settings.Config) []string {
	ids := make([]string, len(cfg.Orgs))
	for i, o := range cfg.Orgs {
		ids[i] = o.ID
	}
	return ids
}
