package decisions

import (
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/problem"
)

func TestRefusedFor(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]explain.Summary{
		"policy gpu_count": {Refusal: string(problem.Forbidden), Spoken: explain.Spoken{Denied: []string{"gpu_count", "disk"}}},
		"limit":            {Refusal: string(problem.RateLimited)},
		"budget":           {Refusal: string(problem.BudgetExceeded)},
		"forbidden":        {Refusal: string(problem.Forbidden)},
		"invalid":          {Refusal: string(problem.Invalid)},
	} {
		if got := refusedFor(&s); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
