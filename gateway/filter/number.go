package filter

import (
	"encoding/json"
	"math"
)

// maxNumber bounds the numbers that are believed of an answer.
const maxNumber = 1e12

// Number reads a number that is not negative and not absurd.
func Number(v any) (float64, bool) {
	text, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	n, err := text.Float64()
	return n, err == nil && n >= 0 && n <= maxNumber && !math.IsNaN(n)
}
