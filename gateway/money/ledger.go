package money

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// check returns the configuration of an organisation, or an error if no budgets are set.
func (m *Money) check(org string) (*settings.Org, error) {
	o := m.org(org)
	if o == nil {
		return nil, adminapi.ErrUnknownOrg
	}
	if !callers.HasLedger(o) {
		return nil, adminapi.BadRequestError{Reason: "no budgets are set for organisation " + org + ", so its spending is not counted"}
	}
	return o, nil
}

// Show returns the ledger of an organisation. It returns adminapi.ErrUnknownOrg if the organisation is not configured, and an
// adminapi.BadRequestError if it has no budgets.
func (m *Money) Show(ctx context.Context, org string) (*Ledger, error) {
	out, state, err := m.show(ctx, org)
	if err != nil {
		return nil, err
	}
	outlooks, err := m.Loop.History.Outlooks(ctx, org, callers.LedgerPlan(m.org(org)), state)
	if err != nil {
		return nil, err
	}
	for i, b := range state.Balances {
		row := Balance{
			Scope: b.Scope.String(), Committed: amounts(b.Committed), Reserved: amounts(b.Reserved),
			Day: catalog.Money(b.Day).String(), Month: catalog.Money(b.Month).String(), Limits: map[string]string{},
			Budgets: budgetsOf(outlooks[i].Ceilings),
		}
		for _, b := range row.Budgets {
			row.Limits[b.Name] = b.Limit
		}
		out.Scopes = append(out.Scopes, row)
	}
	return out, nil
}

// Unscoped is like Show but leaves Scopes empty. It is cheaper, because it does not read the history of costs.
func (m *Money) Unscoped(ctx context.Context, org string) (*Ledger, error) {
	out, _, err := m.show(ctx, org)
	return out, err
}

// show returns a ledger without its scopes, and its state.
func (m *Money) show(ctx context.Context, org string) (*Ledger, *ledger.State, error) {
	if _, err := m.check(org); err != nil {
		return nil, nil, err
	}
	state, err := m.Ledger.Shared(ctx, org)
	loss, lossErr := ledger.LastLoss(ctx, m.Notices, org)
	if err := errors.Join(err, lossErr); err != nil {
		return nil, nil, err
	}
	out := &Ledger{Complete: state.Complete, Loss: lossOf(loss), Scopes: []Balance{}, Resources: []Resource{}, Holds: []Hold{}}
	for _, r := range state.Resources {
		out.Resources = append(out.Resources, Resource{
			ID: r.ID, Kind: r.Kind, Name: r.Metadata.Name, Team: r.Owner.Team, Key: r.Owner.Key, Since: r.Since.UTC(),
			Takes: amounts(r.Amounts), Decision: r.Metadata.Decision,
			GPU: r.Metadata.GPU, DataCenter: r.Metadata.DataCenter, Labels: r.Metadata.Labels.Map(),
		})
	}
	for i := range state.Holds {
		out.Holds = append(out.Holds, holdRow(&state.Holds[i], state.Now))
	}
	return out, &state, nil
}

// budgetsOf converts the usage of ceilings for display.
func budgetsOf(ceilings []ledger.CeilingUsage) []Budget {
	rows := make([]Budget, len(ceilings))
	for i, c := range ceilings {
		text := func(n int64) string { return ledger.AmountText(c.Index, n) }
		rows[i] = Budget{
			Name: ledger.CeilingName(c.Index), Limit: text(c.Limit), Used: text(c.Used),
			Reserved: text(c.Reserved), Left: text(c.Left()),
		}
		if over := c.MaxOverrun(); over > 0 {
			rows[i].Over = text(over)
		}
		if !c.ExhaustedAt.IsZero() {
			rows[i].UsedUp = c.ExhaustedAt.Format(time.DateOnly)
		}
	}
	return rows
}

// reconcile compares the ledger with the platform.
func (m *Money) reconcile(ctx context.Context, _ adminapi.Principal, p adminapi.OrgParam) (*Reconciled, error) {
	org := string(p.Org)
	if _, err := m.check(org); err != nil {
		return nil, err
	}
	r, err := m.Loop.Pass(ctx, org)
	if err != nil {
		m.deps.Logger.WarnContext(ctx, "cannot reconcile the ledger with the platform", "error", err.Error())
		if !errors.Is(err, ledger.ErrUnavailable) {
			err = adminapi.RefusedError{Status: http.StatusBadGateway, Reason: "cannot reconcile with the platform: " + err.Error()}
		}
		return nil, err
	}
	return &Reconciled{
		Resources: r.Resources, Adopted: r.Adopted, Removed: r.Removed, Changed: r.Changed,
		Found: r.HoldsCommitted, Released: r.HoldsReleased, Open: r.Open, Rebuilt: r.Rebuilt,
	}, nil
}

// adopting holds the parameters for assigning a resource to a new owner.
type adopting struct {
	adminapi.OrgParam

	ID   string        `query:"id,required" doc:"id of the resource"`
	Team adminapi.Team `query:"team" doc:"id of the team"`
	Key  string        `query:"key" doc:"id of the key. The resource is assigned to the key and its team"`
}

// adopt assigns a resource to a team, or to a key and its team.
func (m *Money) adopt(ctx context.Context, _ adminapi.Principal, p adopting) (*Adopted, error) {
	org, resource := string(p.Org), p.ID
	o, err := m.check(org)
	if err != nil {
		return nil, err
	}
	to, err := ownerOf(o, string(p.Team), p.Key)
	switch {
	case err != nil:
		return nil, err
	case to == (ledger.Owner{}):
		return nil, adminapi.BadRequestError{Reason: "one of the parameters 'team' and 'key' is required"}
	}
	was, err := m.Loop.Assign(ctx, org, resource, to)
	if errors.Is(err, ledger.ErrNoResource) {
		return nil, adminapi.BadRequestError{Reason: fmt.Sprintf("organisation %s has no resource with the ID %q that counts against budgets", org, resource)}
	}
	if err != nil {
		return nil, err
	}
	m.deps.Logger.InfoContext(ctx, "owner of a resource changed", "org", org, "resource", resource, "was", was.String(), "owner", to.String())
	return &Adopted{Resource: resource, Was: was.String(), Owner: to.String()}, nil
}

func amounts(a ledger.Amounts) Amounts {
	return Amounts{
		PerHour: catalog.Money(a[ledger.Burn]).String(), Runs: catalog.Money(a[ledger.Cost]).String(), GPUs: a[ledger.GPUs],
		Pods: a[ledger.Pods], Workers: a[ledger.Workers], VolumeGB: a[ledger.VolumeGB], Sandboxes: a[ledger.Sandboxes],
	}
}
