package ledger

import (
	"context"
	"sync"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// maxObserved is the number of sandboxes whose observed rates a gateway remembers.
const maxObserved = 10_000

// observed holds the sandbox rates that this gateway has reported to the ledger, in micro-dollars per hour; 0 for an ended sandbox.
type observed struct {
	mu    sync.Mutex // guards rates
	rates map[string]int64
}

// Observe records the end or the rate of a sandbox from a response of the platform. The platform reports the rate once the sandbox runs.
// Without Observe, the reconciler finds the same facts later. Observe ignores other kinds of resources, and sandboxes that are missing from
// the ledger or have ended there. It logs a warning if the rate exceeds ceiling, the rate reserved when the sandbox was created; a ceiling
// of 0 disables the warning.
func (l *Ledger) Observe(ctx context.Context, org string, f *PlatformResource, ceiling int64) error {
	key, rate := org+"/"+f.ID, f.Amounts[Bounded]
	if l.observed.has(key, rate) {
		return nil
	}
	made, err := Adjust(ctx, l.Store, org, &Adjustment{
		Kind: string(operation.KindSandbox), Resource: f.ID, Version: LiveSandbox, Amounts: f.Amounts, From: f.from(),
	})
	if made && ceiling > 0 && rate > ceiling {
		l.Logger.WarnContext(ctx, "sandbox rate exceeds catalog.sandbox_rate", "org", org, "resource", f.ID,
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
