package spend

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

// Values lists what can be counted.
func (Counting) Values() []string {
	return []string{string(WorkersMax), string(WorkersMin), string(WorkersActive)}
}

// Footprint is [Footprint] with those of an endpoint's workers that the plan counts.
// active is how many there are, as far as that is known.
func (p *Plan) Footprint(kind operation.Kind, resource map[string]any, active int64, prices *catalog.Snapshot) (a Amounts, priced bool) {
	if kind != operation.KindEndpoint || cmp.Or(p.Endpoints, WorkersMax) == WorkersMax {
		return Footprint(kind, resource, prices)
	}
	workers, ok := resource["workers"].(map[string]any)
	if !ok && resource["workers"] != nil {
		return Footprint(kind, resource, prices) // what it may have is not known
	}
	least, _ := workers["min"].(json.Number)
	n, err := strconv.ParseInt(cmp.Or(least.String(), "0"), 10, 64)
	if err != nil {
		return Footprint(kind, resource, prices)
	}
	if p.Endpoints == WorkersActive {
		n = max(n, active)
	}
	resource = maps.Clone(resource)
	number := json.Number(strconv.FormatInt(n, 10))
	resource["workers"] = map[string]any{"min": number, "max": number}
	return Footprint(kind, resource, prices)
}
