package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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

// ships are the gateways of tests.
type ships struct{ err error }

func (s ships) Gateways(context.Context) ([]admin.Instance, error) {
	return []admin.Instance{{Instance: "blue", Version: "v1", Revision: "r1"}}, s.err
}

func (s ships) Refused(_ context.Context, org string) ([]admin.Refused, error) {
	if org == "acme" {
		return []admin.Refused{{Org: org, Reason: "limit", Calls: 3, Decision: "d1"}}, s.err
	}
	return nil, nil
}

func overview(t *testing.T, d admin.Deps, query, token string) (o admin.Overview) {
	t.Helper()
	w := get(d, "/admin/overview"+query, token)
	if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil || w.Code != http.StatusOK {
		t.Fatalf("overview: %d %s (%v)", w.Code, w.Body, err)
	}
	return o
}

// requests are the requests for approval of tests.
type requests struct{ admin.Approvals }

func (requests) Pending(_ context.Context, org string) ([]admin.PendingApproval, error) {
	if org == "acme" {
		return []admin.PendingApproval{{Org: org, ID: "ap-1", Key: "ann", Call: "POST /v2/pods"}}, nil
	}
	return nil, nil
}

func TestOverview(t *testing.T) {
	d := deps("")
	d.Spend, d.Fleet = books{}, ships{}
	now := time.Unix(1e9, 0).UTC()
	acme := admin.Overview{
		At:        now,
		Gateways:  []admin.Instance{{Instance: "blue", Version: "v1", Revision: "r1"}},
		Approvals: []admin.PendingApproval{{Org: "acme", ID: "ap-1", Key: "ann", Call: "POST /v2/pods"}},
		Budgets: []admin.NearBudget{
			{"acme", "team ops", 100, admin.Budget{Name: "pods", Limit: "0", Used: "0"}},
			{"acme", "team ops", 80, admin.Budget{Name: "per_hour", Limit: "10", Used: "7", Reserved: "1", Left: "2"}},
			{"acme", "team ops", 5, admin.Budget{Name: "per_day", Limit: "100", Used: "5", UsedUp: "2026-11-26"}},
		},
		Refused: []admin.Refused{{"acme", "limit", 3, "d1"}},
		Idle:    []admin.IdleMoney{{"acme", 2, "316.15"}},
		Drift:   []admin.Drift{{"acme", true, 1, 1}},
		Unknown: []string{},
	}
	if diff := cmp.Diff(acme, overview(t, d, "?org=acme", "")); diff != "" {
		t.Errorf("of one organisation (-want +got):\n%s", diff)
	}
	all := acme
	all.Unknown, all.Off = []string{"budgets of away: the shared store does not answer"}, []string{"idle resources of 3 organisations, without idle.for"}
	if diff := cmp.Diff(all, overview(t, d, "", "")); diff != "" {
		t.Errorf("of all (-want +got):\n%s", diff)
	}
	d.Fleet = ships{errors.New("away")}
	if got := overview(t, d, "?org=acme", ""); len(got.Unknown) != 2 || len(got.Gateways) != 1 || len(got.Refused) != 1 {
		t.Errorf("without the store: %+v, want what this gateway knows, and what it does not", got)
	}
	d.Admins = func() *admin.Directory { return directory("", account("ann", "acme", row.Viewer)) }
	if got := overview(t, d, "", "Bearer token-of-ann"); len(got.Gateways) != 0 || len(got.Drift) != 1 || got.Drift[0].Org != "acme" {
		t.Errorf("who is bound to acme sees %+v", got)
	}
}

// silent is a ledger and a list of gateways whose store never answers.
type silent struct{ admin.Spend }

func (silent) Show(ctx context.Context, _ string) (*admin.Ledger, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Idle(ctx context.Context, _ string) (*admin.IdleList, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Gateways(ctx context.Context) ([]admin.Instance, error) {
	<-ctx.Done()
	return []admin.Instance{{Instance: "blue", Fault: "no policies at all", Restart: []string{"listen"}}}, ctx.Err()
}

func (silent) Refused(ctx context.Context, _ string) ([]admin.Refused, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The parts of an overview are read at once, and share a deadline. None of them is reported as empty.
func TestOverviewHasOneDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deps("")
		d.Spend, d.Fleet = silent{}, silent{}
		began := time.Now()
		o := overview(t, d, "", "")
		if took := time.Since(began); took != admin.PartsTime {
			t.Errorf("it took %s, want %s", took, admin.PartsTime)
		}
		for _, part := range []string{admin.PartGateways, admin.PartBudgets, admin.PartIdle, admin.PartRefusals} {
			if o.Knows(part) {
				t.Errorf("%s are known", part)
			}
		}
	})
}
