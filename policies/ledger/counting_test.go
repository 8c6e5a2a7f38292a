package ledger_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// The plan selects the workers whose cost is counted. The numbers of workers and GPUs always count the maximum.
func TestCountedWorkers(t *testing.T) {
	prices := catalog.NewSnapshot(catalog.Lists{GPUs: []catalog.GPU{{
		ID: "L4", Pool: "ADA", Serverless: catalog.Price{PerHour: 1_000_000, Known: true},
	}}}, catalog.Rates{}, time.Unix(0, 0))
	endpoint := map[string]any{
		"gpu":     map[string]any{"pools": []any{"ADA"}, "count": json.Number("2")},
		"workers": map[string]any{"min": json.Number("1"), "max": json.Number("20")},
	}
	for _, tt := range []struct {
		counting                 ledger.Counting
		active, dollars, workers int64
	}{
		{"", 0, 40, 20},
		{"max", 21, 42, 21},
		{"min", 0, 2, 20},
		{"min", 21, 2, 21},
		{"active", 0, 2, 20},
		{"active", 3, 6, 20},
		{"active", 21, 42, 21},
	} {
		p := ledger.Plan{Endpoints: tt.counting}
		a, priced := p.Footprint(operation.KindEndpoint, endpoint, tt.active, prices)
		want := ledger.Amounts{ledger.Burn: tt.dollars * 1_000_000, ledger.Workers: tt.workers, ledger.GPUs: 2 * tt.workers}
		if a != want || !priced {
			t.Errorf("%q with %d active workers: %v (priced %t), want %v", tt.counting, tt.active, a, priced, want)
		}
	}
}
