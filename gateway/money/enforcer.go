package money

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// plan returns the budgets of an organisation, nil for none.
func (m *Money) plan(org string) *spend.Plan { return m.deps.Plan(org) }

// newEnforcer stops pods of budgets that are passed and idle ones, and tells of it
// like of a threshold. A message that could not be delivered is in the log.
func (m *Money) newEnforcer(notices spend.Notices, interval time.Duration) *spend.Enforcer {
	return &spend.Enforcer{
		Notices: notices, Plan: m.plan, Interval: interval,
		Announce: func(ctx context.Context, c spend.Cause, r spend.Record, ended func(error)) {
			m.deps.Alerts.Cause(ctx, c, r, "budget.over", "resource.idle", ended)
		},
		Stopped: func(ctx context.Context, c spend.Cause, r spend.Record) {
			m.deps.Alerts.Cause(ctx, c, r, "budget.stopped", "resource.stopped", func(error) {})
			m.didStop(&c, &r)
		},
		Stop: m.stopPod,
	}
}

// stopPod stops a pod of a budget that is passed, or an idle one. It is audited like
// the callers' own.
func (m *Money) stopPod(ctx context.Context, org, id string) (spend.Amounts, error) {
	prices, err := m.deps.Catalog.Snapshot(ctx, org)
	if err != nil {
		prices = nil
	}
	if m.deps.Audit == nil {
		return m.deps.Account().StopPod(ctx, org, id, prices)
	}
	seq, err := m.deps.Audit.Intent(audit.Record{
		Org: org, Who: "gateway", Operation: "podAction", Kind: string(operation.KindPod), Verb: string(operation.VerbStop), Resource: id, Lowers: true,
	})
	if err != nil {
		return spend.Amounts{}, err
	}
	amounts, err := m.deps.Account().StopPod(ctx, org, id, prices)
	result := audit.Record{Resource: id, Carried: "answered"}
	if err != nil {
		result.Carried = "sent"
	}
	return amounts, errors.Join(err, m.deps.Audit.Result(seq, result))
}
