package money

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Forecasts are the forecasts of an organisation's scopes.
type Forecasts struct {
	At     time.Time  `json:"at"`
	Scopes []Forecast `json:"scopes"`
}

// Forecast is the forecast of one scope, in USD. Today and ThisMonth are the costs accrued so far, Day and Month the estimated totals.
type Forecast struct {
	Scope     string   `json:"scope"`
	PerHour   string   `json:"perHour"`
	Today     string   `json:"today"`
	Day       Estimate `json:"day"`
	ThisMonth string   `json:"thisMonth"`
	Month     Estimate `json:"month"`
	// Days is the number of whole days of history used.
	Days int `json:"days"`
	// Budgets are the budgets for accrued cost.
	Budgets []Budget `json:"budgets"`
}

// Estimate is a forecast in USD, with a likely range derived from the variation between days.
type Estimate struct {
	Low      string `json:"low"`
	Expected string `json:"expected"`
	High     string `json:"high"`
}

// forecasting selects the scopes to forecast.
type forecasting struct {
	adminapi.OrgParam

	Team []adminapi.Team `query:"team" doc:"only these teams"`
	Key  []string        `query:"key" doc:"only these keys"`
}

func (m *Money) forecast(ctx context.Context, _ adminapi.Principal, p forecasting) (*Forecasts, error) {
	forecasts, err := m.Forecast(ctx, string(p.Org))
	if err != nil || len(p.Team)+len(p.Key) == 0 {
		return forecasts, err
	}
	forecasts.Scopes = slices.DeleteFunc(forecasts.Scopes, func(f Forecast) bool {
		kind, id, _ := strings.Cut(f.Scope, " ")
		return (kind != "team" || !slices.Contains(p.Team, adminapi.Team(id))) && (kind != "key" || !slices.Contains(p.Key, id))
	})
	return forecasts, nil
}

// Forecast estimates the costs of an organisation's scopes. It returns the same errors as [Money.Show].
func (m *Money) Forecast(ctx context.Context, org string) (*Forecasts, error) {
	o, err := m.check(org)
	if err != nil {
		return nil, err
	}
	state, err := m.Ledger.Shared(ctx, org)
	if err != nil {
		return nil, err
	}
	outlooks, err := m.Loop.History.Outlooks(ctx, org, callers.LedgerPlan(o), &state)
	if err != nil {
		return nil, err
	}
	out := &Forecasts{At: state.Now.UTC(), Scopes: make([]Forecast, len(outlooks))}
	for i, o := range outlooks {
		periods := slices.DeleteFunc(o.Ceilings, func(c ledger.CeilingUsage) bool { return !ledger.Accrues(c.Index) })
		out.Scopes[i] = Forecast{
			Scope: o.Scope.String(), PerHour: usd(o.Burn), Today: usd(o.Today), ThisMonth: usd(o.ThisMonth), Days: o.Days,
			Budgets: budgetsOf(periods),
			Day:     Estimate{Low: usd(o.Day.Low), Expected: usd(o.Day.Expected), High: usd(o.Day.High)},
			Month:   Estimate{Low: usd(o.Month.Low), Expected: usd(o.Month.Expected), High: usd(o.Month.High)},
		}
	}
	return out, nil
}
