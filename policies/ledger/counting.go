package ledger

import (
	"cmp"
	"encoding/json"
	"maps"
	"strconv"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Counting selects the workers of endpoints whose cost is counted. The numbers of workers and GPUs always count the maximum.
type Counting string

// Ways of counting workers. The zero Counting is WorkersMax.
const (
	// WorkersMax counts the largest number of workers that an endpoint may run, so that budgets cannot be exceeded.
	WorkersMax Counting = "max"
	// WorkersMin counts the workers that are always running.
	WorkersMin Counting = "min"
	// WorkersActive counts the workers found by the reconciler, but at least WorkersMin.
	WorkersActive Counting = "active"
)

// Values returns the valid values, for the schema of the configuration.
func (Counting) Values() []string {
	return []string{string(WorkersMax), string(WorkersMin), string(WorkersActive)}
}

// Footprint is like the function [Footprint], but includes only the cost of the workers that the plan counts. active is the number of
// existing workers, or 0 if unknown. It includes workers that the endpoint no longer needs but that still exist.
func (p *Plan) Footprint(kind operation.Kind, resource map[string]any, active int64, prices *catalog.Snapshot) (a Amounts, priced bool) {
	a, priced = Footprint(kind, resource, prices)
	if kind != operation.KindEndpoint {
		return a, priced
	}
	if active > a[Workers] {
		a = a.max(Active(resource, active, prices))
	}
	switch cmp.Or(p.Endpoints, WorkersMax) {
	case WorkersMin:
		active = 0
	case WorkersActive:
	default:
		return a, priced
	}
	counted, priced := footprintOf(resource, active, prices)
	a.PricedAs(counted)
	return a, priced
}

// Active returns the amounts of an endpoint that runs the given number of active workers. If the endpoint's minimum number of workers is
// larger, Active uses the minimum.
func Active(endpoint map[string]any, active int64, prices *catalog.Snapshot) Amounts {
	a, _ := footprintOf(endpoint, active, prices)
	return a
}

func footprintOf(endpoint map[string]any, active int64, prices *catalog.Snapshot) (a Amounts, priced bool) {
	workers, ok := endpoint["workers"].(map[string]any)
	if !ok && endpoint["workers"] != nil {
		return Footprint(operation.KindEndpoint, endpoint, prices) // the largest number of workers is unknown
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
