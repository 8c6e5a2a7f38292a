package fastcheck

import (
	"math"
	"math/big"
	"strconv"
)

const (
	// maxDigits is how many digits a float64 always keeps: two numbers of no
	// more digits are two float64s in the same order (C's DBL_DIG).
	maxDigits = 15
	// maxInteger bounds the integers that a float64 always keeps.
	maxInteger = 1 << 53
)

// parse returns the number that JSON spells s. It returns false where a float64
// might be taken for another number than s, and for exponents.
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

// known reports whether a number of a schema, nil if there is none, can be
// compared with parsed ones.
func known(limit *big.Rat) bool {
	if limit == nil {
		return true
	}
	f, exact := limit.Float64()
	_, ok := parse(strconv.FormatFloat(f, 'f', -1, 64))
	return exact && ok
}
