package money

import (
	"math"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Adopted is the response to an operator who assigns a resource to an owner. Was and Owner are the previous and the new owner.
type Adopted struct {
	Resource string `json:"resource"`
	Was      string `json:"was"`
	Owner    string `json:"owner"`
}

// AdoptedTeam is the response to an operator who moves the resources and accrued costs of one team to another.
type AdoptedTeam struct {
	From string `json:"from"`
	To   string `json:"to"`
	Key  string `json:"key,omitempty"`
	// Resources is the number of moved resources. Pending is the number of resources and reservations that were not moved, because calls
	// about them are in progress.
	Resources int `json:"resources"`
	Pending   int `json:"pending"`
	// Day and Month are the moved accrued costs, in USD.
	Day   string `json:"day"`
	Month string `json:"month"`
}

// Ledger is an organisation's ledger as shown by the admin API.
type Ledger struct {
	// Complete is false until a lost ledger has been rebuilt. While it is false, calls that raise cost are refused.
	Complete bool `json:"complete"`
	// Loss is the latest loss of data.
	Loss      *Loss      `json:"loss,omitempty"`
	Scopes    []Balance  `json:"scopes"`
	Resources []Resource `json:"resources"`
	Holds     []Hold     `json:"holds"`
}

// Loss describes which records of a ledger were lost, why, and when the ledger was complete again. Returned is the number of resources
// whose owner was restored. Unowned is the number of resources without an owner.
type Loss struct {
	Lost     string     `json:"lost"`
	Reason   string     `json:"reason"`
	At       time.Time  `json:"at"`
	Rebuilt  *time.Time `json:"rebuilt,omitempty"`
	Returned int        `json:"returned"`
	Unowned  int        `json:"unowned"`
}

// Amounts are the amounts in use: hourly cost in USD, counts, and the cost of runs in USD. Runs is the reserved cost of runs in progress
// and the cost that sandboxes may still accrue.
type Amounts struct {
	PerHour  string `json:"perHour"`
	Runs     string `json:"runs"` // including the remaining cost of sandboxes
	GPUs     int64  `json:"gpus"`
	Pods     int64  `json:"pods"`
	Workers  int64  `json:"workers"`
	VolumeGB int64  `json:"volumeGb"`
	// Sandboxes is the number of sandboxes that have not ended.
	Sandboxes int64 `json:"sandboxes"`
}

// Balance is the account of one scope. Day and Month are the costs accrued in the current day and month, in USD.
type Balance struct {
	Scope     string            `json:"scope"`
	Committed Amounts           `json:"committed"`
	Reserved  Amounts           `json:"reserved"`
	Day       string            `json:"day"`
	Month     string            `json:"month"`
	Limits    map[string]string `json:"limits"`
	Budgets   []Budget          `json:"budgets"`
}

// Budget is one limit of a scope and how much of it is used, in USD or as a count. Left is the amount available to further calls.
type Budget struct {
	Name     string `json:"name"`
	Limit    string `json:"limit"`
	Used     string `json:"used"`
	Reserved string `json:"reserved"`
	Left     string `json:"left"`
	// UsedUp is the day, in the organisation's time zone, when a budget for accrued cost is expected to run out. It is absent if the period
	// ends earlier.
	UsedUp string `json:"usedUp,omitempty"`
	// Over is the largest amount by which runs in progress may exceed the budget. It is absent if they cannot exceed the budget. Only runs
	// that reserve their expected cost instead of their maximum cost can exceed it.
	Over string `json:"over,omitempty"`
}

// NearBudget is a budget of a scope. Percent is the percentage of the limit that is used or reserved.
type NearBudget struct {
	Org     string `json:"org"`
	Scope   string `json:"scope"`
	Percent int    `json:"percent"`
	Budget
}

// ForScope returns b as a budget of the given scope, with its share rounded to a whole percentage.
func (b Budget) ForScope(org, scope string) NearBudget {
	return NearBudget{org, scope, int(math.Round(100 * b.Share())), b}
}

// nearShare is the used and reserved share of a budget from which the budget is at risk.
const nearShare = 0.8

// AtRisk reports whether the budget is expected to run out before its period ends, or at least 80 % of the limit is used or reserved.
func (b *Budget) AtRisk() bool { return b.UsedUp != "" || b.Share() >= nearShare }

// Share returns the used and reserved fraction of the limit. It is 1 if the limit is 0.
func (b *Budget) Share() float64 {
	if limit := adminapi.Decimal(b.Limit); limit > 0 {
		return (adminapi.Decimal(b.Used) + adminapi.Decimal(b.Reserved)) / limit
	}
	return 1
}

// Resource is a resource in the ledger. Without a team and a key it belongs to the organisation.
type Resource struct {
	ID    string    `json:"id"`
	Kind  string    `json:"kind"`
	Name  string    `json:"name,omitempty"`
	Team  string    `json:"team,omitempty"`
	Key   string    `json:"key,omitempty"`
	Since time.Time `json:"since"`
	Takes Amounts   `json:"takes"`
	GPU   string    `json:"gpu,omitempty"`
	// DataCenter is the actual location if known, and otherwise the requested one.
	DataCenter string            `json:"dc,omitempty"`
	Decision   string            `json:"decision,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// Hold is a reservation. Its state is in_flight while its call is in progress, and open while the outcome of the call is unknown. Until is
// the time until which the gateway searches for the resource of an open reservation.
type Hold struct {
	ID       string    `json:"id"`
	State    string    `json:"state"`
	Kind     string    `json:"kind"`
	Resource string    `json:"resource,omitempty"`
	Name     string    `json:"name,omitempty"`
	Team     string    `json:"team,omitempty"`
	Key      string    `json:"key,omitempty"`
	Gateway  string    `json:"gateway,omitempty"`
	Since    time.Time `json:"since"`
	// Age is in seconds, by the ledger's clock.
	Age       float64    `json:"age"`
	Open      bool       `json:"open"`
	Until     *time.Time `json:"until,omitempty"`
	Reserves  Amounts    `json:"reserves"`
	Operation string     `json:"operation"`
	Decision  string     `json:"decision"`
}

// Reconciled is the result of a reconciliation. Adopted, Removed and Changed are the numbers of resources that were created, removed or
// changed outside the gateway. Found, Released and Open are the numbers of reservations whose call was executed, was not executed, or has
// an unknown outcome.
type Reconciled struct {
	Resources int  `json:"resources"`
	Adopted   int  `json:"adopted"`
	Removed   int  `json:"removed"`
	Changed   int  `json:"changed"`
	Found     int  `json:"found"`
	Released  int  `json:"released"`
	Open      int  `json:"open"`
	Rebuilt   bool `json:"rebuilt"`
}
