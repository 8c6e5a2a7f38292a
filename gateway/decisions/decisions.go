package decisions

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

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

// Decisions are this gateway's: the log, the latest exchanges, the archive.
type Decisions struct {
	// History has the latest exchanges.
	History *explain.History

	deps    Deps
	file    *logfile.File    // of the decision log, nil for none
	log     *decisionlog.Log // nil when they are logged nowhere
	archive *archiver        // nil without one
	counter *counter
	// streams bounds the streams of decisions that are open at once.
	streams *semaphore.Weighted
}

// Deps are the dependencies of Decisions. All are required but Stdout and Also.
type Deps struct {
	Redis  store.Client
	Now    func() time.Time
	Logger *slog.Logger
	// Meter makes the instruments, and PolicyMeter those of the decision log.
	Meter, PolicyMeter metric.Meter
	// Go runs work behind answers.
	Go func(f func())
	// Stdout is where a decision log on standard output goes; nil has none.
	Stdout io.Writer
	// Also records each decision, besides the configured log; nil records none.
	Also filter.Decisions

	*view.Current
	// Chain returns the chain in force.
	Chain func() *filter.Chain
	// Draining is closed when the gateway begins to drain, which ends streams of decisions.
	Draining <-chan struct{}
}

// New opens the decision log, if it has anywhere to go, and the memory
// of the latest exchanges.
func New(cfg *settings.Config, deps Deps) (*Decisions, error) {
	d := &Decisions{
		deps: deps, file: cfg.Decisions.File,
		counter: newCounter(NewTally(deps.Redis, cfg.Redis.Prefix.Decisions()+"policies:"), deps.Logger),
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
	m := d.deps.PolicyMeter
	events := telemetry.Must(m.Int64ObservableCounter("tollgate.decisions", metric.WithDescription("Events of the decision log, by what became of them.")))
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := d.log.Stats()
		for end, n := range map[string]int64{"written": s.Written, "dropped": s.Dropped, "failed": s.Failed, "sampled": s.Sampled} {
			o.ObserveInt64(events, n, metric.WithAttributes(attribute.String("end", end)))
		}
		return nil
	}, events))
	return d, nil
}

// Close closes the log of a gateway that does not run.
func (d *Decisions) Close() {
	if d.log != nil {
		d.log.Close()
	}
}

// Recorder returns a recorder of decisions, nil for none.
func (d *Decisions) Recorder() filter.Decisions {
	var all recorders
	if d.log != nil {
		all = append(all, d.log)
	}
	if d.deps.Also != nil {
		all = append(all, d.deps.Also)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Undelivered describes the sinks of the decision log that take nothing, or for which events were dropped.
func (d *Decisions) Undelivered() (out []string) {
	if d.log == nil {
		return nil
	}
	for _, b := range d.log.Backlogs() {
		var parts []string
		if b.Fault != nil {
			parts = append(parts, fmt.Sprintf("%d events wait: %v", b.Waiting, b.Fault))
		}
		if b.Dropped > 0 {
			parts = append(parts, fmt.Sprintf("%d events were dropped since the gateway started", b.Dropped))
		}
		if len(parts) > 0 {
			out = append(out, "decision log ("+b.Sink+"): "+strings.Join(parts, "; "))
		}
	}
	return out
}

// recorders tells each of several.
type recorders []filter.Decisions

// Record implements filter.Decisions.
func (r recorders) Record(e decisionlog.Event) {
	for _, d := range r {
		d.Record(e)
	}
}

// Reopen makes the decision log follow a file that was renamed.
func (d *Decisions) Reopen() {
	if d.log != nil {
		d.log.Reopen()
	}
}

// Tasks write the decision log and the counts of decisions. They outlive the listeners, so that requests that finish while the listeners drain
// are included.
func (d *Decisions) Tasks() []tasks.Task {
	counts := tasks.Task{Name: "decision counts", Until: tasks.Ended, Run: d.writeCounts}
	if d.log == nil {
		return []tasks.Task{counts}
	}
	return []tasks.Task{{Name: "decision log", Until: tasks.Ended, Run: d.log.Run}, counts}
}

// Apply makes the decision log follow a new configuration.
func (d *Decisions) Apply(cfg *settings.Config) {
	if d.log == nil {
		return
	}
	if err := d.log.Apply(cfg.Decisions.DecisionLog); err != nil {
		d.deps.Logger.Error("the decision log stays as it is", "error", err) // it was validated
	}
}

// ownDialect is the dialect, in decisions, of the gateway's own acts.
const ownDialect = "gateway"

// Did keeps an act of the gateway's own beside the decisions.
func (d *Decisions) Did(org string, of ledger.Owner, operation, resource, text string) {
	d.History.AddOwn(&explain.Report{
		DecisionID: ulid.Make().String(), Time: d.deps.Now().UTC(), Revision: d.deps.Config().Revision,
		Dialect: ownDialect, Operation: operation, Caller: explain.Caller{Org: org, Team: of.Team}, Verdict: explain.Allowed,
		Own: &explain.OwnAction{Resource: resource, Did: text}, Stages: []explain.Stage{}, Calls: []explain.Call{},
	})
}
