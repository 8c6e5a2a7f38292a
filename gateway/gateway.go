package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
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

// Deps are the live things a Gateway works with. All are required but API and
// the listeners.
type Deps struct {
	// Redis counts and remembers. It must not retry by itself; redisstore.Open
	// makes one that does not.
	Redis  redisstore.Client
	Logger *slog.Logger
	// LogLevel is set to the level of each configuration that is put in force; nil is not.
	LogLevel  *slog.LevelVar
	Providers *telemetry.Providers
	Now       func() time.Time
	// Sleep waits between two calls of the translators; nil means a timer. See
	// translate.Deps.
	Sleep   func(ctx context.Context, d time.Duration) error
	Version string
	// Instance names the gateway among those that share the store, unless the
	// configuration does; empty is a random name.
	Instance string
	// State is the directory that keeps the owners of resources for the next start, one for each gateway or shared; "" keeps nothing.
	State string
	// Stdout is where a decision log on standard output goes; nil has none.
	Stdout io.Writer
	// Decisions records each decision, besides the configured log; nil records none.
	Decisions filter.Decisions
	// Isolate runs Rego that is not known to end in child processes; nil runs it in this process, for tests.
	Isolate *policies.Isolator
	// API is the v2 API's description; nil loads the embedded one.
	API *schema.API
	// File reads the configuration file anew, without secrets; nil for a gateway without one.
	File func() (*settings.Config, error)
	// Reread has the configuration file read again and a good configuration put in force, and returns when that was done or
	// when ctx ends; nil for a gateway without a file.
	Reread func(ctx context.Context)
	// Data, Admin and Envoy are used instead of the configured addresses when
	// not nil.
	Data, Admin, Envoy net.Listener
	// Serving is called once all listeners are open; nil is not.
	Serving func()
}

// Gateway is a running tollgate.
type Gateway struct {
	*kit
	features   []feature
	rows       []row.Row // of the operators' listener
	health     *health
	counts     *operator.Counts
	keys       *callers.Keys
	decisions  *decisions.Decisions
	questions  *operator.Questions
	audit      *audit.Shipping
	envoys     *envoy.Server
	closeFiles func() // of features
}

// Questions answers about requests that are not made, and about existing resources.
func (g *Gateway) Questions() *operator.Questions { return g.questions }

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
