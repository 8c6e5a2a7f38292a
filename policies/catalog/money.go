package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Money is an amount of US dollars in millionths (micro-USD). Amounts in this package are never negative.
type Money int64

// microPerUSD is the number of units of Money in one dollar.
const microPerUSD = 1_000_000

// maxMoney limits every amount; an amount above a billion dollars is an error.
const maxMoney Money = 1_000_000_000 * microPerUSD

var (
	errNotMoney = errors.New("not an amount of money")
	errTooMuch  = errors.New("amount out of range")
)

// ParseMoney parses a decimal number of dollars such as "0.44" or "1.1e-1" and rounds it up to the next millionth. It returns an
// error for signs, NaN, infinities, very large exponents, and amounts above a billion dollars.
func ParseMoney(s string) (Money, error) {
	if !plausibleNumber(s) {
		return 0, errNotMoney
	}
	whole, frac, _ := strings.Cut(s, ".")
	if whole != "" && len(whole) <= 9 && len(frac) <= 6 { // the usual notation; others need big numbers
		if n, err := strconv.ParseUint(whole+frac+"000000"[len(frac):], 10, 64); err == nil {
			return Money(n), nil
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || r.Sign() < 0 {
		return 0, errNotMoney
	}
	r.Mul(r, big.NewRat(microPerUSD, 1))
	q, rem := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rem.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() || Money(q.Int64()) > maxMoney {
		return 0, errTooMuch
	}
	return Money(q.Int64()), nil
}

// plausibleNumber rejects tokens that big.Rat would expand to many digits (1e1000000) and its other notations (fractions,
// hexadecimal).
func plausibleNumber(s string) bool {
	if s == "" || len(s) > 40 || strings.Trim(s, "0123456789.eE+-") != "" || s[0] == '+' {
		return false
	}
	_, exp, found := strings.Cut(strings.ToLower(s), "e")
	if !found {
		return true
	}
	n, err := strconv.Atoi(exp)
	return err == nil && n >= -30 && n <= 30
}

// moneyOf parses a decoded JSON number.
func moneyOf(v any) (Money, error) {
	switch n := v.(type) {
	case json.Number:
		return ParseMoney(n.String())
	case float64:
		return ParseMoney(strconv.FormatFloat(n, 'f', -1, 64)) // NaN and infinities are not plausible
	case int, int64:
		return ParseMoney(fmt.Sprint(n))
	}
	return 0, errNotMoney
}

// String returns the amount in dollars with as few decimals as possible, such as "0.44" or "-0.05". The result is a valid JSON
// number.
func (m Money) String() string {
	b := make([]byte, 0, 24)
	rest := uint64(m)
	if m < 0 {
		b, rest = append(b, '-'), -rest
	}
	b = strconv.AppendUint(b, rest/microPerUSD, 10)
	if rest %= microPerUSD; rest > 0 {
		b = append(b, '.')
	}
	for unit := uint64(microPerUSD / 10); rest > 0; unit /= 10 {
		b, rest = append(b, '0'+byte(rest/unit)), rest%unit
	}
	return string(b)
}

// times returns m*n. ok is false if the product is out of range or n is negative.
func (m Money) times(n int64) (product Money, ok bool) {
	if n < 0 || m < 0 || n > 0 && m > maxMoney/Money(n) {
		return 0, false
	}
	return m * Money(n), true
}

// UnmarshalNumber parses a dollar amount in a configuration file, such as 1.50; see [ParseMoney].
func (m *Money) UnmarshalNumber(text string) error {
	parsed, err := ParseMoney(text)
	if err != nil {
		return err
	}
	*m = parsed
	return nil
}
