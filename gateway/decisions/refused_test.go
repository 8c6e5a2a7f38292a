package decisions

import (
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

func TestRefusedFor(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]telemetry.Event{
		"policy gpu_count": {Refusal: string(problem.Forbidden), Denied: []string{"gpu_count", "disk"}},
		"limit":            {Refusal: string(problem.RateLimited)},
		"budget":           {Refusal: string(problem.BudgetExceeded)},
		"forbidden":        {Refusal: string(problem.Forbidden)},
		"invalid":          {Refusal: string(problem.Invalid)},
	} {
		if got := refusedFor(&e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}
