package explain

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/idempotency"
)

// repeats is a filter.Repeats that remembers nothing: every request is the first.
type repeats struct{ *DryRun }

// Get implements filter.Repeats.
func (r repeats) Get(context.Context, string, string) (idempotency.Entry, error) {
	return idempotency.Entry{Now: r.Now()}, nil
}

// Look implements filter.Repeats.
func (r repeats) Look(ctx context.Context, org, id string) (idempotency.Entry, error) {
	return r.Get(ctx, org, id)
}

// Swap implements filter.Repeats.
func (r repeats) Swap(context.Context, string, string, idempotency.Entry, *idempotency.Record, time.Duration) (idempotency.Entry, bool, error) {
	return idempotency.Entry{Now: r.Now()}, true, nil
}

// Key implements filter.Repeats.
func (repeats) Key(string, string) string { return "" }

// Mark implements filter.Repeats.
func (repeats) Mark(string, string, string) (key, value string) { return "", "" }

// Claim implements filter.Repeats.
func (repeats) Claim(context.Context, string, string, string) (bool, error) { return true, nil }

// Note implements filter.Repeats.
func (repeats) Note(string, string, string) {}
