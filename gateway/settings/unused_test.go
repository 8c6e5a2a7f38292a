package settings

import (
	"testing"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Stops and the horizon work with every budget that limits accrued cost.
func TestSettingsOfAccruedCostAreUsed(t *testing.T) {
	t.Parallel()
	one := catalog.Money(1)
	for name, b := range map[string]ledger.Budget{
		"per_day": {PerDay: one}, "per_week": {PerWeek: one}, "per_month": {PerMonth: one}, "per_quarter": {PerQuarter: one}, "total": {Total: one},
	} {
		o := &Org{Budget: b, Over: ledger.OverBudgetAction{Stop: "newest"}, Horizon: ledger.DefaultHorizon}
		if warnings := o.unused(&Config{}, func(path string) bool { return path == "horizon" }); len(warnings) > 0 {
			t.Errorf("%s: %v", name, warnings)
		}
	}
	o := &Org{Budget: ledger.Budget{VolumeGB: 1}, Over: ledger.OverBudgetAction{Stop: "newest"}}
	if warnings := o.unused(&Config{}, func(path string) bool { return path == "horizon" }); len(warnings) != 2 {
		t.Errorf("without a budget of cost: %v", warnings)
	}
}
