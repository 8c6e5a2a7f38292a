package ui

import (
	"math"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// outlook shows whether and when a budget runs out, and when it resets.
func outlook(v *visit, b *money.BudgetRow) cell {
	switch resets := resetText(v, b); {
	case isHourly(b):
		return textCell("Limit on the burn rate", "does not reset")
	case b.Left == "":
		return textCell("Unknown", resets...)
	case b.Share() >= 1:
		return cell{Status: &status{levelBad, "Used up"}, Sub: strings.Join(resets, "")}
	case b.UsedUp != "":
		return cell{Status: &status{levelBad, "Runs out " + runsOut(v, b)}, Sub: strings.Join(append(overText(v, b), resets...), ", ")}
	case b.Ends == nil:
		return textCell("–")
	case b.AtRisk():
		return cell{Status: &status{levelWarn, "Near limit"}, Sub: strings.Join(resets, "")}
	default:
		return cell{Status: &status{levelGood, "Within budget"}, Sub: strings.Join(resets, "")}
	}
}

// resetText says when a budget resets. It is empty for a budget without a period.
func resetText(v *visit, b *money.BudgetRow) []string {
	if b.Ends == nil {
		return nil
	}
	return []string{"resets " + b.Ends.In(v.zone()).Format("2 Jan")}
}

// forecastBasis says what the forecast of a budget assumes, because the remaining amount divided by the burn rate can give another date.
func forecastBasis(v *visit, b *money.BudgetRow) string {
	if b.Forecast != nil && b.Ends != nil {
		rest, steady := decimal(b.Forecast.Expected)-decimal(b.Used), decimal(b.PerHour)*b.Ends.Sub(v.now()).Hours()
		if math.Abs(rest-steady) < rest/100 {
			return "at the current burn rate"
		}
	}
	return "at the usual daily cost"
}

// overText names the basis of the forecast, and says by how much the forecast exceeds the limit.
func overText(v *visit, b *money.BudgetRow) []string {
	if b.Forecast == nil || decimal(b.Forecast.Expected) <= decimal(b.Limit) {
		return []string{forecastBasis(v, b)}
	}
	return []string{forecastBasis(v, b), usdOf(decimal(b.Forecast.Expected)-decimal(b.Limit)) + " over"}
}

// runsOut says when a budget runs out, in the zone of the organisation: today with a time, and otherwise a day.
func runsOut(v *visit, b *money.BudgetRow) string {
	day, err := time.ParseInLocation(time.DateOnly, b.UsedUp, v.zone())
	switch {
	case err != nil:
		return b.UsedUp
	case b.UsedUpAt == nil || b.UsedUp != v.Now().Format(time.DateOnly):
		return day.Format("2 Jan")
	}
	return "today, about " + usedUpAt(v, b).Format("15:04")
}

// usedUpAt returns the estimated time when a budget runs out, rounded down to a quarter of an hour that has not passed.
func usedUpAt(v *visit, b *money.BudgetRow) time.Time {
	at := b.UsedUpAt.In(v.zone())
	if quarter := at.Truncate(15 * time.Minute); quarter.After(v.now()) {
		return quarter
	}
	return at
}

// willRunOut returns the budgets that run out before they reset, in the order of the list.
func willRunOut(list []money.BudgetRow) (out []*money.BudgetRow) {
	for i := range list {
		if b := &list[i]; b.UsedUp != "" && b.Ends != nil {
			out = append(out, b)
		}
	}
	return out
}

// overScopes counts the teams and keys that have one of the budgets, such as "1 team will run out".
func overScopes(list []*money.BudgetRow) string {
	counted := make(map[string]bool)
	n := make(map[string]int)
	for _, b := range list {
		if !counted[b.Scope] {
			n[b.Kind]++
		}
		counted[b.Scope] = true
	}
	var parts []string
	for _, kind := range []string{"team", "key"} {
		if n[kind] > 0 {
			parts = append(parts, plural(n[kind], kind))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " will run out"
}

// periods maps the names of budgets to adjectives.
//
//nolint:gochecknoglobals // read only
var periods = map[string]string{
	"per_day": "daily", "per_week": "weekly", "per_month": "monthly", "per_quarter": "quarterly",
}

// budgetItem returns the entry of a budget that runs out before it resets.
func budgetItem(v *visit, b *money.BudgetRow, path string) item {
	x := item{Level: levelBad, Icon: "wallet", Path: path, Title: title(b.Scope) + ": " + periods[b.Name] + " budget runs out " + runsOut(v, b)}
	if b.UsedUpAt != nil {
		x.Text = lastingFully(b.Ends.Sub(usedUpAt(v, b))) + " before it resets"
	}
	if b.Share() >= 1 {
		x.Title, x.Text = title(b.Scope)+": "+periods[b.Name]+" budget is used up", strings.Join(resetText(v, b), "")
	}
	if b.Forecast != nil {
		x.Text += " · forecast " + amount(b.Forecast.Expected) + " of " + amount(b.Limit) + " " + forecastBasis(v, b)
	}
	return x
}
