package ledger

import (
	"cmp"
	"encoding/json"
	"maps"
	"strconv"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Counting says which workers of endpoints are counted.
type Counting string

// Which workers are counted. The zero Counting is WorkersMax.
const (
	// WorkersMax counts all that an endpoint may have: its budgets cannot be passed.
	WorkersMax Counting = "max"
	// WorkersMin counts those that are kept running.
	WorkersMin Counting = "min"
	// WorkersActive counts those that the reconciler found, and at least WorkersMin.
	WorkersActive Counting = "active"
)

// Values lists the ways of counting.
func (Counting) Values() []string {
	return []string{string(WorkersMax), string(WorkersMin), string(WorkersActive)}
}

// Footprint is [Footprint] with those of an endpoint's workers that the plan counts.
// active is how many there are, as far as that is known: workers that an endpoint is to
// have no longer count while they are there.
func (p *Plan) Footprint(kind operation.Kind, resource map[string]any, active int64, prices *catalog.Snapshot) (a Amounts, priced bool) {
	counting := cmp.Or(p.Endpoints, WorkersMax)
	if kind != operation.KindEndpoint || counting == WorkersMax {
		if a, priced = Footprint(kind, resource, prices); active > a[Workers] {
			a = a.max(Active(resource, active, prices))
		}
		return a, priced
	}
	if counting == WorkersMin {
		active = 0
	}
	return footprintOf(resource, active, prices)
}

// Active are the amounts of an endpoint with the workers that are kept running, or those that
// there are if these are more.
func Active(endpoint map[string]any, active int64, prices *catalog.Snapshot) Amounts {
	a, _ := footprintOf(endpoint, active, prices)
	return a
}

func footprintOf(endpoint map[string]any, active int64, prices *catalog.Snapshot) (a Amounts, priced bool) {
	workers, ok := endpoint["workers"].(map[string]any)
	if !ok && endpoint["workers"] != nil {
		return Footprint(operation.KindEndpoint, endpoint, prices) // the number it may have is not known
	}
	least, _ := workers["min"].(json.Number)
	n, err := strconv.ParseInt(cmp.Or(least.String(), "0"), 10, 64)
	if err != nil {
		return Footprint(operation.KindEndpoint, endpoint, prices)
	}
	number := json.Number(strconv.FormatInt(max(n, active), 10))
	endpoint = maps.Clone(endpoint)
	endpoint["workers"] = map[string]any{"min": number, "max": number}
	return Footprint(operation.KindEndpoint, endpoint, prices)
}
