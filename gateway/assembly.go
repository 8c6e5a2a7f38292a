package gateway

import (
	"cmp"
	"crypto/rand"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

// New compiles cfg and returns a Gateway. It opens no network connections and no listeners; [Gateway.Run] does.
func New(cfg settings.Config, deps Deps) (*Gateway, error) {
	k, err := newKit(&cfg, deps)
	if err != nil {
		return nil, err
	}
	p, err := newParts(k, &cfg)
	if err != nil {
		return nil, err
	}
	g := &Gateway{parts: p, features: p.list()}
	telemetry.MeasureGate(k.meter(), p.room.Gate)
	telemetry.MeasureSources(k.meter(), deps.Now, g.sources)
	if err := g.Swap(cfg); err != nil {
		p.close()
		return nil, err
	}
	return g, nil
}

// kit holds the dependencies that features share.
type kit struct {
	deps       Deps
	name       string // unique among gateways that share the store
	api        *schema.API
	runs       *schema.API // the API description of the run interface
	recorder   *telemetry.Recorder
	background *tasks.Group // work that may outlive its request
	tasks      *tasks.Supervisor
	streams    *filter.Streams
	current    *current
}

// newKit returns a kit without a compiled configuration.
func newKit(cfg *settings.Config, deps Deps) (_ *kit, err error) {
	k := &kit{
		deps: deps, name: cmp.Or(cfg.Instance, deps.Instance, rand.Text()), api: deps.API, background: &tasks.Group{Logger: deps.Logger},
		current: &current{view: view.New(deps.Now), swapped: make(chan struct{}, 1), started: cfg},
	}
	k.tasks = tasks.NewSupervisor(deps.Logger, telemetry.Must(k.meter().Int64Counter("tollgate.task.panics",
		metric.WithDescription("Panics of background tasks. Each task was restarted."))))
	k.streams = filter.NewStreams(func(s filter.Stream) (time.Duration, bool) { return k.current.allows(s, deps.Now()) })
	if k.api == nil {
		if k.api, err = schema.Load(); err != nil {
			return nil, err
		}
	}
	if k.runs, err = schema.LoadRun(); err != nil {
		return nil, err
	}
	k.recorder = telemetry.NewRecorder(deps.Logger, deps.Providers.Tracer(), deps.Providers.Meter(), deps.Now)
	return k, nil
}

// meter returns the meter of the gateway's own instruments.
func (k *kit) meter() metric.Meter { return k.meterOf("gateway") }

// meterOf returns the meter for the instruments of package pkg.
func (k *kit) meterOf(pkg string) metric.Meter {
	return k.deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/" + pkg)
}

// AdminRows returns the endpoints of the admin API for use in documentation. Their handlers must not be called.
func AdminRows() []adminapi.Endpoint {
	p := &parts{audit: new(audit.Shipping)}
	return admin.Deps{Features: rowsOf(p.list())}.Endpoints()
}
