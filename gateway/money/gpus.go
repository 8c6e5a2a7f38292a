package money

import (
	"context"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// GPUs returns the GPU types of the given resources by resource ID, as recorded with their costs from start to now. Costs that are older
// than the retention of the daily history are not considered. The result omits resources without costs, and endpoints on pools with several
// GPU types.
func (m *Money) GPUs(ctx context.Context, org string, ids []string, start time.Time) (map[string]string, error) {
	history, now := m.Loop.History, m.deps.Now()
	to := ledger.Daily.Start(now).AddDate(0, 0, 1)
	from := ledger.Daily.Start(start)
	if kept := to.AddDate(0, 0, 1-history.Retention.Daily); from.Before(kept) {
		from = kept
	}
	if !from.Before(to) {
		return nil, nil
	}
	if at, err := history.Store.RollupProgress(ctx, org); err != nil || at.Until.IsZero() {
		return nil, err // its costs were never counted
	}
	rows, err := history.Query(ctx, org, &ledger.Query{
		From: from, To: to, Bucket: ledger.Total, By: []ledger.Dimension{ledger.ByResource},
		Where: map[ledger.Dimension][]string{ledger.ByResource: ids},
	}, now)
	if err != nil {
		return nil, fmt.Errorf("read GPU costs: %w", err)
	}
	prices, err := m.deps.Catalog.Snapshot(ctx, org)
	if err != nil {
		return nil, fmt.Errorf("read the price list: %w", err)
	}
	types := make(map[string]string)
	for _, r := range rows {
		switch members := prices.PoolMembers(r.Item.GPU); len(members) {
		case 0: // a type, not a pool
			types[r.Item.Resource] = r.Item.GPU
		case 1:
			types[r.Item.Resource] = members[0]
		}
	}
	return types, nil
}
