package money

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Adopted says whose a resource was and is.
type Adopted struct {
	Resource string `json:"resource"`
	Was      string `json:"was"`
	Owner    string `json:"owner"`
}

// AdoptedTeam says what a team got of another one.
type AdoptedTeam struct {
	From string `json:"from"`
	To   string `json:"to"`
	Key  string `json:"key,omitempty"`
	// Resources is how many moved. Pending is how many resources and reservations stay, because calls about them are in
	// progress.
	Resources int `json:"resources"`
	Pending   int `json:"pending"`
	// Day and Month are the accrued costs that moved, in USD.
	Day   string `json:"day"`
	Month string `json:"month"`
}

// Ledger is the account of an organisation.
type Ledger struct {
	// Complete is false while the ledger has to be rebuilt: nothing that raises cost
	// is admitted then.
	Complete bool `json:"complete"`
	// Loss is the last one.
	Loss      *Loss      `json:"loss,omitempty"`
	Scopes    []Balance  `json:"scopes"`
	Resources []Resource `json:"resources"`
	Holds     []Hold     `json:"holds"`
}

// Loss lists the records that the store has lost of a ledger, why, and when the ledger was complete
// again. Returned resources have their owner back, Unowned ones have none.
type Loss struct {
	Lost     string     `json:"lost"`
	Reason   string     `json:"reason"`
	At       time.Time  `json:"at"`
	Rebuilt  *time.Time `json:"rebuilt,omitempty"`
	Returned int        `json:"returned"`
	Unowned  int        `json:"unowned"`
}

// Amounts are the amounts in use: USD per hour, counts, and USD of runs.
type Amounts struct {
	PerHour  string `json:"perHour"`
	Runs     string `json:"runs"` // and the remaining cost of sandboxes
	GPUs     int64  `json:"gpus"`
	Pods     int64  `json:"pods"`
	Workers  int64  `json:"workers"`
	VolumeGB int64  `json:"volumeGb"`
	// Sandboxes are those that have not ended.
	Sandboxes int64 `json:"sandboxes"`
}

// Balance is the account of one scope. Day and Month are USD.
type Balance struct {
	Scope     string            `json:"scope"`
	Committed Amounts           `json:"committed"`
	Reserved  Amounts           `json:"reserved"`
	Day       string            `json:"day"`
	Month     string            `json:"month"`
	Limits    map[string]string `json:"limits"`
	Budgets   []Budget          `json:"budgets"`
}

// Budget is how full one ceiling of a scope is, in USD or a count. Left is the amount that a call
// may still take.
type Budget struct {
	Name     string `json:"name"`
	Limit    string `json:"limit"`
	Used     string `json:"used"`
	Reserved string `json:"reserved"`
	Left     string `json:"left"`
	// UsedUp is the day, in the organisation's zone, on which a budget of a period is
	// expected to be used up, absent if the period ends first.
	UsedUp string `json:"usedUp,omitempty"`
	// Over is by how much runs under way can pass it at most, absent if they cannot.
	Over string `json:"over,omitempty"`
}

// NearBudget is a budget of a scope of an organisation, with the share that is taken.
type NearBudget struct {
	Org     string `json:"org"`
	Scope   string `json:"scope"`
	Percent int    `json:"percent"`
	Budget
}

// ForScope returns b as the budget of a scope. The share of a budget of 0 is 100 %.
func (b Budget) ForScope(org, scope string) NearBudget {
	n := NearBudget{org, scope, 100, b}
	if limit := row.Decimal(b.Limit); limit > 0 {
		n.Percent = int(100 * (row.Decimal(b.Used) + row.Decimal(b.Reserved)) / limit)
	}
	return n
}

// Resource is one that counts. Without a team and a key, it is the organisation's.
type Resource struct {
	ID    string    `json:"id"`
	Kind  string    `json:"kind"`
	Name  string    `json:"name,omitempty"`
	Team  string    `json:"team,omitempty"`
	Key   string    `json:"key,omitempty"`
	Since time.Time `json:"since"`
	Takes Amounts   `json:"takes"`
	GPU   string    `json:"gpu,omitempty"`
	// DataCenter is where it was asked for, or was found.
	DataCenter string            `json:"dc,omitempty"`
	Decision   string            `json:"decision,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// Hold is a reservation. Noted is one whose call is under way with a gateway; the resource of an
// open one is looked for until a time.
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

// Reconciled is the result of a comparison with the platform's lists: resources made
// or removed without the gateway, resources that take another amount than recorded, and holds
// whose call was found to have been carried out, not to have been, or is still
// looked for.
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
