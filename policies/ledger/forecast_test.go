package ledger_test

import (
	"math"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

func TestForecast(t *testing.T) {
	const usd = 1_000_000
	week := func(costs ...int64) (past []int64) {
		for range 8 {
			for _, c := range costs {
				past = append(past, c*usd)
			}
		}
		return past
	}
	for _, tt := range []struct {
		name          string
		accrued, burn int64
		past          []int64
		left          float64
		want, off     float64 // in USD, and by how much it may be off
	}{
		{"nothing", 0, 0, nil, 10.5, 0, 0},
		{"what runs goes on where there is no history", 12 * usd, 1 * usd, nil, 0.5, 24, 0.01},
		{"days like all before", 12 * usd, 1 * usd, week(24, 24, 24, 24, 24, 24, 24), 10.5, 264, 0.1},
		// Today, a day after the last of past, is the first of the seven.
		{"a weekend is ahead", 0, 1 * usd, week(24, 24, 24, 24, 24, 0, 0), 7, 120, 12},
		{"much runs on a Saturday for once", 0, 10 * usd, week(0, 0, 24, 24, 24, 24, 24), 1, 216, 30},
		{"that wears off", 0, 10 * usd, week(0, 0, 24, 24, 24, 24, 24), 28, 480 + 240*4.5, 200},
	} {
		got := ledger.Forecast(tt.accrued, tt.burn, tt.past, tt.left)
		if math.Abs(float64(got.Expected)/usd-tt.want) > tt.off {
			t.Errorf("%s: %.2f, want about %.2f", tt.name, float64(got.Expected)/usd, tt.want)
		}
		if got.Low < tt.accrued || got.Low > got.Expected || got.Expected > got.High {
			t.Errorf("%s: %+v is out of order, or below what has accrued", tt.name, got)
		}
	}
}
