package ledger

import (
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// RunReserve is the part of a run's greatest cost that is reserved before it is sent.
type RunReserve string

// How much is reserved. The zero RunReserve is ReserveWorst.
const (
	// ReserveWorst is the most that the run can cost: budgets cannot be passed.
	ReserveWorst RunReserve = "worst"
	// ReserveExpected is the recent cost of such runs; see [RunCosts].
	ReserveExpected RunReserve = "expected"
)

// Values lists the parts that can be reserved.
func (RunReserve) Values() []string {
	return []string{string(ReserveWorst), string(ReserveExpected)}
}

// Runs says how the runs of an organisation count.
type Runs struct {
	Reserve RunReserve `yaml:"reserve" doc:"amount that a run reserves before it is sent: worst is the most it can cost, so that budgets are never passed; expected is the 99th percentile of the runs of the same key on the same model lately, the worst until 50 are known, and the rest is taken when the run has ended; empty is worst"`
}

// Warnings says which promise does not hold.
func (r Runs) Warnings() []error {
	var out fault.Found
	out.If(r.Reserve == ReserveExpected, "reserve", "runs under way at once may pass a budget for accrued cost, by as much as they cost more than is expected: `tollgate spend show` says how much at most")
	return out
}

// RunCosts remembers the recent costs of runs, for each key and model by itself, in
// the memory of one gateway. It is safe for concurrent use.
type RunCosts struct {
	mu    sync.Mutex
	known *lru.Cache[runsOf, *latest]
}

// runsOf are the runs of one key of an organisation on one model.
type runsOf struct{ org, key, model string }

// latest holds the costs of the latest runs; next is the place of the oldest once it is
// full.
type latest struct {
	costs []catalog.Money
	next  int
}

const (
	// enoughRuns is how many must be known before less than the most is expected.
	enoughRuns = 50
	// keptRuns is how many are remembered of a key and model, maxRunsOf of how many keys
	// and models: 8 MB in all.
	keptRuns, maxRunsOf = 200, 4096
)

// NewRunCosts returns a memory that knows nothing.
func NewRunCosts() *RunCosts {
	known, err := lru.New[runsOf, *latest](maxRunsOf)
	if err != nil {
		panic(err) // the size is a constant above 0
	}
	return &RunCosts{known: known}
}

// Add remembers the cost of a run that was carried out.
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

// Expected is the greatest cost of 99 in 100 of the latest runs (the nearest rank), and
// never above most, the greatest cost of the next one. Of few runs, it is most.
func (c *RunCosts) Expected(org, key, model string, most catalog.Money) catalog.Money {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.known.Get(runsOf{org, key, model})
	if !ok || len(l.costs) < enoughRuns {
		return most
	}
	sorted := slices.Sorted(slices.Values(l.costs))
	return min(most, sorted[(99*len(sorted)+99)/100-1])
}

// MaxCost is the greatest one-time cost of a hold's call, in micro-dollars.
func (h *Hold) MaxCost() int64 { return max(h.Amounts[Cost], h.Metadata.MaxCost) }

// Unreserved is the possible cost to a scope of runs under way beyond their reservations, in
// micro-dollars.
func (s *State) Unreserved(scope Scope) (micro int64) {
	for i := range s.Holds {
		if h := &s.Holds[i]; slices.Contains(h.Owner.Scopes(), scope) {
			micro += h.MaxCost() - h.Amounts[Cost]
		}
	}
	return micro
}
