package explain

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Outcomes of requests.
const (
	// OutcomeAllowed is the outcome of requests that the gateway let pass and that ended with a status below 500.
	OutcomeAllowed = "allowed"
	// OutcomeDenied is the outcome of requests that the gateway refused, except for rate limits and failures of the
	// gateway.
	OutcomeDenied = "denied"
	// OutcomeThrottled is the outcome of requests that exceeded a rate limit or were shed
	// under overload.
	OutcomeThrottled = "throttled"
	// OutcomeFailed is the outcome of requests that ended with a status of 500 or above.
	OutcomeFailed = "failed"
)

// OutcomeOf returns the outcome of a request with the given kind of refusal, "" for none, and status.
func OutcomeOf(refusal string, status int) string {
	switch kind := problem.Kind(refusal); {
	case kind == problem.RateLimited || kind == problem.Overloaded:
		return OutcomeThrottled
	case status >= http.StatusInternalServerError:
		return OutcomeFailed
	case kind != "":
		return OutcomeDenied
	}
	return OutcomeAllowed
}

// price returns the maximum hourly cost of the resource that a request asked for, in USD,
// or "".
func (x *Report) price() string {
	for i := range x.Calls {
		if usd := x.Calls[i].USDPerHour; usd != "" {
			return usd
		}
	}
	return ""
}

// milliseconds converts a duration, with a precision of a microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// resourceOf returns the ID of the resource that an exchange created or named, or "".
func resourceOf(ex *filter.Exchange) string {
	id := cmp.Or(ex.Adopted, ex.Params["id"])
	if r := ex.Cost.Reservation; r != nil {
		id = cmp.Or(r.Resource, id)
	}
	for _, c := range ex.Calls {
		id = cmp.Or(id, resourceOf(c))
	}
	return id
}

// BudgetCheck is the state of a budget when a call was checked against it. Amounts are in USD or counts,
// depending on the budget.
type BudgetCheck struct {
	// Scope is the owner of the budget, such as "team research", and Budget its name, such as per_hour.
	Scope  string `json:"scope"`
	Budget string `json:"budget"`
	Limit  string `json:"limit"`
	// Used and Reserved are the amounts before the call, Needs is the amount of the call, and After their sum.
	Used     string `json:"used"`
	Reserved string `json:"reserved"`
	Needs    string `json:"needs"`
	After    string `json:"after"`
	// Hours is the time for which Needs counts the cost of a running resource in a period budget. ByEnd is the cost from now to the end of the
	// period. Both are empty for other budgets and for calls whose whole cost is known.
	Hours float64 `json:"hours,omitempty"`
	ByEnd string  `json:"byEnd,omitempty"`
	// Exceeded reports whether the call needs more than was left.
	Exceeded bool `json:"exceeded,omitempty"`
	// RenewsAt is the end of the budget's current period, or nil for a budget without a
	// period.
	RenewsAt *time.Time `json:"renewsAt,omitempty"`
}

// missing describes what must change for a call to fit into an exceeded budget.
func (b *BudgetCheck) missing() string {
	after, _ := strconv.ParseFloat(b.After, 64) // amounts of a ledger
	limit, _ := strconv.ParseFloat(b.Limit, 64)
	over, unit := strconv.FormatFloat(after-limit, 'f', -1, 64), ""
	switch {
	case strings.HasPrefix(b.Budget, "per_") || b.Budget == "total":
		over, unit = strconv.FormatFloat(max(after-limit, 0.01), 'f', 2, 64), " USD"
	case b.Budget == "volume_gb":
		unit = " GB"
	}
	text := "free " + over + unit + " in the budget " + b.Scope + " " + b.Budget + ": stop resources that are not needed, or have an operator raise the limit of " + b.Limit + unit
	if b.RenewsAt != nil {
		text += "; the period ends at " + b.RenewsAt.UTC().Format("2006-01-02 15:04 MST")
	}
	return text
}

// budgetChecks returns the budgets that a call was checked against, or nil for a call without a reservation.
func budgetChecks(ex *filter.Exchange) (out []BudgetCheck) {
	if ex.Cost.Reservation == nil {
		return nil
	}
	out = make([]BudgetCheck, len(ex.Cost.Reservation.Quote.Ceilings))
	for i, c := range ex.Cost.Reservation.Quote.Ceilings {
		text := func(n int64) string { return ledger.AmountText(c.Index, n) }
		out[i] = BudgetCheck{
			Scope: c.Scope.String(), Budget: ledger.CeilingName(c.Index), Limit: text(c.Limit), Used: text(c.Used), Reserved: text(c.Reserved),
			Needs: text(c.Needs), After: text(c.Sum()), Exceeded: c.Exceeded(),
		}
		if !c.RenewsAt.IsZero() {
			out[i].RenewsAt = &c.RenewsAt
		}
		if d := c.Horizon; d > 0 && c.Needs > 0 && ex.Cost.Reservation.After[ledger.Cost] == 0 {
			out[i].Hours = d.Hours()
			if left := c.RenewsAt.Sub(ex.Event.Start); left > d {
				out[i].ByEnd = text(int64(float64(c.Needs) * left.Hours() / d.Hours()))
			}
		}
	}
	return out
}
