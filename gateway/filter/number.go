package filter

import (
	"encoding/json"
	"math"
)

// maxNumber is the largest number accepted from a response.
const maxNumber = 1e12

// Number converts v, a price or a count in a response, to a float64. It returns false if v is not a json.Number between 0 and 1e12.
func Number(v any) (float64, bool) {
	text, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	n, err := text.Float64()
	return n, err == nil && n >= 0 && n <= maxNumber && !math.IsNaN(n)
}
