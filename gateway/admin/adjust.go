package admin

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Adjustment is a change of the cost that a scope has accrued in a current period.
type Adjustment struct {
	// Kind is credit, correction or reset, and Period day, week, month, quarter or total.
	Kind, Period string
	// Team and Key name the scope; without both, it is the organisation.
	Team, Key string
	// Amount is in USD; "" for a reset.
	Amount, Reason string
	// RequestID names the request; "" is a new one.
	RequestID string
}

// AdjustedAccrual is the outcome of an [Adjustment]: amounts are in USD, of the scope.
type AdjustedAccrual struct {
	RequestID string `json:"requestId"`
	Scope     string `json:"scope"`
	// DayChange and MonthChange were added, Day and Month are the accrued costs afterwards.
	DayChange   string `json:"dayChange"`
	MonthChange string `json:"monthChange"`
	Day         string `json:"day"`
	Month       string `json:"month"`
	// Period is week, quarter or total if the adjustment was one of these: Change was added to it, and Accrued is its accrued
	// cost afterwards.
	Period  string `json:"period,omitempty"`
	Change  string `json:"change,omitempty"`
	Accrued string `json:"accrued,omitempty"`
	// Repeated says that a request with the same id made the adjustment before.
	Repeated bool `json:"repeated"`
}

// adjusting is the parameters of an adjustment.
type adjusting struct {
	row.Scoped

	Kind      string   `query:"kind,required" oneof:"credit,correction,reset" doc:"credit gives an amount back, correction adds an amount or subtracts a negative one, reset subtracts everything that has accrued"`
	Period    string   `query:"period" oneof:"day,week,month,quarter,total" default:"day" doc:"period that has accrued the cost; an adjustment counts in every longer period, too"`
	Amount    string   `query:"amount" max:"40" doc:"amount in USD, such as 17.85; required but for a reset"`
	Team      row.Team `query:"team" doc:"id of the team; without a team and a key, the organisation is adjusted"`
	Key       string   `query:"key" doc:"id of the key; its team and the organisation are adjusted, too"`
	Reason    string   `query:"reason,required" max:"500" doc:"why, for the audit log and the history"`
	RequestID string   `query:"request_id" max:"100" doc:"id of the request, letters, digits and ._-; a repeat with the same id within 90 days changes nothing; by default every request has a new one"`
}

// adjustRow adjusts accrued costs.
func (d Deps) adjustRow() row.Row {
	return row.Row{
		Pattern: "POST /admin/spend/adjust", Summary: "Adjust the cost that has accrued in a period", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.adjust),
		Commands: []row.Command{{
			Use: "spend adjust ORG", Short: "Adjust the cost that an organisation, a team or a key has accrued in a period",
			Long: `Adjusts the cost that has accrued in the current day, week, month or quarter, or in
total, for example after a wrong price in the configuration. An adjustment of a key
counts for its team and the organisation, an adjustment of a team for the
organisation, and an adjustment of a period in every longer period. It is in the history and the export as an item of its own. Where bills
correct the same mistake later, they replace an adjustment of the day.`,
			Example: "tollgate spend adjust acme --kind credit --key ann-laptop --amount 17.85 --reason 'price of k2n5x8 was 100 times too high'\n" +
				"tollgate spend adjust acme --kind correction --team research --period month --amount -3.20 --reason 'invoice 2026-11'\n" +
				"tollgate spend adjust acme --kind reset --team research --reason 'load test' --request-id load-test-7",
		}},
	}
}

func (d Deps) adjust(ctx context.Context, _ row.Scope, p adjusting) (*AdjustedAccrual, error) {
	return d.Spend.Adjust(ctx, string(p.Org), Adjustment{
		Kind: p.Kind, Period: p.Period, Team: string(p.Team), Key: p.Key, Amount: p.Amount, Reason: p.Reason, RequestID: p.RequestID,
	})
}
