package operator_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// books are the ledgers of tests: acme's wants a look, globex has no budgets, and that of away cannot be read.
type books struct{ ships }

func (books) Show(_ context.Context, org string) (*money.Ledger, error) {
	switch org {
	case "acme":
		return &money.Ledger{
			Complete: true,
			Scopes: []money.Balance{{Scope: "team ops", Budgets: []money.Budget{
				{Name: "per_hour", Limit: "10", Used: "7", Reserved: "1", Left: "2"},
				{Name: "gpus", Limit: "10", Used: "7", Reserved: "0.9", Left: "2"},
				{Name: "per_day", Limit: "100", Used: "5", UsedUp: "2026-11-26"},
				{Name: "pods", Limit: "0", Used: "0"},
			}}},
			Resources: []money.Resource{{ID: "p1"}, {ID: "p2", Team: "ops"}},
			Holds:     []money.Hold{{ID: "h1", Open: true}, {ID: "h2"}},
		}, nil
	case "away":
		return nil, errors.New("the store is away")
	}
	return nil, adminapi.BadRequestError{Reason: "no budgets"}
}

func (books) Idle(_ context.Context, org string) (*money.IdleList, error) {
	if org != "acme" {
		return nil, adminapi.BadRequestError{Reason: "idle.for is not set"}
	}
	return &money.IdleList{Resources: []money.IdleResource{{ID: "p1", Idle: money.Idle{PerMonth: "315.9"}}, {ID: "p2", Idle: money.Idle{PerMonth: "0.25"}}}}, nil
}

// ships are the gateways of tests.
type ships struct{ err error }

func (s ships) Gateways(context.Context) ([]operator.Instance, error) {
	return []operator.Instance{{Instance: "blue", Version: "v1", Revision: "r1"}}, s.err
}

func (s ships) Refused(_ context.Context, org string) ([]decisions.RefusalCount, error) {
	if org == "acme" {
		return []decisions.RefusalCount{{Org: org, Reason: "limit", Calls: 3, Decision: "d1"}}, s.err
	}
	return nil, nil
}

// Pending returns the requests for approval of tests.
func (books) Pending(_ context.Context, org string) ([]approval.PendingApproval, error) {
	if org == "acme" {
		return []approval.PendingApproval{{Org: org, ID: "ap-1", Key: "ann", Call: "POST /v2/pods"}}, nil
	}
	return nil, nil
}

// tenants are the organisations of tests. Those that are away have stores that do not answer.
func tenants() []adminapi.Tenant {
	return []adminapi.Tenant{{ID: "acme"}, {ID: "globex"}, {ID: "away"}, {ID: "none"}}
}

// source is one of the fakes of tests.
type source interface {
	Gateways(ctx context.Context) ([]operator.Instance, error)
	Pending(ctx context.Context, org string) ([]approval.PendingApproval, error)
	Show(ctx context.Context, org string) (*money.Ledger, error)
	Idle(ctx context.Context, org string) (*money.IdleList, error)
	Refused(ctx context.Context, org string) ([]decisions.RefusalCount, error)
}

func read(t *testing.T, from source, s adminapi.Principal, query string) operator.Overview {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	s.Orgs, s.Now = tenants(), time.Unix(1e9, 0)
	sources := operator.OverviewSources{Gateways: from.Gateways, Pending: from.Pending, Show: from.Show, Idle: from.Idle, Refused: from.Refused}
	o, err := adminapi.Call[operator.Overview](t.Context(), adminapi.NewTable(sources.Endpoints(), adminapi.Direct{}), "GET /admin/overview", s, values, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOverview(t *testing.T) {
	now := time.Unix(1e9, 0).UTC()
	acme := operator.Overview{
		At:        now,
		Gateways:  []operator.Instance{{Instance: "blue", Version: "v1", Revision: "r1"}},
		Approvals: []approval.PendingApproval{{Org: "acme", ID: "ap-1", Key: "ann", Call: "POST /v2/pods"}},
		Budgets: []money.NearBudget{
			{Org: "acme", Scope: "team ops", Percent: 100, Budget: money.Budget{Name: "pods", Limit: "0", Used: "0"}},
			{Org: "acme", Scope: "team ops", Percent: 80, Budget: money.Budget{Name: "per_hour", Limit: "10", Used: "7", Reserved: "1", Left: "2"}},
			{Org: "acme", Scope: "team ops", Percent: 5, Budget: money.Budget{Name: "per_day", Limit: "100", Used: "5", UsedUp: "2026-11-26"}},
		},
		Refused: []decisions.RefusalCount{{Org: "acme", Reason: "limit", Calls: 3, Decision: "d1"}},
		Idle:    []money.IdleCost{{Org: "acme", Resources: 2, PerMonth: "316.15"}},
		Drift:   []operator.Drift{{"acme", true, 1, 1}},
		Unknown: []string{},
	}
	if diff := cmp.Diff(acme, read(t, books{}, adminapi.Principal{}, "org=acme")); diff != "" {
		t.Errorf("of one organisation (-want +got):\n%s", diff)
	}
	all := acme
	all.Unknown, all.Off = []string{"budgets of away: shared store unavailable"}, []string{"idle resources of 3 organisations, without idle.for"}
	if diff := cmp.Diff(all, read(t, books{}, adminapi.Principal{}, "")); diff != "" {
		t.Errorf("of all (-want +got):\n%s", diff)
	}
	away := books{ships{errors.New("away")}}
	if got := read(t, away, adminapi.Principal{}, "org=acme"); len(got.Unknown) != 2 || len(got.Gateways) != 1 || len(got.Refused) != 1 {
		t.Errorf("without the store: %+v, want what this gateway knows, and what it does not", got)
	}
	if got := read(t, away, adminapi.Principal{Org: "acme"}, ""); len(got.Gateways) != 0 || len(got.Drift) != 1 || got.Drift[0].Org != "acme" {
		t.Errorf("who is bound to acme sees %+v", got)
	}
}

// silent is a ledger and a list of gateways whose store never answers.
type silent struct{ books }

func (silent) Show(ctx context.Context, _ string) (*money.Ledger, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Idle(ctx context.Context, _ string) (*money.IdleList, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Gateways(ctx context.Context) ([]operator.Instance, error) {
	<-ctx.Done()
	return []operator.Instance{{Instance: "blue", Fault: "no policies at all", Restart: []string{"listen"}}}, ctx.Err()
}

func (silent) Refused(ctx context.Context, _ string) ([]decisions.RefusalCount, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The parts of an overview are read at once, and share a deadline. None of them is reported as empty.
func TestOverviewHasOneDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		o := read(t, silent{}, adminapi.Principal{}, "")
		if took := time.Since(began); took != operator.PartsTime {
			t.Errorf("it took %s, want %s", took, operator.PartsTime)
		}
		for _, part := range []string{operator.PartGateways, operator.PartBudgets, operator.PartIdle, operator.PartRefusals} {
			if o.Knows(part) {
				t.Errorf("%s are known", part)
			}
		}
	})
}
