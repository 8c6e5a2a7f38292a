package translate

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

// Deps are the dependencies of a dialect.
type Deps struct {
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
	// Sleep waits for d and returns nil, or returns ctx.Err() if ctx ends first. A nil Sleep means a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Store keeps facts that v2 does not return. A nil Store keeps nothing; responses then remain valid but are less exact.
	Store Store
	// StoreIsReadOnly makes writes to the Store have no effect.
	StoreIsReadOnly bool
	// LedgerTypes returns the GPU types of pods and endpoints by resource id, as the ledger has recorded them for costs since the given time.
	// It omits resources unknown to the ledger. Nil means that the gateway runs without a ledger.
	LedgerTypes func(ctx context.Context, account string, ids []string, since time.Time) (map[string]string, error)
	// Catalog is the shared cache of catalog responses. If it is nil, each dialect has its own.
	Catalog *Catalog
	// Logger logs failures of the store, which callers do not see. Nil discards them.
	Logger *slog.Logger
}

// WithDefaults returns d with defaults for the fields that are nil.
func (d Deps) WithDefaults() Deps {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Sleep == nil {
		d.Sleep = sleep
	}
	if d.LedgerTypes == nil {
		d.LedgerTypes = func(context.Context, string, []string, time.Time) (map[string]string, error) { return nil, nil }
	}
	if d.Catalog == nil {
		d.Catalog = newCatalog()
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
