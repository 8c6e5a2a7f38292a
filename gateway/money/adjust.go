package money

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// requestID is the form of the ids of requests.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// maxAdjustment is the largest amount of one adjustment.
const maxAdjustment = 1_000_000 * 1e6 // micro-dollars

// AdjustedAccrual is the outcome of an adjustment: amounts are in USD, of the scope.
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
func (m *Money) adjustRow() row.Row {
	return row.Row{
		Pattern: "POST /admin/spend/adjust", Summary: "Adjust the cost that has accrued in a period", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(m.adjust),
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

// adjust changes the cost that a scope has accrued.
func (m *Money) adjust(ctx context.Context, _ row.Scope, a adjusting) (*AdjustedAccrual, error) {
	org := string(a.Org)
	o, err := m.check(org)
	if err != nil {
		return nil, err
	}
	adjustment := &ledger.AccrualAdjustment{
		ID: cmp.Or(a.RequestID, ulid.Make().String()), Kind: ledger.AccrualKind(a.Kind), Period: ledger.AccrualPeriod(a.Period), Reason: strings.TrimSpace(a.Reason),
	}
	switch {
	case !requestID.MatchString(adjustment.ID):
		return nil, row.Bad("request_id", "expected letters, digits and ._-")
	case adjustment.Reason == "":
		return nil, row.Bad("reason", "is required")
	}
	if adjustment.Owner, err = ownerOf(o, string(a.Team), a.Key); err != nil {
		return nil, err
	}
	if adjustment.Micro, err = adjustedBy(adjustment.Kind, a.Amount); err != nil {
		return nil, err
	}
	out, err := m.Ledger.Store.AdjustAccrual(ctx, org, adjustment)
	if err != nil {
		return nil, err
	}
	scope, long := adjustment.Owner.Scopes()[0].String(), adjustment.Period != ledger.PeriodDay && adjustment.Period != ledger.PeriodMonth
	switch out.Status {
	case ledger.AccrualConflict:
		return nil, row.RefusedError{Status: http.StatusConflict, Reason: fmt.Sprintf("request %s made another adjustment: use another request_id", adjustment.ID)}
	case ledger.AccrualBelowZero:
		had := fmt.Sprintf("%s USD today and %s USD this month", usd(out.Day), usd(out.Month))
		if long {
			had = fmt.Sprintf("%s USD in the %s", usd(out.Accrued.Of(adjustment.Period)), a.Period)
		}
		return nil, row.BadRequestError{Reason: fmt.Sprintf("%s has accrued %s, less than this would subtract: use a smaller amount, or kind reset", scope, had)}
	case ledger.AccrualClosed:
		return nil, fmt.Errorf("%w: the ledger is being rebuilt", ledger.ErrUnavailable)
	case ledger.AccrualApplied, ledger.AccrualRepeated:
	}
	made := &AdjustedAccrual{
		RequestID: adjustment.ID, Scope: scope, DayChange: usd(out.Change.Day), MonthChange: usd(out.Change.Month), Day: usd(out.Day), Month: usd(out.Month),
		Repeated: out.Status == ledger.AccrualRepeated,
	}
	if p := adjustment.Period; long {
		made.Period, made.Change, made.Accrued = a.Period, usd(out.Change.Of(p)), usd(out.Accrued.Of(p))
	}
	return made, nil
}

// ownerOf returns the owner that a team and a key name, each of which may be "". Its error names what is not configured.
func ownerOf(o *settings.Org, team, key string) (ledger.Owner, error) {
	if k := o.Key(key); k != nil {
		if team != "" && team != k.Team {
			return ledger.Owner{}, row.BadRequestError{Reason: fmt.Sprintf("key %q is of team %q", key, k.Team)}
		}
		return ledger.Owner{Team: k.Team, Key: key}, nil
	}
	switch {
	case key != "":
		return ledger.Owner{}, row.BadRequestError{Reason: fmt.Sprintf("no key %q is configured", key)}
	case team != "" && !slices.ContainsFunc(o.Teams, func(t settings.Team) bool { return t.ID == team }):
		return ledger.Owner{}, row.BadRequestError{Reason: fmt.Sprintf("no team %q is configured", team)}
	}
	return ledger.Owner{Team: team}, nil
}

// adjustedBy reads the amount of an adjustment, in micro-dollars.
func adjustedBy(kind ledger.AccrualKind, text string) (int64, error) {
	if kind == ledger.Reset {
		if text != "" {
			return 0, row.Bad("amount", "a reset has none")
		}
		return 0, nil
	}
	digits, negative := strings.CutPrefix(text, "-")
	amount, err := catalog.ParseMoney(digits)
	switch {
	case err != nil || amount == 0 || amount > maxAdjustment:
		return 0, row.Bad("amount", "expected an amount of USD such as 17.85, at most %s", catalog.Money(maxAdjustment))
	case negative && kind == ledger.Credit:
		return 0, row.Bad("amount", "a credit is positive: it gives this amount back")
	case negative:
		amount = -amount
	}
	return int64(amount), nil
}
