package ledger

import (
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// RunReserve selects how much of a run's maximum cost is reserved before the run is sent.
type RunReserve string

// Amounts to reserve. The zero RunReserve is ReserveWorst.
const (
	// ReserveWorst reserves the maximum cost of the run, so that budgets cannot be exceeded.
	ReserveWorst RunReserve = "worst"
	// ReserveExpected reserves the recent cost of similar runs; see [RunCosts].
	ReserveExpected RunReserve = "expected"
)

// Values returns the valid values, for the schema of the configuration.
func (RunReserve) Values() []string {
	return []string{string(ReserveWorst), string(ReserveExpected)}
}

// Runs configures how the runs of an organisation are counted.
type Runs struct {
	Reserve RunReserve `yaml:"reserve" doc:"amount to reserve before a run is sent: worst (default) reserves the maximum cost, so that budgets are never exceeded; expected reserves the 99th percentile of recent runs of the same key on the same model, or the maximum cost until 50 runs are known, and charges the rest when the run ends"`
}

// Warnings returns a warning if the configuration permits runs to exceed budgets.
func (r Runs) Warnings() []error {
	var out fault.Found
	out.If(r.Reserve == ReserveExpected, "reserve",
		"accrued cost can exceed its budget if concurrent runs cost more than expected: `tollgate spend show` shows the maximum excess")
	return out
}

// RunCosts records the costs of recent runs in the memory of one gateway, separately for each key and model. It is safe for concurrent
// use.
type RunCosts struct {
	mu    sync.Mutex
	known *lru.Cache[runsOf, *latest]
}

// runsOf identifies the runs of one key of an organisation on one model.
type runsOf struct{ org, key, model string }

// latest holds the costs of the latest runs. next is the position of the oldest cost once the buffer is full.
type latest struct {
	costs []catalog.Money
	next  int
}

const (
	// enoughRuns is the number of recorded runs that Expected needs to return less than the maximum cost.
	enoughRuns = 50
	// keptRuns is the number of costs kept per key and model, and maxRunsOf the number of keys and models: 8 MB in all.
	keptRuns, maxRunsOf = 200, 4096
)

// NewRunCosts returns an empty RunCosts.
func NewRunCosts() *RunCosts {
	known, _ := lru.New[runsOf, *latest](maxRunsOf) // lru.New fails only for a size below 1
	return &RunCosts{known: known}
}

// Add records the cost of a completed run.
func (c *RunCosts) Add(org, key, model string, cost catalog.Money) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := runsOf{org, key, model}
	l, ok := c.known.Get(of)
	switch {
	case !ok:
		c.known.Add(of, &latest{costs: []catalog.Money{cost}})
	case len(l.costs) < keptRuns:
		l.costs = append(l.costs, cost)
	default:
		l.costs[l.next] = cost
		l.next = (l.next + 1) % keptRuns
	}
}

// Expected returns the 99th percentile (nearest rank) of the costs of the latest runs, but at most limit, the maximum cost of the next run.
// If too few runs are recorded, it returns limit.
func (c *RunCosts) Expected(org, key, model string, limit catalog.Money) catalog.Money {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.known.Get(runsOf{org, key, model})
	if !ok || len(l.costs) < enoughRuns {
		return limit
	}
	sorted := slices.Sorted(slices.Values(l.costs))
	return min(limit, sorted[(99*len(sorted)+99)/100-1])
}

// MaxCost returns the maximum one-time cost of a hold's call, in micro-dollars.
func (h *Hold) MaxCost() int64 { return max(h.Amounts[Cost], h.Metadata.MaxCost) }

// Unreserved returns the cost, in micro-dollars, that the scope's runs in progress may incur beyond their reservations.
func (s *State) Unreserved(scope Scope) (micro int64) {
	for i := range s.Holds {
		if h := &s.Holds[i]; slices.Contains(h.Owner.Scopes(), scope) {
			micro += h.MaxCost() - h.Amounts[Cost]
		}
	}
	return micro
}
