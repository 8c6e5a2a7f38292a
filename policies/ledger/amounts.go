package ledger

// The dimensions of [Amounts].
const (
	// Burn is the cost of resources, in micro-dollars per hour.
	Burn = iota
	// GPUs are those that resources hold or may hold. A stopped pod holds none.
	GPUs
	// Pods exist, running or stopped, members of clusters included.
	Pods
	// Workers are those that serverless endpoints may have at once.
	Workers
	// VolumeGB is the size of network volumes.
	VolumeGB
	// Cost is a cost that is certain to end, in micro-dollars: the one-time cost of a run, or the cost that a resource with an
	// expected end may still accrue. It counts in budgets for accrued cost. A one-time cost accrues when it is committed.
	Cost
	// Sandboxes exist and have not ended.
	Sandboxes
	// Bounded is the part of Burn that has an expected end. It is not forecast: Cost is the rest of it.
	Bounded
	// Dimensions is how many there are.
	Dimensions
)

// Amounts are the amounts that a resource takes, by dimension. None is negative.
type Amounts [Dimensions]int64

const (
	// MaxBurn is the highest rate that is counted: a million dollars per hour. It
	// keeps every product of the store's scripts below 2^53.
	MaxBurn = 1_000_000 * 1_000_000
	// MaxCost is the most that is counted for something that costs once: ten thousand
	// dollars.
	MaxCost = 10_000 * 1_000_000
	// MaxCount is the largest count of any other dimension.
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

// MaxOverrunssonBudgetAction returns the excess of a above b, by dimension.
func (a Amounts) Excess(b Amounts) Amounts {
	for i := range a {
		a[i] = max(0, a[i]-b[i])
	}
	return a
}

// PricedAs sets the costs of a to those of another state of the resource.
func (a *Amounts) PricedAs(b Amounts) { a[Burn], a[Bounded], a[Cost] = b[Burn], b[Bounded], b[Cost] }

// max is the larger of two amounts, by dimension.
func (a Amounts) max(b Amounts) Amounts {
	for i := range a {
		a[i] = max(a[i], b[i])
	}
	return a
}

// min is the smaller of two amounts, by dimension.
func (a Amounts) min(b Amounts) Amounts {
	for i := range a {
		a[i] = min(a[i], b[i])
	}
	return a
}

// add changes a by b, and by -b if sign is negative.
func (a *Amounts) add(b Amounts, sign int64) {
	for i := range a {
		a[i] += sign * b[i]
	}
}

// Clamped returns a within [MaxBurn] and [MaxCount].
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
