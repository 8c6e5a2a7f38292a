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

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// requestID matches valid request IDs.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// maxAdjustment is the largest amount of one adjustment.
const maxAdjustment = 1_000_000 * 1e6 // micro-dollars

// AdjustedAccrual is the response to an adjustment of the accrued cost of a scope. Amounts are in USD.
type AdjustedAccrual struct {
	RequestID string `json:"requestId"`
	Scope     string `json:"scope"`
	// DayChange and MonthChange are the amounts added to the day and the month. Day and Month are the accrued costs afterwards.
	DayChange   string `json:"dayChange"`
	MonthChange string `json:"monthChange"`
	Day         string `json:"day"`
	Month       string `json:"month"`
	// Period is set only if a week, a quarter or the total was adjusted; adjustments of a day or a month are described by the members above.
	// Change is then the added amount, and Accrued the accrued cost afterwards.
	Period  string `json:"period,omitempty"`
	Change  string `json:"change,omitempty"`
	Accrued string `json:"accrued,omitempty"`
	// Repeated is set if an earlier request with the same ID made the adjustment.
	Repeated bool `json:"repeated"`
}

// adjusting holds the parameters of an adjustment.
type adjusting struct {
	adminapi.OrgParam

	Kind      string        `query:"kind,required" oneof:"credit,correction,reset" doc:"kind of adjustment: credit subtracts the amount, correction adds the amount (which can be negative), reset sets the accrued cost to 0"`
	Period    string        `query:"period" oneof:"day,week,month,quarter,total" default:"day" doc:"period to adjust. Every longer period is adjusted as well"`
	Amount    string        `query:"amount" max:"40" doc:"amount in USD, such as 17.85; required unless the kind is 'reset'"`
	Team      adminapi.Team `query:"team" doc:"id of the team to adjust. If team and key are absent, the organisation is adjusted"`
	Key       string        `query:"key" doc:"id of the key to adjust. The key's team and the organisation are adjusted as well"`
	Reason    string        `query:"reason,required" max:"500" doc:"reason to record in the audit log and the history"`
	RequestID string        `query:"request_id" max:"100" doc:"id of the request, which can contain letters, digits, '.', '_' and '-'. A request whose id was used in the last 90 days changes nothing. Default: a new id"`
}

// adjustRow returns the admin endpoint that adjusts accrued costs.
func (m *Money) adjustRow() adminapi.Endpoint {
	return adminapi.Endpoint{
		Pattern: "POST /admin/spend/adjust", Summary: "Adjust the cost accrued in a period", Role: adminapi.Operator,
		Subject: adminapi.SubjectOrg, Mutates: true, Handler: adminapi.HandlerFor(m.adjust),
		Commands: []adminapi.Command{{
			Use: "spend adjust ORG", Short: "Adjust the accrued cost of an organisation, a team or a key",
			Long: `Adjusts the cost accrued in the current day, week, month or quarter, or in total,
for example after a wrong price in the configuration. Adjusting a key also adjusts
its team and the organisation, adjusting a team also adjusts the organisation, and
adjusting a period also adjusts every longer period. The history and the export show
the adjustment as a separate item. If bills correct the same mistake later, the
correction replaces an adjustment of the day.`,
			Example: "tollgate spend adjust acme --kind credit --key ann-laptop --amount 17.85 --reason 'price of k2n5x8 was 100 times too high'\n" +
				"tollgate spend adjust acme --kind correction --team research --period month --amount -3.20 --reason 'invoice 2026-11'\n" +
				"tollgate spend adjust acme --kind reset --team research --reason 'load test' --request-id load-test-7",
		}},
	}
}

// adjust changes the accrued cost of a scope.
func (m *Money) adjust(ctx context.Context, _ adminapi.Principal, a adjusting) (*AdjustedAccrual, error) {
	org := string(a.Org)
	o, err := m.check(org)
	if err != nil {
		return nil, err
	}
	adjustment := &ledger.AccrualAdjustment{
		ID: cmp.Or(a.RequestID, ulid.Make().String()), Kind: ledger.AccrualKind(a.Kind), Period: ledger.AccrualPeriod(a.Period),
		Reason: strings.TrimSpace(a.Reason),
	}
	switch {
	case !requestID.MatchString(adjustment.ID):
		return nil, adminapi.BadParam("request_id", "must contain only letters, digits, '.', '_' and '-'")
	case adjustment.Reason == "":
		return nil, adminapi.BadParam("reason", "is required")
	}
	if adjustment.Owner, err = ownerOf(o, string(a.Team), a.Key); err != nil {
		return nil, err
	}
	if adjustment.Micro, err = adjustedBy(adjustment.Kind, a.Amount); err != nil {
		return nil, err
	}
	out, err := m.Outbox.AdjustAccrual(ctx, org, adjustment)
	if err != nil {
		return nil, err
	}
	scope, long := adjustment.Owner.Scopes()[0].String(), adjustment.Period != ledger.PeriodDay && adjustment.Period != ledger.PeriodMonth
	switch out.Status {
	case ledger.AccrualConflict:
		return nil, adminapi.RefusedError{
			Status: http.StatusConflict,
			Reason: fmt.Sprintf("request_id %s was used for a different adjustment: send another request_id", adjustment.ID),
		}
	case ledger.AccrualBelowZero:
		had := fmt.Sprintf("%s USD today and %s USD this month", usd(out.Day), usd(out.Month))
		if long {
			had = fmt.Sprintf("%s USD in the %s", usd(out.Accrued.Of(adjustment.Period)), a.Period)
		}
		return nil, adminapi.BadRequestError{Reason: fmt.Sprintf("%s has accrued %s: use a smaller amount, or the kind 'reset'", scope, had)}
	case ledger.AccrualClosed:
		return nil, fmt.Errorf("%w: the ledger is being rebuilt, try again", ledger.ErrUnavailable)
	case ledger.AccrualApplied, ledger.AccrualRepeated:
	}
	made := &AdjustedAccrual{
		RequestID: adjustment.ID, Scope: scope, DayChange: usd(out.Change.Day), MonthChange: usd(out.Change.Month), Day: usd(out.Day),
		Month:    usd(out.Month),
		Repeated: out.Status == ledger.AccrualRepeated,
	}
	if p := adjustment.Period; long {
		made.Period, made.Change, made.Accrued = a.Period, usd(out.Change.Of(p)), usd(out.Accrued.Of(p))
	}
	return made, nil
}

// ownerOf returns the owner named by a team and a key; both may be "". It returns an error if one of them is not configured.
func ownerOf(o *settings.Org, team, key string) (ledger.Owner, error) {
	if k := o.Key(key); k != nil {
		if team != "" && team != k.Team {
			return ledger.Owner{}, adminapi.BadRequestError{Reason: fmt.Sprintf("key %q belongs to team %q", key, k.Team)}
		}
		return ledger.Owner{Team: k.Team, Key: key}, nil
	}
	switch {
	case key != "":
		return ledger.Owner{}, adminapi.BadRequestError{Reason: fmt.Sprintf("key %q is not configured", key)}
	case team != "" && !slices.ContainsFunc(o.Teams, func(t settings.Team) bool { return t.ID == team }):
		return ledger.Owner{}, adminapi.BadRequestError{Reason: fmt.Sprintf("team %q is not configured", team)}
	}
	return ledger.Owner{Team: team}, nil
}

// adjustedBy parses the amount of an adjustment and returns it in micro-dollars.
func adjustedBy(kind ledger.AccrualKind, text string) (int64, error) {
	if kind == ledger.Reset {
		if text != "" {
			return 0, adminapi.BadParam("amount", "must be absent if kind is 'reset'")
		}
		return 0, nil
	}
	digits, negative := strings.CutPrefix(text, "-")
	amount, err := catalog.ParseMoney(digits)
	switch {
	case err != nil || amount == 0 || amount > maxAdjustment:
		return 0, adminapi.BadParam("amount", "must be an amount in USD such as 17.85, at most %s", catalog.Money(maxAdjustment))
	case negative && kind == ledger.Credit:
		return 0, adminapi.BadParam("amount", "must be positive if kind is 'credit'")
	case negative:
		amount = -amount
	}
	return int64(amount), nil
}
