package money

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// balances exports metrics about the spending and the budgets of organisations and their teams, as read at the start of the latest
// reconciliation pass. It omits keys, because there can be many of them.
type balances struct {
	*Deps

	valid time.Duration

	mu   sync.Mutex // guards last
	last map[string]balance
}

// balance holds the metrics from the latest pass over one ledger.
type balance struct {
	at   time.Time
	rows []balanceRow
}

// balanceRow holds the metrics of an organisation or a team.
type balanceRow struct {
	scope   []attribute.KeyValue
	burn    float64
	budgets []ledger.CeilingUsage
}

func newBalances(d *Deps, valid time.Duration) *balances {
	b, m := &balances{Deps: d, valid: valid, last: make(map[string]balance)}, d.Meter
	burn := telemetry.Must(m.Float64ObservableGauge("tollgate.spend.burn", metric.WithUnit("USD"),
		metric.WithDescription("Cost per hour of running resources.")))
	limit := telemetry.Must(m.Float64ObservableGauge("tollgate.budget.limit", metric.WithDescription("Budget limits, in USD or as a count.")))
	used := telemetry.Must(m.Float64ObservableGauge("tollgate.budget.used", metric.WithDescription("Amount used of each budget limit.")))
	reserved := telemetry.Must(m.Float64ObservableGauge("tollgate.budget.reserved",
		metric.WithDescription("Reserved amount of each budget limit.")))
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, row := range b.current() {
			o.ObserveFloat64(burn, row.burn, metric.WithAttributes(row.scope...))
			for _, f := range row.budgets {
				of := metric.WithAttributes(append(slices.Clip(row.scope), attribute.String("budget", ledger.CeilingName(f.Index)))...)
				o.ObserveFloat64(limit, amountOf(f.Index, f.Limit), of)
				o.ObserveFloat64(used, amountOf(f.Index, f.Used), of)
				o.ObserveFloat64(reserved, amountOf(f.Index, f.Reserved), of)
			}
		}
		return nil
	}, burn, limit, used, reserved))
	return b
}

// store stores the metrics computed from the state that a pass has read.
func (b *balances) store(org string, plan *ledger.Plan, s *ledger.State) {
	found := slices.Clone(s.Balances)
	if !slices.ContainsFunc(found, func(of ledger.Balance) bool { return of.Scope.Kind == ledger.KindOrg }) {
		found = append(found, ledger.Balance{Scope: ledger.Scope{Kind: ledger.KindOrg}}) // no spending yet
	}
	var rows []balanceRow
	for i := range found {
		of := &found[i]
		if of.Scope.Kind == ledger.KindKey {
			continue
		}
		rows = append(rows, balanceRow{
			scope:   []attribute.KeyValue{attribute.String("org", org), attribute.String("team", of.Scope.ID)},
			burn:    float64(of.Committed[ledger.Burn]) / microUSD,
			budgets: plan.CeilingUsage(of, s),
		})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last[org] = balance{b.Now(), rows}
}

// current returns the metrics from passes that are not older than valid.
func (b *balances) current() (rows []balanceRow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for org, found := range b.last {
		if b.Now().Sub(found.at) > b.valid {
			delete(b.last, org)
			continue
		}
		rows = append(rows, found.rows...)
	}
	return rows
}

// microUSD is the number of micro-dollars in a dollar.
const microUSD = 1e6

// amountOf converts an amount of a ceiling to dollars. It returns a count unchanged.
func amountOf(ceiling int, n int64) float64 {
	if ledger.IsMoney(ceiling) {
		return float64(n) / microUSD
	}
	return float64(n)
}
