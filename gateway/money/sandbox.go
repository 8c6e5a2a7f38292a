package money

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// observe updates the ledger's records of the sandboxes in a response. The ledger needs these updates, because the platform does not report
// the rate of a sandbox before the sandbox runs.
func observe(ctx context.Context, ex *filter.Exchange, row *operation.Spec) {
	prices, err := ex.Prices(ctx)
	if err != nil {
		return // left to the reconciler
	}
	record := ex.Response.UpstreamObject()
	records := []any{record}
	if row.ListMember != "" {
		records, _ = record[row.ListMember].([]any)
	}
	for _, item := range records {
		record, _ := item.(map[string]any)
		enter(ctx, ex, prices, record)
	}
}

// observeBeforeDelete reads a sandbox that is about to be deleted, because the record of a deleted sandbox has no rate. If the read fails,
// the sandbox is deleted nevertheless.
func (f *Reserve) observeBeforeDelete(ctx context.Context, ex *filter.Exchange) {
	prices, err := ex.Prices(ctx)
	if err != nil {
		return
	}
	doc, _, err := f.Reader.Read(ctx, ex, f.Sandbox, ex.Params)
	if record, ok := doc.(map[string]any); ok && err == nil {
		enter(ctx, ex, prices, record)
	}
}

// enter reports the record of a sandbox to the ledger if the record has a rate or the sandbox has ended.
func enter(ctx context.Context, ex *filter.Exchange, prices *catalog.Snapshot, record map[string]any) {
	if record["compute"] == nil && !catalog.SandboxEnded(operation.KindSandbox, record) {
		return
	}
	ceiling, _ := ledger.Footprint(operation.KindSandbox, nil, prices) // computed without the platform's rate
	f := clocks(record)
	f.ID, _ = record["id"].(string)
	f.Amounts, f.Priced = ex.Tenant.Budgets.Footprint(operation.KindSandbox, record, 0, prices)
	ex.RecordFailure(ex.Ports.Ledger.Observe(ctx, ex.Caller.Org, &f, ceiling[ledger.Bounded]))
}

// endOf returns when a sandbox ended.
func endOf(record map[string]any) time.Time { return clocks(record).Ended }

func clocks(record map[string]any) (f ledger.PlatformResource) {
	f.ReadTimes(record, time.Time{})
	return f
}
