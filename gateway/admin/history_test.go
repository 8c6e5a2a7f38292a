package admin_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// books are the ledgers of tests: acme's wants a look, globex has no budgets, and that of away cannot be read.
type books struct{ admin.Spend }

func (books) Show(_ context.Context, org string) (*admin.Ledger, error) {
	switch org {
	case "acme":
		return &admin.Ledger{
			Complete: true,
			Scopes: []admin.Balance{{Scope: "team ops", Budgets: []admin.Budget{
				{Name: "per_hour", Limit: "10", Used: "7", Reserved: "1", Left: "2"},
				{Name: "gpus", Limit: "10", Used: "7", Reserved: "0.9", Left: "2"},
				{Name: "per_day", Limit: "100", Used: "5", UsedUp: "2026-11-26"},
				{Name: "pods", Limit: "0", Used: "0"},
			}}},
			Resources: []admin.Resource{{ID: "p1"}, {ID: "p2", Team: "ops"}},
			Holds:     []admin.Hold{{ID: "h1", Open: true}, {ID: "h2"}},
		}, nil
	case "away":
		return nil, errors.New("the store is away")
	}
	return nil, row.BadRequestError{Reason: "no budgets"}
}

func (books) Idle(_ context.Context, org string) (*admin.IdleList, error) {
	if org != "acme" {
		return nil, row.BadRequestError{Reason: "idle.for is not set"}
	}
	return &admin.IdleList{Resources: []admin.IdleResource{{ID: "p1", Idle: admin.Idle{PerMonth: "315.9"}}, {ID: "p2", Idle: admin.Idle{PerMonth: "0.25"}}}}, nil
}

func (books) History(_ context.Context, _ string, q admin.CostQuery) (*admin.Costs, error) {
	if slices.Contains(q.Where["team"], "dissolved") {
		return &admin.Costs{Rows: []admin.Cost{{Team: "dissolved", USD: "1"}}}, nil
	}
	return &admin.Costs{}, nil
}

// A team that is no more has a history. One that never was is a mistake.
func TestHistoryOfTeams(t *testing.T) {
	d := deps("")
	d.Spend = books{}
	for team, want := range map[string]int{"research": 200, "dissolved": 200, "finance": 404, "dissolved&team=ml": 404} {
		for _, path := range []string{"history", "export"} {
			if w := get(d, "/admin/spend/"+path+"?org=acme&team="+team, ""); w.Code != want {
				t.Errorf("%s of %s: %d %s, want %d", path, team, w.Code, w.Body, want)
			}
		}
	}
}
