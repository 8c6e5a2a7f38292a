package ledger

// Dimensions of [Amounts].
const (
	// Burn is the burn rate: the cost of resources in micro-dollars per hour.
	Burn = iota
	// GPUs is the number of GPUs that resources hold or may hold. A stopped pod holds none.
	GPUs
	// Pods is the number of pods, running or stopped, including members of clusters.
	Pods
	// Workers is the largest number of workers that serverless endpoints may run at once.
	Workers
	// VolumeGB is the size of network volumes.
	VolumeGB
	// Cost is a bounded cost in micro-dollars: the one-time cost of a run, or the cost that a resource with an expected end may still
	// accrue. It counts against budgets for accrued cost. A one-time cost accrues when it is committed.
	Cost
	// Sandboxes is the number of sandboxes that have not ended.
	Sandboxes
	// Bounded is the part of Burn that belongs to resources with an expected end. It is excluded from forecasts, because Cost already contains
	// the rest of that cost. For example, a new sandbox of at most 2 hours at 1 USD per hour has a Burn and a Bounded of 1 USD per hour and a
	// Cost of 2 USD, which falls while it runs.
	Bounded
	// Dimensions is the number of dimensions.
	Dimensions
)

// Amounts are the amounts used by a resource or a scope, by dimension. No amount is negative.
type Amounts [Dimensions]int64

const (
	// MaxBurn is the highest rate that is counted: one million dollars per hour. It keeps every product in the store's scripts below 2^53.
	MaxBurn = 1_000_000 * 1_000_000
	// MaxCost is the highest one-time cost that is counted: ten thousand dollars.
	MaxCost = 10_000 * 1_000_000
	// MaxCount is the highest value of every other dimension.
	MaxCount = 1_000_000_000
)

// Above reports whether a exceeds b in any dimension.
func (a Amounts) Above(b Amounts) bool {
	for i := range a {
		if a[i] > b[i] {
			return true
		}
	}
	return false
}

// Excess returns a minus b in each dimension, but at least 0.
func (a Amounts) Excess(b Amounts) Amounts {
	for i := range a {
		a[i] = max(0, a[i]-b[i])
	}
	return a
}

// PricedAs sets the cost dimensions of a (Burn, Bounded and Cost) to the cost dimensions of b, which describes another state of the same
// resource. It is used if the price of the new state is unknown.
func (a *Amounts) PricedAs(b Amounts) { a[Burn], a[Bounded], a[Cost] = b[Burn], b[Bounded], b[Cost] }

// max returns the larger amount in each dimension.
func (a Amounts) max(b Amounts) Amounts {
	for i := range a {
		a[i] = max(a[i], b[i])
	}
	return a
}

// min returns the smaller amount in each dimension.
func (a Amounts) min(b Amounts) Amounts {
	for i := range a {
		a[i] = min(a[i], b[i])
	}
	return a
}

// add adds b to a, or subtracts it if sign is negative.
func (a *Amounts) add(b Amounts, sign int64) {
	for i := range a {
		a[i] += sign * b[i]
	}
}

// Clamped returns the amounts with each one limited to [MaxBurn], [MaxCost] or [MaxCount].
func (a Amounts) Clamped() Amounts {
	for i := range a {
		most := int64(MaxCount)
		switch i {
		case Burn, Bounded:
			most = MaxBurn
		case Cost:
			most = MaxCost
		}
		a[i] = min(max(0, a[i]), most)
	}
	return a
}
