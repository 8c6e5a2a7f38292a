package admin

import "strconv"

// NearBudget is a budget that is taken for the most part, or that is expected to be used up before its period ends.
type NearBudget struct {
	Org     string `json:"org"`
	Scope   string `json:"scope"`
	Percent int    `json:"percent"`
	Budget
}

// Near returns the budget of a scope with the share of it that is taken.
func (b Budget) Near(org, scope string) NearBudget {
	n := NearBudget{org, scope, 100, b}
	if limit := decimal(b.Limit); limit > 0 {
		n.Percent = int(100 * (decimal(b.Used) + decimal(b.Reserved)) / limit)
	}
	return n
}

// IdleMoney is the cost of an organisation's idle resources, in USD a month.
type IdleMoney struct {
	Org       string `json:"org"`
	Resources int    `json:"resources"`
	PerMonth  string `json:"perMonth"`
}

// decimal reads an amount of ours.
func decimal(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64) // it was written by us
	return n
}
