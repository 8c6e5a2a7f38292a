package jobs

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/isolate"
)

// TryFor is Try in a child of r with another time limit.
func TryFor(ctx context.Context, r *isolate.Runner, t *Trial, limit time.Duration) (*policies.TrialResult, error) {
	return t.isolated(ctx, r, limit)
}
