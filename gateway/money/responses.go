package money

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Adopted is the result of assigning a resource to an owner by hand. Was and Owner are the previous and the new owner.
type Adopted struct {
	Resource string `json:"resource"`
	Was      string `json:"was"`
	Owner    string `json:"owner"`
}

// AdoptedTeam is the result of moving the resources and accrued costs of one team to another.
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
	// Complete is false while the ledger must be rebuilt. Calls that raise cost are refused until then.
	Complete bool `json:"complete"`
	// Loss is the latest loss of data.
	Loss      *Loss      `json:"loss,omitempty"`
	Scopes    []Balance  `json:"scopes"`
	Resources []Resource `json:"resources"`
	Holds     []Hold     `json:"holds"`
}

// Loss describes which records of a ledger were lost, why, and when the ledger was complete again. Returned is the number of resources
// whose owner was restored, and Unowned the number without an owner.
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

// Balance is the account of one scope. Day and Month are in USD.
type Balance struct {
	Scope     string            `json:"scope"`
	Committed Amounts           `json:"committed"`
	Reserved  Amounts           `json:"reserved"`
	Day       string            `json:"day"`
	Month     string            `json:"month"`
	Limits    map[string]string `json:"limits"`
	Budgets   []Budget          `json:"budgets"`
}

// Budget is the usage of one limit of a scope, in USD or as a count. Left is the amount that calls may still use.
type Budget struct {
	Name     string `json:"name"`
	Limit    string `json:"limit"`
	Used     string `json:"used"`
	Reserved string `json:"reserved"`
	Left     string `json:"left"`
	// UsedUp is the day, in the organisation's time zone, when a budget for accrued cost is expected to run out. It is absent if the period
	// ends earlier.
	UsedUp string `json:"usedUp,omitempty"`
	// Over is the largest amount by which runs in progress may exceed the budget. It is absent if they cannot exceed it: only runs that
	// reserve their expected cost can.
	Over string `json:"over,omitempty"`
}

// NearBudget is a budget of a scope with the percentage that is already used.
type NearBudget struct {
	Org     string `json:"org"`
	Scope   string `json:"scope"`
	Percent int    `json:"percent"`
	Budget
}

// ForScope returns b as a budget of the given scope. A limit of 0 counts as fully used (100 %).
func (b Budget) ForScope(org, scope string) NearBudget {
	n := NearBudget{org, scope, 100, b}
	if limit := adminapi.Decimal(b.Limit); limit > 0 {
		n.Percent = int(100 * (adminapi.Decimal(b.Used) + adminapi.Decimal(b.Reserved)) / limit)
	}
	return n
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

// Reconciled is the result of a reconciliation: the resources created, removed or changed outside the gateway, and the reservations whose
// call was executed, was not executed, or still has an unknown outcome.
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
