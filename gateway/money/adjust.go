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

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// requestID is the form of the ids of requests.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// maxAdjustment is the largest amount of one adjustment.
const maxAdjustment = 1_000_000 * 1e6 // micro-dollars

// Adjust implements admin.Spend.
func (l Rows) Adjust(ctx context.Context, org string, a admin.Adjustment) (*admin.AdjustedAccrual, error) {
	o, err := l.check(org)
	if err != nil {
		return nil, err
	}
	adjustment := &spend.AccrualAdjustment{
		ID: cmp.Or(a.RequestID, ulid.Make().String()), Kind: spend.AccrualKind(a.Kind), Period: spend.AccrualPeriod(a.Period), Reason: strings.TrimSpace(a.Reason),
	}
	switch {
	case !requestID.MatchString(adjustment.ID):
		return nil, row.Bad("request_id", "expected letters, digits and ._-")
	case adjustment.Reason == "":
		return nil, row.Bad("reason", "is required")
	}
	if adjustment.Owner, err = ownerOf(o, a.Team, a.Key); err != nil {
		return nil, err
	}
	if adjustment.Micro, err = adjustedBy(adjustment.Kind, a.Amount); err != nil {
		return nil, err
	}
	out, err := l.m.Ledger.Store.AdjustAccrual(ctx, org, adjustment)
	if err != nil {
		return nil, err
	}
	scope, long := adjustment.Owner.Scopes()[0].String(), adjustment.Period != spend.OfDay && adjustment.Period != spend.OfMonth
	switch out.Status {
	case spend.AccrualConflict:
		return nil, row.RefusedError{Status: http.StatusConflict, Reason: fmt.Sprintf("request %s made another adjustment: use another request_id", adjustment.ID)}
	case spend.AccrualBelowZero:
		had := fmt.Sprintf("%s USD today and %s USD this month", usd(out.Day), usd(out.Month))
		if long {
			had = fmt.Sprintf("%s USD in the %s", usd(out.Accrued.Of(adjustment.Period)), a.Period)
		}
		return nil, row.BadRequestError{Reason: fmt.Sprintf("%s has accrued %s, less than this would subtract: use a smaller amount, or kind reset", scope, had)}
	case spend.AccrualClosed:
		return nil, fmt.Errorf("%w: the ledger is being rebuilt", spend.ErrUnavailable)
	case spend.AccrualMade, spend.AccrualRepeated:
	}
	made := &admin.AdjustedAccrual{
		RequestID: adjustment.ID, Scope: scope, DayChange: usd(out.Change.Day), MonthChange: usd(out.Change.Month), Day: usd(out.Day), Month: usd(out.Month),
		Repeated: out.Status == spend.AccrualRepeated,
	}
	if p := adjustment.Period; long {
		made.Period, made.Change, made.Accrued = a.Period, usd(out.Change.Of(p)), usd(out.Accrued.Of(p))
	}
	return made, nil
}

// ownerOf returns the owner that a team and a key name, each of which may be "". Its error names what is not configured.
func ownerOf(o *settings.Org, team, key string) (spend.Owner, error) {
	if k := o.Key(key); k != nil {
		if team != "" && team != k.Team {
			return spend.Owner{}, row.BadRequestError{Reason: fmt.Sprintf("key %q is of team %q", key, k.Team)}
		}
		return spend.Owner{Team: k.Team, Key: key}, nil
	}
	switch {
	case key != "":
		return spend.Owner{}, row.BadRequestError{Reason: fmt.Sprintf("no key %q is configured", key)}
	case team != "" && !slices.ContainsFunc(o.Teams, func(t settings.Team) bool { return t.ID == team }):
		return spend.Owner{}, row.BadRequestError{Reason: fmt.Sprintf("no team %q is configured", team)}
	}
	return spend.Owner{Team: team}, nil
}

// adjustedBy reads the amount of an adjustment, in micro-dollars.
func adjustedBy(kind spend.AccrualKind, text string) (int64, error) {
	if kind == spend.Reset {
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
	case negative && kind == spend.Credit:
		return 0, row.Bad("amount", "a credit is positive: it gives this amount back")
	case negative:
		amount = -amount
	}
	return int64(amount), nil
}
