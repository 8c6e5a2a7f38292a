package translate

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

// Deps are the live things a dialect works with.
type Deps struct {
	// Now tells the time; nil means time.Now.
	Now func() time.Time
	// Sleep waits for d or until ctx ends, whose error it returns; nil means a
	// timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Store remembers facts that v2 forgets; nil remembers nothing, and every answer
	// still works, less exactly.
	Store Store
	// LedgerTypes returns the GPU types under which the ledger counted the costs of pods and endpoints since a time, by id. Resources that the
	// ledger does not know are left out. Nil means that there is no ledger.
	LedgerTypes func(ctx context.Context, account string, ids []string, since time.Time) (map[string]string, error)
	// CatalogAllowed is the shared cache of catalog answers; nil means one of its own
	// for each dialect.
	Catalog *Catalog
	// Logger hears of failures of the store, which callers never see; nil
	// means silence.
	Logger *slog.Logger
}

// WithDefaults fills in the defaults that nil stands for.
func (d Deps) WithDefaults() Deps {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Sleep == nil {
		d.Sleep = sleep
	}
	if d.Store == nil {
		d.Store = noStore{}
	}
	if d.LedgerTypes == nil {
		d.LedgerTypes = func(context.Context, string, []string, time.Time) (map[string]string, error) { return nil, nil }
	}
	if d.Catalog == nil {
		d.Catalog = NewCatalog()
	}
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	return d
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
