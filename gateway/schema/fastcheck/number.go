package fastcheck

import (
	"math"
	"math/big"
	"strconv"
)

const (
	// maxDigits is the number of decimal digits that a float64 always preserves (DBL_DIG in C). Different numbers with at most this number of
	// digits remain different, and in order.
	maxDigits = 15
	// maxInteger is the magnitude below which a float64 represents every integer exactly.
	maxInteger = 1 << 53
)

// parse converts the JSON number s to a float64. It returns false if s has an exponent, or if another number could have the same float64.
func parse(s string) (float64, bool) {
	digits, fraction := 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits++
		case c == '.':
			fraction = true
		case c != '-':
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && (digits <= maxDigits || !fraction && math.Abs(f) < maxInteger)
}

// known reports whether limit, a number in a schema, can be compared with results of parse. It returns true if limit is nil.
func known(limit *big.Rat) bool {
	if limit == nil {
		return true
	}
	f, exact := limit.Float64()
	_, ok := parse(strconv.FormatFloat(f, 'f', -1, 64))
	return exact && ok
}
