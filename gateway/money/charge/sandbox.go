package charge

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// observe tells the ledger what a call has read of sandboxes: the platform states the rate of a sandbox only once it runs.
func observe(ctx context.Context, ex *filter.Exchange, row *operation.Row) {
	prices, err := ex.Prices(ctx)
	if err != nil {
		return // the reconciler will see it
	}
	ceiling, _ := spend.Footprint(row.Kind, nil, prices) // without a rate of the platform
	record := ex.Answer.Record()
	records := []any{record}
	if row.List != "" {
		records, _ = record[row.List].([]any)
	}
	for _, item := range records {
		record, _ := item.(map[string]any)
		if record["compute"] == nil && !catalog.Ended(row.Kind, record) {
			continue // it is not known yet
		}
		f := clocks(record)
		f.ID, _ = record["id"].(string)
		f.Amounts, f.Priced = ex.Tenant.Budgets.Footprint(row.Kind, record, 0, prices)
		ex.Failed(ex.Ports.Ledger.Observe(ctx, ex.Caller.Org, &f, ceiling[spend.Bounded]))
	}
}

// endOf returns when a sandbox has ended.
func endOf(record map[string]any) time.Time { return clocks(record).Ended }

func clocks(record map[string]any) (f spend.Found) {
	f.Clocks(record, time.Time{})
	return f
}
