package filter

import (
	"encoding/json"
	"math"
)

// maxNumber is the largest number accepted from a response.
const maxNumber = 1e12

// Number returns v as a number. ok is false unless v is a json.Number between 0 and 1e12. It is for prices and counts in responses, which
// are never negative.
func Number(v any) (float64, bool) {
	text, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	n, err := text.Float64()
	return n, err == nil && n >= 0 && n <= maxNumber && !math.IsNaN(n)
}
