package fastcheck

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// maxExponent bounds the exponents that are calculated with.
const maxExponent = 999

// decimal is a number exactly: digits times ten to the power of exponent. There
// is one decimal for each number: digits has no zero at its end, and zero is the
// zero value.
type decimal struct {
	negative bool
	digits   uint64
	exponent int
}

// parseDecimal reads a number as JSON spells it. It returns false for any other
// text, and for numbers that a decimal has no room for.
func parseDecimal(s string) (decimal, bool) {
	var d decimal
	if s != "" && s[0] == '-' {
		d.negative, s = true, s[1:]
	}
	if s == "" || s[0] == '0' && len(s) > 1 && isDigit(s[1]) {
		return decimal{}, false
	}
	i, ok := d.read(s, 0)
	if !ok {
		return decimal{}, false
	}
	if i < len(s) && s[i] == '.' {
		from := i + 1
		if i, ok = d.read(s, from); !ok {
			return decimal{}, false
		}
		d.exponent -= i - from
	}
	if i < len(s) {
		exponent, ok := parseExponent(s[i:])
		if !ok {
			return decimal{}, false
		}
		d.exponent += exponent
	}
	if d.digits == 0 {
		return decimal{}, true
	}
	return d, true
}

// read appends the digits of s from i on, at least one, and returns where they
// end. Zeros are kept in the exponent until a digit follows them.
func (d *decimal) read(s string, i int) (end int, ok bool) {
	start := i
	for ; i < len(s) && isDigit(s[i]); i++ {
		if s[i] == '0' {
			d.exponent++
			continue
		}
		for d.exponent++; d.exponent > 0; d.exponent-- {
			if d.digits > (math.MaxUint64-9)/10 {
				return i, false
			}
			d.digits *= 10
		}
		d.digits += uint64(s[i] - '0')
	}
	return i, i > start
}

// parseExponent reads e or E, a sign that may be missing, and digits.
func parseExponent(s string) (int, bool) {
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	sign := 1
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	n := 0
	for _, c := range []byte(s) {
		if !isDigit(c) || n > maxExponent {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return sign * n, s != "" && n <= maxExponent
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// decimalOf returns r as a decimal, and false when it is none or too long.
func decimalOf(r *big.Rat) (decimal, bool) {
	decimals, exact := r.FloatPrec()
	if !exact {
		return decimal{}, false
	}
	return parseDecimal(r.FloatString(decimals))
}

func (d decimal) isInteger() bool { return d.exponent >= 0 }

func (d decimal) compare(e decimal) int {
	switch {
	case d.negative && e.negative:
		return compareAmounts(e, d)
	case d.negative:
		return -1
	case e.negative:
		return 1
	}
	return compareAmounts(d, e)
}

// compareAmounts leaves signs aside.
func compareAmounts(d, e decimal) int {
	if d.digits == 0 || e.digits == 0 {
		return cmp.Compare(d.digits, e.digits)
	}
	if d.exponent < e.exponent {
		return -compareAmounts(e, d)
	}
	high, low := shift(d.digits, d.exponent-e.exponent)
	if high > 0 {
		return 1
	}
	return cmp.Compare(low, e.digits)
}

// isMultipleOf reports whether d divided by e, which is not zero, is an integer.
func (d decimal) isMultipleOf(e decimal) bool {
	if d.digits == 0 {
		return true
	}
	if d.exponent < e.exponent {
		high, low := shift(e.digits, e.exponent-d.exponent)
		return high == 0 && d.digits%low == 0
	}
	rest := d.digits % e.digits
	for i := d.exponent; i > e.exponent && rest > 0; i-- {
		high, low := bits.Mul64(rest, 10)
		rest = bits.Rem64(high, low, e.digits)
	}
	return rest == 0
}

// shift multiplies digits, which are not zero, by ten to the power of n. Of a
// product beyond 128 bits it tells only that the high half is not zero.
func shift(digits uint64, n int) (high, low uint64) {
	if n > 19 { // 1e20 has more than 64 bits
		return math.MaxUint64, 0
	}
	power := uint64(1)
	for range n {
		power *= 10
	}
	return bits.Mul64(digits, power)
}

// addNumbers adds the demands on numbers.
func (b *builder) addNumbers(n *node, s *jsonschema.Schema) {
	add := func(limit *big.Rat, fits func(d, limit decimal) bool) {
		if limit == nil {
			return
		}
		bound, _ := decimalOf(limit)
		n.numbers = append(n.numbers, func(d decimal) verdict { return verdictOf(fits(d, bound)) })
	}
	add(s.Minimum, func(d, limit decimal) bool { return d.compare(limit) >= 0 })
	add(s.ExclusiveMinimum, func(d, limit decimal) bool { return d.compare(limit) > 0 })
	add(s.Maximum, func(d, limit decimal) bool { return d.compare(limit) <= 0 })
	add(s.ExclusiveMaximum, func(d, limit decimal) bool { return d.compare(limit) < 0 })
	add(s.MultipleOf, decimal.isMultipleOf)
}

// numbersKnown reports whether all numbers of s itself are decimals.
func numbersKnown(s *jsonschema.Schema) bool {
	for _, r := range []*big.Rat{s.Minimum, s.ExclusiveMinimum, s.Maximum, s.ExclusiveMaximum, s.MultipleOf} {
		if r == nil {
			continue
		}
		if _, ok := decimalOf(r); !ok {
			return false
		}
	}
	if s.MultipleOf != nil && s.MultipleOf.Sign() == 0 {
		return false
	}
	return allKnown(s.Constant) && allKnown(s.Enum)
}

// allKnown reports whether all numbers in values are decimals.
func allKnown(values []any) bool {
	for _, v := range values {
		switch v := v.(type) {
		case map[string]any:
			if !allKnown(slices.Collect(maps.Values(v))) {
				return false
			}
		case []any:
			if !allKnown(v) {
				return false
			}
		case json.Number:
			if _, ok := parseDecimal(string(v)); !ok {
				return false
			}
		}
	}
	return true
}
