package money

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// events exports metrics, sends alerts and stores decision entries about the results of reconciliation and the actions taken by the
// gateway. It implements ledger.Events.
type events struct {
	*Deps

	passes   *passes
	balances *balances
	losses   *losses
	late     metric.Int64Counter
}

func newEvents(cfg *settings.Config, d *Deps) *events {
	return &events{
		Deps: d, passes: newPasses(d, 2*cfg.Spend.Reconcile),
		balances: newBalances(d, 2*cfg.Spend.Reconcile), losses: newLosses(d),
		late: telemetry.Must(d.Meter.Int64Counter("tollgate.ledger.restored_late",
			metric.WithDescription("Reservations restored after a ledger was rebuilt, because this gateway reported them too late."))),
	}
}

// Observed implements ledger.Events.
func (e *events) Observed(ctx context.Context, org string, p *ledger.Plan, s *ledger.State) {
	e.balances.store(org, p, s)
	e.Alerts.CheckThresholds(ctx, org, p, s)
}

// PassEnded implements ledger.Events.
func (e *events) PassEnded(ctx context.Context, org string, r *ledger.Report, err error) {
	if r.Repaired > 0 {
		e.passes.repaired(ctx, org, r.Repaired)
	}
	if r.Loss != nil {
		e.losses.add(org, r.Loss.Lost)
		e.Alerts.LedgerLost(ctx, org, lossOf(r.Loss))
	}
	if err != nil {
		return
	}
	before := e.passes.done(ctx, org, r)
	e.Alerts.Unmanaged(ctx, org, r.Unmanaged)
	e.Alerts.Drift(ctx, org, r.Drifted)
	e.didEnd(org, r.EndedHolds)
	if r.ListIncomplete && !before.ListIncomplete {
		e.Alerts.IncompleteList(ctx, org, r)
	}
}

// Announce implements ledger.Events.
func (e *events) Announce(ctx context.Context, c *ledger.Cause, r *ledger.Record, ended func(error)) {
	e.Alerts.Cause(ctx, c, r, "budget.over", "resource.idle", ended)
}

// Stopped implements ledger.Events.
func (e *events) Stopped(ctx context.Context, c *ledger.Cause, r *ledger.Record) {
	if c.Excess == nil && c.Idle == nil {
		e.didReach(c, r)
		return
	}
	e.Alerts.Cause(ctx, c, r, "budget.stopped", "resource.stopped", func(error) {})
	e.didStop(c, r)
}

// RestoredLate implements ledger.Events. The restored holds may exceed budgets.
func (e *events) RestoredLate(ctx context.Context, org string, holds []ledger.Hold) {
	e.late.Add(ctx, int64(len(holds)), metric.WithAttributes(attribute.String("org", org)))
	for i := range holds {
		h := &holds[i]
		e.Logger.WarnContext(ctx, "reservation restored after the ledger was rebuilt; budgets might be exceeded", "org", org, "hold", h.ID,
			"operation", h.Metadata.Operation, "decision", h.Metadata.Decision)
		e.RecordAction(org, h.Owner, h.Metadata.Operation, h.Resource,
			"reservation "+h.ID+" restored after the ledger was rebuilt; budgets might be exceeded")
	}
}

// didStop stores a decision entry for a stopped pod, including the reason.
func (e *events) didStop(c *ledger.Cause, r *ledger.Record) {
	var why string
	if x := c.Excess; x != nil {
		why = fmt.Sprintf("budget %s %s exceeded, %s of %s used", x.Scope, ledger.CeilingName(x.Ceiling),
			ledger.AmountText(x.Ceiling, x.Used), ledger.AmountText(x.Ceiling, x.Limit))
	} else {
		why = fmt.Sprintf("idle (%s) since %s", c.Idle.Reason, c.Idle.Since.UTC().Format(time.RFC3339))
	}
	op, what := "podAction", "stopped"
	if c.Deleted {
		op, what = deleteOf(operation.Kind(r.Kind)), "terminated"
	}
	e.RecordAction(c.Org, r.Owner, op, r.ID,
		fmt.Sprintf("%s %s %s (%s) of %s: %s", what, r.Kind, r.ID, r.Metadata.Name, r.Owner.Scopes()[0], why))
}

// didReach stores a decision entry for a pod stopped or terminated at its deadline.
func (e *events) didReach(c *ledger.Cause, r *ledger.Record) {
	op, what, at := "podAction", "stopped", r.Metadata.StopAt
	if c.Deleted {
		op, what, at = "deletePod", "terminated", r.Metadata.EndAt
	}
	e.RecordAction(c.Org, r.Owner, op, r.ID, fmt.Sprintf("%s pod %s (%s) of %s: deadline %[6]s set when it was created (decision %[5]s)",
		what, r.ID, r.Metadata.Name, r.Owner.Scopes()[0], r.Metadata.Decision, time.Unix(at, 0).UTC().Format(time.RFC3339)))
}

// didEnd stores decision entries for ended reservations of calls with an unknown outcome.
func (e *events) didEnd(org string, ended []ledger.EndedHold) {
	for i := range ended {
		h := &ended[i]
		what := "no result found, reserved amounts released"
		switch {
		case h.Executed && h.Kind == string(operation.KindJob):
			what = "job ended, or its status is no longer available"
		case h.Executed && h.Created != "":
			what = "call executed, created " + h.Created
		case h.Executed:
			what = "call executed"
		}
		e.RecordAction(org, h.Owner, h.Metadata.Operation, h.Created,
			fmt.Sprintf("ended the reservation of %s of %s (decision %s): %s", h.Metadata.Operation, h.Owner.Scopes()[0], h.Metadata.Decision, what))
	}
}

// Released implements ledger.Events.
func (e *events) Released(org string, h *ledger.Hold) {
	e.RecordAction(org, h.Owner, h.Metadata.Operation, h.Resource,
		fmt.Sprintf("released the reservation of %s of %s (decision %s): its call is no longer in progress",
			h.Metadata.Operation, h.Owner.Scopes()[0], h.Metadata.Decision))
}
