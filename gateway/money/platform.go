package money

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// platform implements ledger.Platform with the accounts and prices in force.
type platform struct{ *Deps }

// List implements ledger.Platform. It returns the priced resources of the kinds that count against budgets. If callers are isolated, it
// also returns the resources of all kinds that have owners.
func (p platform) List(ctx context.Context, org string, known func(operation.Kind) bool) ([]ledger.PlatformResource, error) {
	prices, err := p.Catalog.Snapshot(ctx, org)
	if err != nil {
		return nil, err
	}
	kinds := ledger.IsCounted
	if o := p.Org(org); o != nil && o.Isolation.Applies() {
		kinds = operation.HasOwner
	}
	return p.Account().Inventory(ctx, org, cmp.Or(p.Plan(org), new(ledger.Plan)), kinds, known, prices)
}

// Get implements ledger.Platform.
func (p platform) Get(ctx context.Context, org string, kind operation.Kind, id string) (*ledger.PlatformResource, error) {
	prices, err := p.Catalog.Snapshot(ctx, org)
	if err != nil {
		return nil, err
	}
	return p.Account().Get(ctx, org, cmp.Or(p.Plan(org), new(ledger.Plan)), kind, id, prices)
}

// EndedSandbox implements ledger.Platform.
func (p platform) EndedSandbox(ctx context.Context, org, call string) (*ledger.PlatformResource, error) {
	return p.Account().EndedSandbox(ctx, org, call)
}

// Bills implements ledger.Platform.
func (p platform) Bills(ctx context.Context, org string, from, to time.Time) ([]ledger.Bill, error) {
	return p.Account().Bills(ctx, org, from, to)
}

// JobOutcome implements ledger.Platform.
func (p platform) JobOutcome(ctx context.Context, org string, h *ledger.Hold) (*ledger.Settlement, error) {
	o, account := p.Org(org), p.Account()
	if o == nil || account.Runs == nil {
		return nil, nil //nolint:nilnil // nothing is known about the job
	}
	return jobOutcome(ctx, account, org, h, o.Prices.Runs.For(h.Metadata.Name))
}

// StopPod implements ledger.Platform.
func (p platform) StopPod(ctx context.Context, org, id string) (amounts ledger.Amounts, err error) {
	prices, _ := p.Catalog.Snapshot(ctx, org) // without prices, the amounts are not priced
	err = p.audited(org, operation.KindPod, id, "podAction", operation.VerbStop, func() (err error) {
		amounts, err = p.Account().StopPod(ctx, org, id, prices)
		return err
	})
	return amounts, err
}

// Delete implements ledger.Platform.
func (p platform) Delete(ctx context.Context, org string, kind operation.Kind, id string) error {
	return p.audited(org, kind, id, deleteOf(kind), operation.VerbDelete, func() error { return p.Account().Delete(ctx, org, kind, id) })
}

// deleteOf returns the operation that deletes a pod or a sandbox.
func deleteOf(kind operation.Kind) string {
	if kind == operation.KindSandbox {
		return "deleteSandbox"
	}
	return "deletePod"
}

// audited runs call, which changes a resource on behalf of the gateway, and records the change in the audit log.
func (p platform) audited(org string, kind operation.Kind, id, op string, verb operation.Verb, call func() error) error {
	if p.Audit == nil {
		return call()
	}
	seq, err := p.Audit.Intent(audit.Record{
		Org: org, Who: "gateway", Operation: op, Kind: string(kind), Verb: string(verb), Resource: id, Lowers: true,
	})
	if err != nil {
		return err
	}
	err = call()
	result := audit.Record{Resource: id, Carried: "answered"}
	if err != nil {
		result.Carried = "sent"
	}
	return errors.Join(err, p.Audit.Result(seq, result))
}
