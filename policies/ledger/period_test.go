package ledger

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// A cost accrued in parts equals the cost accrued at once, exactly.
func TestCostIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(0, MaxBurn).Draw(t, "rate")
		parts := rapid.SliceOfN(rapid.Int64Range(0, 31*24*hour), 1, 5).Draw(t, "parts")
		var got, carry int64
		sum := new(big.Int)
		for _, ms := range parts {
			var micro int64
			micro, carry = cost(rate, ms, carry)
			got += micro
			sum.Add(sum, big.NewInt(ms))
		}
		want, rest := new(big.Int).QuoRem(sum.Mul(sum, big.NewInt(rate)), big.NewInt(hour), new(big.Int))
		if want.Cmp(big.NewInt(got)) != 0 || rest.Cmp(big.NewInt(carry)) != 0 {
			t.Fatalf("%d for %v ms: %d and %d, want %s and %s", rate, parts, got, carry, want, rest)
		}
	})
}
