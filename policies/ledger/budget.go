package ledger

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Budget limits the amounts of a scope. A zero member means no limit.
type Budget struct {
	PerHour    catalog.Money `yaml:"per_hour" doc:"maximum hourly cost, including reservations" unit:"USD" zero:"omit"`
	PerDay     catalog.Money `yaml:"per_day" doc:"maximum cost accrued in a calendar day" unit:"USD" zero:"omit"`
	PerWeek    catalog.Money `yaml:"per_week" doc:"maximum cost accrued from Monday to Sunday (ISO 8601)" unit:"USD" zero:"omit"`
	PerMonth   catalog.Money `yaml:"per_month" doc:"maximum cost accrued in a calendar month" unit:"USD" zero:"omit"`
	PerQuarter catalog.Money `yaml:"per_quarter" doc:"maximum cost accrued in a calendar quarter" unit:"USD" zero:"omit"`
	Total      catalog.Money `yaml:"total" doc:"maximum cost over all time, such as a grant" unit:"USD" zero:"omit"`
	GPUs       int64         `yaml:"gpus" doc:"maximum GPUs in running pods, clusters and endpoints (with their maximum number of workers)" unit:"GPUs" zero:"omit"`
	Pods       int64         `yaml:"pods" doc:"maximum pods, running or stopped" unit:"pods" zero:"omit"`
	Workers    int64         `yaml:"workers" doc:"maximum workers of all endpoints" unit:"workers" zero:"omit"`
	VolumeGB   int64         `yaml:"volume_gb" doc:"maximum total size of network volumes" unit:"GB" zero:"omit"`
	Sandboxes  int64         `yaml:"sandboxes" doc:"maximum sandboxes that have not ended" unit:"sandboxes" zero:"omit"`
	// Approvable is not a limit.
	Approvable bool `yaml:"approvable" doc:"allow operators to approve calls that the budget refuses; see docs/approvals.md"`
}

// Ceilings of a Budget, which are the indexes of its limits in the order of its fields. Budget.Limits and CeilingName use the same order.
// The ceilings from PerDay to InTotal limit accrued costs.
const (
	PerHour = iota
	PerDay  // followed by the ceilings of the other periods, in the order of periods
	PerWeek
	PerMonth
	PerQuarter
	InTotal
	CeilingGPUs
	CeilingPods
	CeilingWorkers
	CeilingVolumeGB
	CeilingSandboxes
	Ceilings
)

// CeilingName returns the configuration name of a ceiling.
func CeilingName(i int) string {
	return [Ceilings]string{
		"per_hour", "per_day", "per_week", "per_month", "per_quarter", "total", "gpus", "pods",
		"workers", "volume_gb", "sandboxes",
	}[i]
}

// IsMoney reports whether a ceiling is in US dollars.
func IsMoney(ceiling int) bool { return ceiling <= InTotal }

// Accrues reports whether a ceiling limits the cost accrued in a period or in total.
func Accrues(ceiling int) bool { return ceiling >= PerDay && ceiling <= InTotal }

// AmountText formats an amount of a ceiling, as dollars or as a count.
func AmountText(ceiling int, n int64) string {
	if IsMoney(ceiling) {
		return catalog.Money(n).String()
	}
	return strconv.FormatInt(n, 10)
}

// Limits returns the limits in the order of the ceilings. A limit of 0 means no limit. Monetary limits are in micro-dollars.
func (b Budget) Limits() [Ceilings]int64 {
	return [Ceilings]int64{
		int64(b.PerHour), int64(b.PerDay), int64(b.PerWeek), int64(b.PerMonth), int64(b.PerQuarter), int64(b.Total),
		b.GPUs, b.Pods, b.Workers, b.VolumeGB, b.Sandboxes,
	}
}

// Validate returns an error for each ceiling that is out of range, with its path.
func (b Budget) Validate() error {
	var errs fault.Found
	errs.If(b == (Budget{Approvable: true}), "approvable", "has no effect because the budget does not set a limit")
	for i, limit := range b.Limits() {
		switch {
		case limit < 0:
			errs = append(errs, fault.Errorf(CeilingName(i), "must not be negative"))
		case i == PerHour && limit > MaxBurn:
			errs = append(errs, fault.Errorf(CeilingName(i), "must be at most %s", catalog.Money(MaxBurn)))
		case !IsMoney(i) && limit > MaxCount:
			errs = append(errs, fault.Errorf(CeilingName(i), "must be at most %d", MaxCount))
		}
	}
	return errors.Join(errs...)
}

// DefaultHorizon is the horizon of period budgets if the organisation configures none.
const DefaultHorizon = Horizon(time.Hour)

// UntilPeriodEnd is the Horizon that extends to the end of the period. Budgets without a period use DefaultHorizon instead.
const UntilPeriodEnd Horizon = -1

// Horizon is the assumed remaining duration of running resources when a call is checked against a period budget. With 24 hours, for
// example, per_month admits a call only if the new resource and all running resources fit within the limit for another 24 hours. The zero
// value is DefaultHorizon, one hour.
type Horizon time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Horizon) UnmarshalText(text []byte) error {
	if string(text) == "period" {
		*h = UntilPeriodEnd
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return errors.New(`must be "period" or a positive duration such as "1h"`)
	}
	*h = Horizon(d)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (h Horizon) MarshalText() ([]byte, error) {
	if h == 0 {
		return nil, nil
	}
	if h == UntilPeriodEnd {
		return []byte("period"), nil
	}
	return []byte(time.Duration(h).String()), nil
}

// Duration returns the horizon as a duration. It must not be called for UntilPeriodEnd.
func (h Horizon) Duration() time.Duration { return time.Duration(cmp.Or(h, DefaultHorizon)) }

// ms returns the horizon in milliseconds, at a time within a period that ends at end.
func (h Horizon) ms(now, end int64) int64 {
	if h == UntilPeriodEnd && end < forever {
		return max(0, end-now)
	}
	if h == UntilPeriodEnd {
		h = DefaultHorizon
	}
	return max(0, min(h.Duration().Milliseconds(), end-now))
}

// beyond returns the part of the horizon after the end of the period, in milliseconds. UntilPeriodEnd includes at least the next hour.
func (h Horizon) beyond(now, end int64) int64 {
	if h == UntilPeriodEnd {
		h = DefaultHorizon
	}
	return max(0, h.Duration().Milliseconds()-max(0, end-now))
}

// Plan holds the budgets of one organisation. It is immutable.
type Plan struct {
	Org Budget
	// Teams and Keys are indexed by ID. An entry of Keys whose ID ends with a colon applies to every key whose ID begins with it.
	Teams, Keys map[string]Budget
	// RuntimeKey returns the budget of a key that was created at run time, and false for other keys. It is nil if no keys are created at run
	// time.
	RuntimeKey func(id string) (Budget, bool)
	// Endpoints selects which workers of endpoints are counted.
	Endpoints Counting
	Runs      Runs
	Horizon   Horizon
	// Thresholds are the used shares of a budget, in percent, that trigger an alert.
	Thresholds []int64
	// Unusual defines which hours are unusually expensive and trigger an alert.
	Unusual Unusual
	// OrgAction and TeamActions are the actions taken when a budget is exceeded.
	OrgAction   OverBudgetAction
	TeamActions map[string]OverBudgetAction
	// Idle defines idle resources and the action on them.
	Idle Idle
	// Moves are the transfers for renamed teams and for keys that were reassigned to another team.
	Moves []Move
}

// Limited reports whether any budget has a limit. It ignores keys created at run time.
func (p *Plan) Limited() bool {
	limited := p.Org != Budget{}
	for _, m := range []map[string]Budget{p.Teams, p.Keys} {
		for _, b := range m {
			limited = limited || b != Budget{}
		}
	}
	return limited
}

// Budget returns the budget of a scope.
func (p *Plan) Budget(s Scope) Budget {
	switch s.Kind {
	case KindKey:
		if b, ok := p.Keys[s.ID]; ok {
			return b
		}
		if p.RuntimeKey != nil {
			if b, ok := p.RuntimeKey(s.ID); ok {
				return b
			}
		}
		issuer, _, _ := strings.Cut(s.ID, ":")
		return p.Keys[issuer+":"]
	case KindTeam:
		return p.Teams[s.ID]
	case KindOrg:
	}
	return p.Org
}

// Action returns the action to take when a budget of the scope is exceeded.
func (p *Plan) Action(s Scope) OverBudgetAction {
	switch s.Kind {
	case KindTeam:
		return p.TeamActions[s.ID]
	case KindOrg:
		return p.OrgAction
	case KindKey:
	}
	return OverBudgetAction{}
}

// HasAccrualBudget reports whether a budget for accrued cost applies to an owner's resources.
func (p *Plan) HasAccrualBudget(o Owner) bool { return p.applies(o, Accrues) }

// HasCostBudget reports whether a monetary budget applies to an owner's resources.
func (p *Plan) HasCostBudget(o Owner) bool { return p.applies(o, IsMoney) }

// applies reports whether the owner's resources count against a ceiling that match accepts.
func (p *Plan) applies(o Owner, match func(ceiling int) bool) bool {
	for _, s := range o.Scopes() {
		for i, limit := range p.Budget(s).Limits() {
			if limit > 0 && match(i) {
				return true
			}
		}
	}
	return false
}
