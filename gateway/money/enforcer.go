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
		Stop: m.stopPod, Terminate: m.terminatePod, Deadline: m.didReach,
	}
}

// stopPod stops a pod of a budget that is passed, an idle one, or one at its deadline.
func (m *Money) stopPod(ctx context.Context, org, id string) (amounts spend.Amounts, err error) {
	prices, err := m.deps.Catalog.Snapshot(ctx, org)
	if err != nil {
		prices = nil
	}
	err = m.audited(org, id, "podAction", operation.VerbStop, func() (err error) {
		amounts, err = m.deps.Account().StopPod(ctx, org, id, prices)
		return err
	})
	return amounts, err
}

// terminatePod deletes a pod at its deadline.
func (m *Money) terminatePod(ctx context.Context, org, id string) error {
	return m.audited(org, id, "deletePod", operation.VerbDelete, func() error { return m.deps.Account().DeletePod(ctx, org, id) })
}

// audited makes a call about a pod by the gateway itself, which is in the audit log like those of callers.
func (m *Money) audited(org, id, op string, verb operation.Verb, call func() error) error {
	if m.deps.Audit == nil {
		return call()
	}
	seq, err := m.deps.Audit.Intent(audit.Record{
		Org: org, Who: "gateway", Operation: op, Kind: string(operation.KindPod), Verb: string(verb), Resource: id, Lowers: true,
	})
	if err != nil {
		return err
	}
	err = call()
	result := audit.Record{Resource: id, Carried: "answered"}
	if err != nil {
		result.Carried = "sent"
	}
	return errors.Join(err, m.deps.Audit.Result(seq, result))
}
