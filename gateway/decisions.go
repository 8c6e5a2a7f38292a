package gateway

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/load"
)

// openDecisions opens the decision log, if it has anywhere to go, and the memory
// of the latest exchanges.
func (g *Gateway) openDecisions(cfg *settings.Config) error {
	if d := cfg.Decisions.DecisionLog; d.File == nil && !d.Stdout && d.Service == nil {
		return nil
	}
	var err error
	g.decisions, err = decisionlog.New(cfg.Decisions.DecisionLog, decisionlog.Deps{Stdout: g.deps.Stdout, Logger: g.deps.Logger})
	if err != nil {
		return err
	}
	m := g.deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/policies")
	events := telemetry.Must(m.Int64ObservableCounter("tollgate.decisions", metric.WithDescription("Events of the decision log, by what became of them.")))
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := g.decisions.Stats()
		for end, n := range map[string]int64{"written": s.Written, "dropped": s.Dropped, "failed": s.Failed, "sampled": s.Sampled} {
			o.ObserveInt64(events, n, metric.WithAttributes(attribute.String("end", end)))
		}
		return nil
	}, events))
	return nil
}

// decisionRecorders returns what records decisions, nil for nothing.
func (g *Gateway) decisionRecorders() filter.Decisions {
	var all recorders
	if g.decisions != nil {
		all = append(all, g.decisions)
	}
	if g.deps.Decisions != nil {
		all = append(all, g.deps.Decisions)
	}
	if len(all) == 0 {
		return nil
	}
	return all
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
func (g *Gateway) Reopen() {
	if g.decisions != nil {
		g.decisions.Reopen()
	}
}

// logDecisions runs the decision log until stop is called, which waits until
// what was decided is written. It outlives the listeners, so that requests that
// finish while they drain are in it.
func (g *Gateway) logDecisions(ctx context.Context) (stop func() error) {
	if g.decisions == nil {
		return func() error { return nil }
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- g.decisions.Run(run) }()
	return func() error {
		cancel()
		return background(<-ended)
	}
}

// policyStatus tells how the policies in force are doing.
func (g *Gateway) policyStatus() []admin.PolicyStatus {
	list := g.current.Load().engine.Status()
	out := make([]admin.PolicyStatus, len(list))
	for i, s := range list {
		out[i] = admin.PolicyStatus{Org: s.Org, Revision: s.Revision, Bundle: s.Bundle}
		if !s.Fetched.IsZero() {
			out[i].Fetched = s.Fetched.UTC().Format(time.RFC3339)
		}
		if s.Err != nil {
			out[i].Fault = s.Err.Error()
		}
		if o := g.org(s.Org); o != nil {
			out[i].Unlisted = unlisted(o, g.catalog.Last(s.Org))
		}
	}
	return out
}

// unlisted tells which names in an organisation's policies a list of the platform's
// catalog, nil if none was read, does not have.
func unlisted(o *settings.Org, list *catalog.Snapshot) []string {
	var out []string
	for _, v := range load.Values(o.Policies.Policies) {
		if meant, lacks := list.Lacks(v.Format, v.Text); lacks {
			line := fmt.Sprintf("%s: %q is not in the platform's catalog", v.Path, v.Text)
			if meant != "" {
				line += fmt.Sprintf(", did you mean %q?", meant)
			}
			out = append(out, line)
		}
	}
	return out
}

// tellUnlisted logs the same.
func (g *Gateway) tellUnlisted(o *settings.Org, list *catalog.Snapshot) {
	for _, line := range unlisted(o, list) {
		g.deps.Logger.Warn("a policy names what the platform does not have", "org", o.ID, "parameter", line)
	}
}
