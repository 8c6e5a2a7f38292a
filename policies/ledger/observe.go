package ledger

import (
	"context"
	"sync"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// maxObserved bounds how many sandboxes a gateway remembers to have observed.
const maxObserved = 10_000

// observed are the rates of sandboxes that this gateway has told the ledger, in micro-dollars per hour: 0 of one that has ended.
type observed struct {
	mu    sync.Mutex // guards rates
	rates map[string]int64
}

// Observe enters what the platform has said about a sandbox in a response to a call: its rate, which it states once the sandbox runs,
// or that it has ended. The reconciler would find the same later. It does nothing for a resource that is not in the ledger, or has ended there.
// A rate above the ceiling that its create reserved is logged; 0 is no ceiling.
func (l *Ledger) Observe(ctx context.Context, org string, f *PlatformResource, ceiling int64) error {
	key, rate := org+"/"+f.ID, f.Amounts[Bounded]
	if l.observed.has(key, rate) {
		return nil
	}
	made, err := Adjust(ctx, l.Store, org, &Adjustment{
		Kind: string(operation.KindSandbox), Resource: f.ID, Version: LiveSandbox, Amounts: f.Amounts, From: f.from(),
	})
	if made && ceiling > 0 && rate > ceiling {
		l.Logger.WarnContext(ctx, "a sandbox has a higher rate than catalog.sandbox_rate", "org", org, "resource", f.ID,
			"micro_usd_per_hour", rate, "ceiling", ceiling)
	}
	if made || rate == 0 {
		l.observed.add(key, rate)
	}
	return err
}

func (o *observed) has(key string, rate int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, has := o.rates[key]
	return has && known == rate
}

func (o *observed) add(key string, rate int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rates == nil || len(o.rates) >= maxObserved {
		o.rates = make(map[string]int64)
	}
	o.rates[key] = rate
}
