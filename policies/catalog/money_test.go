package catalog_test

import (
	"math"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Corrections by bills are negative where too much was counted.
func TestMoneyInWords(t *testing.T) {
	t.Parallel()
	for m, want := range map[catalog.Money]string{
		0: "0", 1: "0.000001", 440_000: "0.44", 2_000_000: "2", 1_500_000: "1.5",
		-1: "-0.000001", -50_000: "-0.05", -999_999: "-0.999999", -1_000_000: "-1", -1_500_000: "-1.5", -12_000_010: "-12.00001",
		math.MaxInt64: "9223372036854.775807", math.MinInt64: "-9223372036854.775808",
	} {
		if got := m.String(); got != want {
			t.Errorf("%d micro-dollars are %q, want %q", int64(m), got, want)
		}
	}
}
