package ui

import (
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// Counts and sizes are not labelled as money.
func TestBudgetBarLabels(t *testing.T) {
	for name, want := range map[string]string{
		"per_day":   "$3.00 used and $1.00 reserved of $8.00",
		"gpus":      "3 used and 1 reserved of 8",
		"volume_gb": "3 GB used and 1 GB reserved of 8 GB",
	} {
		b := money.BudgetRow{}
		b.Name, b.Used, b.Reserved, b.Limit = name, "3", "1", "8"
		if got := budgetBar(&b).Label; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
