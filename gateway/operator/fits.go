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
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Fits describes how many GPUs, and for how long, a caller can still rent within its remaining budgets.
type Fits struct {
	At time.Time `json:"at"`
	// Left is the remaining amount of the tightest budget for accrued cost, in USD, and Budget is the name of that budget. Both are absent if
	// no budget for accrued cost applies.
	Left   string `json:"left,omitempty"`
	Budget string `json:"budget,omitempty"`
	// Free is the amount of that budget that running resources leave over if they run until the reset, in USD. It is negative if they exceed
	// the budget, and absent for a budget in total.
	Free string `json:"free,omitempty"`
	// Resets is the time of the next reset of that budget. It is absent for a budget in total.
	Resets *time.Time `json:"resets,omitempty"`
	// PerHour is the hourly cost that can be added to the running resources, in USD, and HourlyBudget is the name of the budget that limits
	// it. Both are absent if no hourly budget applies.
	PerHour      string `json:"perHour,omitempty"`
	HourlyBudget string `json:"hourlyBudget,omitempty"`
	// GPUs lists the GPU types with a known price that the policy gpu_allow_list permits, the cheapest first.
	GPUs []GPUFit `json:"gpus"`
	// Denied is the number of GPU types with a known price that the policy denies.
	Denied int `json:"denied,omitempty"`
}

// GPUFit describes how many GPUs of one type a caller can run within the budgets, and for how long.
type GPUFit struct {
	GPU  string `json:"gpu"`
	Name string `json:"name,omitempty"`
	// Cloud is the cheapest permitted cloud that offers the type.
	Cloud string `json:"cloud"`
	// PerHour is the price of one GPU, in USD.
	PerHour string `json:"perHour"`
	// Hours is the time that one GPU can run, in addition to the running resources, until the budget is used up or resets. It is 0 if the running
	// resources alone use up the budget before it resets, and absent if no budget for accrued cost applies.
	Hours string `json:"hours,omitempty"`
	// AtOnce is the number of GPUs that can run concurrently within hourly budgets and GPU count budgets. It is absent if no such budget
	// applies.
	AtOnce *int64 `json:"atOnce,omitempty"`
	// UntilReset is the number of GPUs that can run from now until the budget resets without exceeding it, at most AtOnce. It is absent if the
	// budget does not reset.
	UntilReset *int64 `json:"untilReset,omitempty"`
}

// fitting holds the parameters that identify a caller.
type fitting struct {
	adminapi.OrgParam

	Team adminapi.Team `query:"team" doc:"also apply the budgets of this team; default: only the budgets of the organisation"`
	Key  string        `query:"key" doc:"also apply the budgets of this key and its team"`
}

// Fitting computes which GPUs fit into remaining budgets. The endpoint of a zero Fitting can be
// listed but not called.
type Fitting struct {
	*view.Current
	Money  *money.Money
	Prices *catalog.Catalog
}

// Endpoints returns the admin API endpoint that reports which GPUs fit into the budgets of a caller.
func (from Fitting) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{{
		Pattern: "GET /admin/spend/fits", Summary: "Hours of each GPU type that fit into the remaining budget",
		AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(from.fits),
		Commands: []adminapi.Command{{
			Use: "spend fits ORG", Short: "Show how many hours of each GPU type fit into the remaining budget",
			Example: "tollgate spend fits acme --team research",
			Long: `Subtracts the cost of running resources until the reset from each remaining budget, and
divides the smallest result by the price of each GPU type. A budget in total does not
reset: one GPU then shares it with the running resources. GPU types that the policy
gpu_allow_list denies to the organisation or the team are left out; exceptions and entries
for some roles are ignored.`,
		}},
	}}
}

func (from Fitting) fits(ctx context.Context, _ adminapi.Principal, p fitting) (*Fits, error) {
	at, list, err := from.Money.AllBudgets(ctx, string(p.Org))
	if err != nil {
		return nil, err
	}
	prices, err := from.Prices.Snapshot(ctx, string(p.Org))
	if err != nil {
		return nil, adminapi.RefusedError{Status: http.StatusServiceUnavailable, Reason: "the price list of the platform is not available"}
	}
	budgets, team := p.budgets(list)
	gpus, denied := permitted(from.Org(string(p.Org)), team, prices.GPUs())
	out := fit(budgets, gpus, at)
	out.Denied = denied
	return out, nil
}

// permitted returns the GPU types that the enforced entries of gpu_allow_list permit for pods of a team, with the permitted clouds. denied
// is the number of other GPU types with a known price. Exceptions and entries for some roles are ignored.
func permitted(org *settings.Org, team string, gpus []catalog.GPU) (out []catalog.GPU, denied int) {
	for _, g := range gpus {
		before, _ := cheapest(&g)
		for i := range org.Policies.Policies {
			e := &org.Policies.Policies[i]
			if e.Policy != "gpu_allow_list" || e.Mode.OrDefault() != policies.ModeEnforce || !e.AppliesTo(team, nil) {
				continue
			}
			byOffer, _ := e.Params["by_offer"].(map[string]any)
			for name, offer := range map[string]*catalog.Offer{"SECURE": &g.Secure, "COMMUNITY": &g.Community} {
				offer.Offered = offer.Offered && (lists(e.Params["gpus"], g.ID) || lists(byOffer[name], g.ID))
			}
		}
		if after, _ := cheapest(&g); after > 0 {
			out = append(out, g)
		} else if before > 0 {
			denied++
		}
	}
	return out, denied
}

// lists reports whether a parameter is a list that contains text.
func lists(parameter any, text string) bool {
	list, _ := parameter.([]any)
	return slices.Contains(list, any(text))
}

// budgets returns the budgets that apply to the caller, and its team.
func (p *fitting) budgets(list []money.BudgetRow) (out []money.BudgetRow, team string) {
	team = string(p.Team)
	for i := range list {
		if b := &list[i]; b.Kind == "key" && b.ID == p.Key {
			team = cmp.Or(team, b.Team)
		}
	}
	return slices.DeleteFunc(list, func(b money.BudgetRow) bool {
		return b.Kind == "team" && b.ID != team || b.Kind == "key" && (p.Key == "" || b.ID != p.Key)
	}), team
}

// fit divides what the running resources leave over of the budgets at the time now by GPU prices.
func fit(budgets []money.BudgetRow, gpus []catalog.GPU, now time.Time) *Fits {
	left, perHour, count, burn := math.Inf(1), math.Inf(1), math.Inf(1), 0.0
	out := &Fits{At: now, GPUs: []GPUFit{}}
	for i := range budgets {
		b := &budgets[i]
		n := adminapi.Decimal(b.Left)
		switch b.Name {
		case ledger.CeilingName(ledger.PerHour):
			if n < perHour {
				perHour, out.PerHour, out.HourlyBudget = n, b.Left, b.Scope+", "+b.Name
			}
		case ledger.CeilingName(ledger.CeilingGPUs):
			count = min(count, n)
		case ledger.CeilingName(ledger.PerDay), ledger.CeilingName(ledger.PerWeek), ledger.CeilingName(ledger.PerMonth),
			ledger.CeilingName(ledger.PerQuarter), ledger.CeilingName(ledger.InTotal):
			if free := adminapi.Decimal(cmp.Or(b.Free, b.Left)); free < left {
				left, burn = free, adminapi.Decimal(b.PerHour)
				out.Left, out.Budget, out.Resets, out.Free = b.Left, b.Scope+", "+b.Name, b.Ends, b.Free
			}
		}
	}
	left = max(0, left)
	hours := math.Inf(1)
	if out.Resets != nil { // left excludes the cost of running resources until then
		burn, hours = 0, max(0, out.Resets.Sub(now).Hours())
	}
	for i := range gpus {
		price, cloud := cheapest(&gpus[i])
		if price <= 0 {
			continue
		}
		usd := adminapi.Decimal(price.String())
		f := GPUFit{GPU: gpus[i].ID, Name: gpus[i].Name, Cloud: cloud, PerHour: price.String()}
		if !math.IsInf(left, 1) {
			f.Hours = strconv.FormatFloat(math.Floor(min(left/(usd+burn), hours)*10)/10, 'f', 1, 64)
		}
		most := min(perHour/usd, count)
		f.AtOnce = whole(most)
		if out.Resets != nil {
			f.UntilReset = whole(min(most, left/(usd*max(hours, 1))))
		}
		out.GPUs = append(out.GPUs, f)
	}
	slices.SortStableFunc(out.GPUs, func(a, b GPUFit) int { return cmp.Compare(adminapi.Decimal(a.PerHour), adminapi.Decimal(b.PerHour)) })
	return out
}

// whole rounds n down to an integer, except for errors of floating-point division. It returns nil if n is infinite.
func whole(n float64) *int64 {
	if math.IsInf(n, 1) {
		return nil
	}
	return new(int64(n + 1e-9))
}

// cheapest returns the lowest price of a GPU type and the cloud that offers it. The price is 0 if it is unknown.
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
