package gateway

import (
	"context"
	"log/slog"

	"github.com/tollgate-dev/tollgate/gateway/idempotency"
)

// repeats is a filter.Repeats.
type repeats struct {
	*idempotency.Store

	late   func(f func())
	logger *slog.Logger
}

// Note implements filter.Repeats.
func (r repeats) Note(org, resource, call string) {
	r.late(func() {
		ctx, cancel := context.WithTimeout(context.Background(), noteTime) //nolint:forbidigo // the note outlives its request, and depends on nothing of it
		defer cancel()
		if _, err := r.Claim(ctx, org, resource, call); err != nil {
			r.logger.WarnContext(ctx, "a resource is not known to be its caller's: a lost create of its twin may be answered with it", "org", org, "resource", resource, "error", err.Error())
		}
	})
}
