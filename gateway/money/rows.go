package money

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Rows shows and reconciles the ledger for the admin listener.
type Rows struct{ m *Money }

// Rows returns the operators' questions about the ledger.
func (m *Money) Rows() Rows { return Rows{m} }

// check refuses organisations without budgets.
func (l Rows) check(org string) (*settings.Org, error) {
	o := l.m.org(org)
	if o == nil {
		return nil, row.ErrNoOrg
	}
	if !tenants.Budgeted(o) {
		return nil, row.BadRequestError{Reason: "organisation " + org + " has no budgets: nothing is counted"}
	}
	return o, nil
}

// Show implements admin.Spend.
func (l Rows) Show(ctx context.Context, org string) (*admin.Ledger, error) {
	o, err := l.check(org)
	if err != nil {
		return nil, err
	}
	state, err := l.m.Ledger.Store.Show(ctx, org)
	if err != nil {
		return nil, err
	}
	loss, err := spend.LastLoss(ctx, l.m.Notices, org)
	if err != nil {
		return nil, err
	}
	out := &admin.Ledger{Complete: state.Complete, Loss: lossOf(loss), Scopes: []admin.Balance{}, Resources: []admin.Resource{}, Holds: []admin.Hold{}}
	outlooks, err := l.m.Books.History.Outlooks(ctx, org, tenants.Plan(o), &state)
	if err != nil {
		return nil, err
	}
	for i, b := range state.Balances {
		row := admin.Balance{
			Scope: b.Scope.String(), Committed: amounts(b.Committed), Reserved: amounts(b.Reserved),
			Day: catalog.Money(b.Day).String(), Month: catalog.Money(b.Month).String(), Limits: map[string]string{}, Budgets: budgetsOf(outlooks[i].Ceilings),
		}
		for _, b := range row.Budgets {
			row.Limits[b.Name] = b.Limit
		}
		out.Scopes = append(out.Scopes, row)
	}
	for _, r := range state.Resources {
		out.Resources = append(out.Resources, admin.Resource{
			ID: r.ID, Kind: r.Kind, Name: r.About.Name, Team: r.Owner.Team, Key: r.Owner.Key, Since: r.Since.UTC(), Takes: amounts(r.Amounts), Decision: r.About.Decision,
			GPU: r.About.GPU, DataCenter: r.About.DataCenter, Labels: r.About.Labels.Map(),
		})
	}
	for i := range state.Holds {
		out.Holds = append(out.Holds, holdRow(&state.Holds[i], state.Now))
	}
	return out, nil
}

// budgetsOf says how full ceilings are.
func budgetsOf(ceilings []spend.Fullness) []admin.Budget {
	rows := make([]admin.Budget, len(ceilings))
	for i, c := range ceilings {
		text := func(n int64) string { return spend.AmountText(c.Index, n) }
		rows[i] = admin.Budget{Name: spend.CeilingName(c.Index), Limit: text(c.Limit), Used: text(c.Used), Reserved: text(c.Reserved), Left: text(c.Left())}
		if over := c.Over(); over > 0 {
			rows[i].Over = text(over)
		}
		if !c.UsedUp.IsZero() {
			rows[i].UsedUp = c.UsedUp.Format(time.DateOnly)
		}
	}
	return rows
}

// Reconcile implements admin.Spend.
func (l Rows) Reconcile(ctx context.Context, org string) (*admin.Reconciled, error) {
	if _, err := l.check(org); err != nil {
		return nil, err
	}
	r, err := l.m.Books.Pass(ctx, org)
	if err != nil {
		return nil, err
	}
	return &admin.Reconciled{
		Resources: r.Resources, Adopted: r.Adopted, Removed: r.Removed, Changed: r.Changed,
		Found: r.Found, Released: r.Released, Open: r.Open, Rebuilt: r.Rebuilt,
	}, nil
}

// Adopt implements admin.Spend.
func (l Rows) Adopt(ctx context.Context, org, resource, team, key string) (*admin.Adopted, error) {
	o, err := l.check(org)
	if err != nil {
		return nil, err
	}
	to, err := ownerOf(o, team, key)
	switch {
	case err != nil:
		return nil, err
	case resource == "" || to == (spend.Owner{}):
		return nil, row.BadRequestError{Reason: "name a resource, and a team or a key"}
	}
	was, err := l.m.Books.Assign(ctx, org, resource, to)
	if errors.Is(err, spend.ErrNoResource) {
		return nil, row.BadRequestError{Reason: fmt.Sprintf("organisation %s has nothing with the id %q that has an owner", org, resource)}
	}
	if err != nil {
		return nil, err
	}
	l.m.deps.Logger.InfoContext(ctx, "a resource has another owner", "org", org, "resource", resource, "was", was.String(), "owner", to.String())
	return &admin.Adopted{Resource: resource, Was: was.String(), Owner: to.String()}, nil
}

func amounts(a spend.Amounts) admin.Amounts {
	return admin.Amounts{
		PerHour: catalog.Money(a[spend.Burn]).String(), Runs: catalog.Money(a[spend.Cost]).String(), GPUs: a[spend.GPUs], Pods: a[spend.Pods], Workers: a[spend.Workers], VolumeGB: a[spend.VolumeGB],
	}
}
