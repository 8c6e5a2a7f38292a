package decisions

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// Decisions holds the decisions of this gateway: the log, the latest exchanges, and the archive.
type Decisions struct {
	// History holds the latest exchanges.
	History *explain.History

	deps    Deps
	file    *logfile.File    // of the decision log; may be nil
	log     *decisionlog.Log // nil without a sink
	archive *archiver        // nil if not configured
	counter *counter
	// streams limits the number of open decision streams.
	streams *semaphore.Weighted
}

// Deps holds the dependencies of Decisions. All are required except Stdout and Additional.
type Deps struct {
	Redis  store.Client
	Logger *slog.Logger
	// Meter creates the instruments, except that PolicyMeter creates the instruments of the
	// decision log.
	Meter, PolicyMeter metric.Meter
	// Go runs work that need not delay a response.
	Go func(f func())
	// Stdout is the stream of a decision log on standard output; nil disables it.
	Stdout io.Writer
	// Additional, if not nil, also receives each decision.
	Additional filter.Decisions

	*view.Current
	// Chain returns the filter chain in force.
	Chain func() *filter.Chain
	// Draining is closed when the gateway begins to drain. It ends the streams of decisions.
	Draining <-chan struct{}
}

// New opens the decision log, if one is configured, and creates the history of exchanges.
func New(cfg *settings.Config, deps Deps) (*Decisions, error) {
	d := &Decisions{
		deps: deps, file: cfg.Decisions.File,
		counter: newCounter(NewCountStore(deps.Redis, cfg.Redis.Prefix.Decisions()+"policies:"), deps.Logger),
		streams: semaphore.NewWeighted(maxStreams),
	}
	d.newHistory(cfg)
	if to := cfg.Decisions.DecisionLog; to.File == nil && !to.Stdout && to.Service == nil {
		return d, nil
	}
	var err error
	d.log, err = decisionlog.New(cfg.Decisions.DecisionLog, decisionlog.Deps{Stdout: d.deps.Stdout, Logger: d.deps.Logger})
	if err != nil {
		return nil, err
	}
	telemetry.Must(d.deps.PolicyMeter.Int64ObservableCounter("tollgate.decisions",
		metric.WithDescription("Decision log events, by outcome."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			s := d.log.Stats()
			for end, n := range map[string]int64{"written": s.Written, "dropped": s.Dropped, "failed": s.Failed, "sampled": s.Sampled} {
				o.Observe(n, metric.WithAttributes(attribute.String("end", end)))
			}
			return nil
		})))
	return d, nil
}

// Close closes the decision log if the tasks of d were never started.
func (d *Decisions) Close() {
	if d.log != nil {
		d.log.Close()
	}
}

// Recorder returns the recorder of decisions, or nil.
func (d *Decisions) Recorder() filter.Decisions {
	var all recorders
	if d.log != nil {
		all = append(all, d.log)
	}
	if d.deps.Additional != nil {
		all = append(all, d.deps.Additional)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Undelivered describes the sinks of the decision log that are failing or for which events were dropped, and a file that cannot be rotated.
func (d *Decisions) Undelivered() (out []string) {
	if d.log == nil {
		return nil
	}
	for _, b := range d.log.Backlogs() {
		var parts []string
		if b.Err != nil {
			parts = append(parts, fmt.Sprintf("%d events queued: %v", b.Waiting, b.Err))
		}
		if b.Dropped > 0 {
			parts = append(parts, fmt.Sprintf("%d events dropped since startup", b.Dropped))
		}
		if len(parts) > 0 {
			out = append(out, "decision log ("+b.Sink+"): "+strings.Join(parts, "; "))
		}
	}
	if err := d.log.RotateError(); err != nil {
		out = append(out, fmt.Sprintf("decision log: file exceeds max_bytes, because it cannot be rotated: %v", err))
	}
	return out
}

// recorders passes decisions to several recorders.
type recorders []filter.Decisions

// Record implements filter.Decisions.
func (r recorders) Record(e decisionlog.Event) {
	for _, d := range r {
		d.Record(e)
	}
}

// Reopen makes the decision log follow a renamed file.
func (d *Decisions) Reopen() {
	if d.log != nil {
		d.log.Reopen()
	}
}

// Tasks returns the tasks that write the decision log and the decision counts. They end after the listeners, so that requests that
// finish while the listeners drain are included.
func (d *Decisions) Tasks() []tasks.Task {
	counts := tasks.Task{Name: "decision counts", Until: tasks.Ended, Run: d.writeCounts}
	if d.log == nil {
		return []tasks.Task{counts}
	}
	return []tasks.Task{{Name: "decision log", Until: tasks.Ended, Run: d.log.Run}, counts}
}

// Apply applies a new configuration to the decision log.
func (d *Decisions) Apply(cfg *settings.Config) {
	if d.log == nil {
		return
	}
	if err := d.log.Apply(cfg.Decisions.DecisionLog); err != nil {
		d.deps.Logger.Error("cannot apply the new decision log configuration", "error", err) // cannot happen: cfg was validated
	}
}

// ownDialect is the dialect of the gateway's own actions in decisions.
const ownDialect = "gateway"

// RecordOwnAction records an action of the gateway itself among the decisions.
func (d *Decisions) RecordOwnAction(org string, of ledger.Owner, operation, resource, text string) {
	d.History.AddOwn(&explain.Report{
		DecisionID: ulid.Make().String(), Time: d.deps.Now().UTC(), Revision: d.deps.Config().Revision,
		Dialect: ownDialect, Operation: operation, Caller: explain.Caller{Org: org, Team: of.Team}, Verdict: explain.Allowed,
		Own: &explain.OwnAction{Resource: resource, Did: text}, Stages: []explain.Stage{}, Calls: []explain.Call{},
	})
}
