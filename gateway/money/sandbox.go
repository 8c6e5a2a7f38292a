package money

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// observe tells the ledger what a call has read of sandboxes: the platform states the rate of a sandbox only once it runs.
func observe(ctx context.Context, ex *filter.Exchange, row *operation.Row) {
	prices, err := ex.Prices(ctx)
	if err != nil {
		return // the reconciler will see it
	}
	record := ex.Response.UpstreamObject()
	records := []any{record}
	if row.List != "" {
		records, _ = record[row.List].([]any)
	}
	for _, item := range records {
		record, _ := item.(map[string]any)
		enter(ctx, ex, prices, record)
	}
}

// observeBeforeDelete reads a sandbox that is about to be deleted, because the record of a deleted sandbox has no rate. A sandbox that
// cannot be read is deleted all the same.
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

// enter tells the ledger what the record of a sandbox says, if it has a rate or has ended.
func enter(ctx context.Context, ex *filter.Exchange, prices *catalog.Snapshot, record map[string]any) {
	if record["compute"] == nil && !catalog.Ended(operation.KindSandbox, record) {
		return
	}
	ceiling, _ := ledger.Footprint(operation.KindSandbox, nil, prices) // without a rate of the platform
	f := clocks(record)
	f.ID, _ = record["id"].(string)
	f.Amounts, f.Priced = ex.Tenant.Budgets.Footprint(operation.KindSandbox, record, 0, prices)
	ex.RecordFailure(ex.Ports.Ledger.Observe(ctx, ex.Caller.Org, &f, ceiling[ledger.Bounded]))
}

// endOf returns when a sandbox has ended.
func endOf(record map[string]any) time.Time { return clocks(record).Ended }

func clocks(record map[string]any) (f ledger.PlatformResource) {
	f.ReadTimes(record, time.Time{})
	return f
}
