package explain

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// What must change for a budget is said of each exceeded budget, and is not the refusal once more.
func TestToPassABudget(t *testing.T) {
	t.Parallel()
	ends := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	x := &Report{Verdict: Refused, Status: http.StatusPaymentRequired, Refusal: "budget_exceeded", Detail: "the budget is exceeded", Calls: []Call{{Budgets: []BudgetCheck{
		{Scope: "team research", Budget: "per_month", Limit: "100", After: "112.5", Exceeded: true, RenewsAt: &ends},
		{Scope: "organisation", Budget: "gpus", Limit: "8", After: "10", Exceeded: true},
		{Scope: "key ann", Budget: "pods", Limit: "8", After: "1"},
	}}}}
	want := []string{
		"free 12.50 USD in the budget team research per_month: stop resources that are not needed, or have an operator raise the limit of 100 USD; the period ends at 2026-12-01 00:00 UTC",
		"free 2 in the budget organisation gpus: stop resources that are not needed, or have an operator raise the limit of 8",
	}
	if got := toPass(x); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
