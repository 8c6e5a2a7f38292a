package operator

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Fits is what a caller can still rent within the remaining budgets that apply to it.
type Fits struct {
	At time.Time `json:"at"`
	// Left is the smallest remaining budget for accrued cost, in USD, and Budget names it; both are absent without such a budget.
	Left   string `json:"left,omitempty"`
	Budget string `json:"budget,omitempty"`
	// PerHour is the cost per hour that running resources may still add, in USD, absent without such a budget.
	PerHour string `json:"perHour,omitempty"`
	// GPUs are the types with a known price, the longest time first.
	GPUs []GPUFit `json:"gpus"`
}

// GPUFit is the time and the number of GPUs of one type that fit.
type GPUFit struct {
	GPU  string `json:"gpu"`
	Name string `json:"name,omitempty"`
	// Cloud is the cheaper one of the clouds that offer the type.
	Cloud string `json:"cloud"`
	// PerHour is the price of one GPU, in USD.
	PerHour string `json:"perHour"`
	// Hours is the time that one GPU can run, absent without a budget for accrued cost.
	Hours string `json:"hours,omitempty"`
	// AtOnce is the number of GPUs that can run at the same time within budgets per hour and of GPUs, absent without such a budget.
	AtOnce *int64 `json:"atOnce,omitempty"`
}

// fitting names a caller.
type fitting struct {
	adminapi.OrgParam

	Team adminapi.Team `query:"team" doc:"within the budgets of this team too; absent is those of the organisation alone"`
	Key  string        `query:"key" doc:"within the budgets of this key and its team too"`
}

// Fitting divides remaining budgets by prices. The zero value describes its row.
type Fitting struct {
	// Budgets returns the budgets of an organisation, and Prices the price list.
	Budgets func(ctx context.Context, org string) (at time.Time, list []money.BudgetRow, err error)
	Prices  func(ctx context.Context, org string) (*catalog.Snapshot, error)
}

// Endpoints returns the admin API endpoint that says what fits into a budget.
func (from Fitting) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{{
		Pattern: "GET /admin/spend/fits", Summary: "How many hours of which GPU fit into the remaining budget", AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(from.fits),
		Commands: []adminapi.Command{{
			Use: "spend fits ORG", Short: "Show how many hours of which GPU fit into the remaining budget", Example: "tollgate spend fits acme --team research",
			Long: `Divides what is left of the tightest budget by the price of each GPU type. Resources
that run already use up the same budget: the longer they run, the less fits.`,
		}},
	}}
}

func (from Fitting) fits(ctx context.Context, _ adminapi.Principal, p fitting) (*Fits, error) {
	at, list, err := from.Budgets(ctx, string(p.Org))
	if err != nil {
		return nil, err
	}
	prices, err := from.Prices(ctx, string(p.Org))
	if err != nil {
		return nil, adminapi.RefusedError{Status: http.StatusServiceUnavailable, Reason: "the price list of the platform is not available"}
	}
	out := fit(p.budgets(list), prices.GPUs())
	out.At = at
	return out, nil
}

// budgets returns the budgets that apply to the caller.
func (p *fitting) budgets(list []money.BudgetRow) []money.BudgetRow {
	team := string(p.Team)
	for i := range list {
		if b := &list[i]; b.Kind == "key" && b.ID == p.Key {
			team = cmp.Or(team, b.Team)
		}
	}
	return slices.DeleteFunc(list, func(b money.BudgetRow) bool {
		return b.Kind == "team" && b.ID != team || b.Kind == "key" && (p.Key == "" || b.ID != p.Key)
	})
}

// fit divides what is left of budgets by prices.
func fit(budgets []money.BudgetRow, gpus []catalog.GPU) *Fits {
	left, perHour, count := math.Inf(1), math.Inf(1), math.Inf(1)
	out := &Fits{GPUs: []GPUFit{}}
	for i := range budgets {
		b := &budgets[i]
		n := adminapi.Decimal(b.Left)
		switch b.Name {
		case ledger.CeilingName(ledger.PerHour):
			if n < perHour {
				perHour, out.PerHour = n, b.Left
			}
		case ledger.CeilingName(ledger.MaxGPUs):
			count = min(count, n)
		case ledger.CeilingName(ledger.PerDay), ledger.CeilingName(ledger.PerWeek), ledger.CeilingName(ledger.PerMonth), ledger.CeilingName(ledger.PerQuarter), ledger.CeilingName(ledger.InTotal):
			if n < left {
				left, out.Left, out.Budget = n, b.Left, b.Scope+", "+b.Name
			}
		}
	}
	for i := range gpus {
		price, cloud := cheapest(&gpus[i])
		if price <= 0 {
			continue
		}
		usd := adminapi.Decimal(price.String())
		f := GPUFit{GPU: gpus[i].ID, Name: gpus[i].Name, Cloud: cloud, PerHour: price.String()}
		if !math.IsInf(left, 1) {
			f.Hours = strconv.FormatFloat(math.Floor(left/usd*10)/10, 'f', 1, 64)
		}
		if most := min(math.Floor(perHour/usd), count); !math.IsInf(most, 1) {
			n := int64(most)
			f.AtOnce = &n
		}
		out.GPUs = append(out.GPUs, f)
	}
	slices.SortStableFunc(out.GPUs, func(a, b GPUFit) int { return cmp.Compare(adminapi.Decimal(a.PerHour), adminapi.Decimal(b.PerHour)) })
	return out
}

// cheapest returns the lower price of a GPU type, 0 for an unknown one, and its cloud.
func cheapest(g *catalog.GPU) (price catalog.Money, cloud string) {
	for _, of := range []struct {
		name  string
		offer catalog.Offer
	}{{"secure", g.Secure}, {"community", g.Community}} {
		if known := of.offer.Offered && of.offer.Price.Known; known && (price == 0 || of.offer.Price.PerHour < price) {
			price, cloud = of.offer.Price.PerHour, of.name
		}
	}
	return price, cloud
}
