package money

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// BudgetList is one page of the budgets of an organisation.
type BudgetList struct {
	At      time.Time   `json:"at"`
	Budgets []BudgetRow `json:"budgets"`
	// All is the number of matching budgets.
	All int `json:"all"`
	// Next is the cursor of the next page. It is absent on the last page.
	Next string `json:"next,omitempty"`
}

// BudgetRow is a budget with its forecast.
type BudgetRow struct {
	Scope string `json:"scope"`
	// Kind is organisation, team or key. ID is the ID of the team or key.
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	// Team is the team of a key, or the team itself.
	Team string `json:"team,omitempty"`
	// Percent is the used and reserved share of the limit, rounded.
	Percent int `json:"percent"`
	Budget
	// UsedUpAt is the estimated time on the day UsedUp.
	UsedUpAt *time.Time `json:"usedUpAt,omitempty"`
	// Forecast is the expected cost at the end of the budget's period. It is absent if the budget has no forecast.
	Forecast *Estimate `json:"forecast,omitempty"`
	// Ends is the end of the current period.
	Ends *time.Time `json:"ends,omitempty"`
	// Free is the amount that remains at the end of the period if the running resources and the calls in flight run until then, in USD. It
	// is negative if they exceed the limit, and absent if the budget has no period.
	Free string `json:"free,omitempty"`
	// PerHour is the current hourly cost of the scope, in USD.
	PerHour string `json:"perHour"`
}

// id returns a unique identifier of the budget within the organisation.
func (b *BudgetRow) id() string { return b.Scope + " " + b.Name }

// listedBudgets holds the parameters of a list of budgets.
type listedBudgets struct {
	adminapi.OrgParam
	adminapi.Paging

	Team   adminapi.Team `query:"team" doc:"only budgets of this team and its keys"`
	Key    string        `query:"key" doc:"only budgets of this key"`
	Search string        `query:"search" max:"200" doc:"only budgets of teams and keys whose id contains this text"`
	AtRisk bool          `query:"at_risk" doc:"return only budgets that are at least 80 % used or reserved, or that are expected to run out before their period ends"`
	Sort   string        `query:"sort" oneof:"exhaustion,percent,scope" default:"exhaustion" doc:"sort order: exhaustion (by exhaustion date), percent (by the percentage used or reserved) or scope (by organisation, team and key)"`
}

func (p *listedBudgets) selects(b *BudgetRow) bool {
	return (p.Team == "" || string(p.Team) == b.Team) && (p.Key == "" || b.Kind == "key" && b.ID == p.Key) && (!p.AtRisk || b.AtRisk()) &&
		(p.Search == "" || strings.Contains(strings.ToLower(b.ID), strings.ToLower(p.Search)))
}

// choose returns the matching budgets in the requested order.
func (p *listedBudgets) choose(list []BudgetRow) []BudgetRow {
	list = slices.DeleteFunc(list, func(b BudgetRow) bool { return !p.selects(&b) })
	slices.SortStableFunc(list, func(a, b BudgetRow) int { return p.compare(&a, &b) })
	return list
}

// compare compares two budgets in the requested order.
func (p *listedBudgets) compare(a, b *BudgetRow) int {
	share := cmp.Compare(b.Share(), a.Share())
	switch p.Sort {
	case "percent":
		return cmp.Or(share, cmp.Compare(a.id(), b.id()))
	case "scope": // kinds in the order of their scopes
		return cmp.Or(cmp.Compare(strings.Index("organisation team key", a.Kind), strings.Index("organisation team key", b.Kind)),
			cmp.Compare(a.ID, b.ID))
	}
	return cmp.Or(cmp.Compare(a.usedUp(), b.usedUp()), share, cmp.Compare(a.id(), b.id()))
}

// usedUp returns a sort key for the day on which the budget runs out: exhausted budgets sort first, and budgets that will not run out sort
// last.
func (b *BudgetRow) usedUp() string {
	if b.Share() >= 1 {
		return ""
	}
	return cmp.Or(b.UsedUp, "9999")
}

func (m *Money) budgetRow() adminapi.Endpoint {
	return adminapi.Endpoint{
		Pattern: "GET /admin/spend/budgets", Summary: "Budgets with forecast and exhaustion date", AuditsReads: true,
		Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(m.budgets),
		Commands: []adminapi.Command{{
			Use: "spend budgets ORG", Short: "List budgets with used, reserved, remaining, forecast, and exhaustion date",
			Example: "tollgate spend budgets acme --at-risk\ntollgate spend budgets acme --sort scope",
		}},
	}
}

// budgets returns one page of an organisation's budgets.
func (m *Money) budgets(ctx context.Context, _ adminapi.Principal, p listedBudgets) (*BudgetList, error) {
	at, list, err := m.AllBudgets(ctx, string(p.Org))
	if err != nil {
		return nil, err
	}
	list = p.choose(list)
	out := &BudgetList{At: at, All: len(list)}
	out.Budgets, out.Next, err = adminapi.Page(list, &p.Paging, (*BudgetRow).id)
	return out, err
}

// AllBudgets returns all budgets of an organisation, grouped by scope. at is the time of the ledger's state. It returns the same errors as
// [Money.Show].
func (m *Money) AllBudgets(ctx context.Context, org string) (at time.Time, list []BudgetRow, err error) {
	o, err := m.check(org)
	if err != nil {
		return at, nil, err
	}
	state, err := m.Ledger.Shared(ctx, org)
	if err != nil {
		return at, nil, err
	}
	outlooks, err := m.Loop.History.Outlooks(ctx, org, callers.LedgerPlan(o), &state)
	if err != nil {
		return at, nil, err
	}
	teams := teamsOfKeys(o, &state)
	for i := range outlooks {
		list = append(list, budgetRows(&outlooks[i], teams)...)
	}
	return state.Now.UTC(), list, nil
}

// budgetRows returns the budgets of one scope.
func budgetRows(o *ledger.Outlook, teams map[string]string) []BudgetRow {
	of := BudgetRow{Scope: o.Scope.String(), Kind: "organisation", ID: o.Scope.ID, PerHour: usd(o.Burn)}
	switch o.Scope.Kind {
	case ledger.KindTeam:
		of.Kind, of.Team = "team", o.Scope.ID
	case ledger.KindKey:
		of.Kind, of.Team = "key", teams[o.Scope.ID]
	case ledger.KindOrg:
	}
	list := make([]BudgetRow, len(o.Ceilings))
	for i, b := range budgetsOf(o.Ceilings) {
		full := &o.Ceilings[i]
		list[i] = of
		list[i].Budget, list[i].Percent = b, b.ForScope("", "").Percent
		list[i].UsedUpAt = timeOf(full.ExhaustedAt)
		if !full.Ends.IsZero() {
			e := full.Expected
			list[i].Forecast, list[i].Ends = &Estimate{Low: usd(e.Low), Expected: usd(e.Expected), High: usd(e.High)}, timeOf(full.Ends)
			list[i].Free = usd(full.Free)
		}
	}
	return list
}

// teamsOfKeys maps each known key to its team. It includes configured keys, keys created at run time, and keys that own a resource.
func teamsOfKeys(o *settings.Org, state *ledger.State) map[string]string {
	teams := make(map[string]string)
	for _, r := range state.Resources {
		teams[r.Owner.Key] = r.Owner.Team
	}
	for k := range o.AllKeys() {
		teams[k.ID] = k.Team
	}
	return teams
}
