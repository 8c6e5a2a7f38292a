package fastcheck

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestParseDecimal(t *testing.T) {
	tests := []struct {
		text string
		want decimal
		ok   bool
	}{
		{"0", decimal{}, true},
		{"-0", decimal{}, true},
		{"0.000e7", decimal{}, true},
		{"10", decimal{digits: 1, exponent: 1}, true},
		{"-1.50", decimal{negative: true, digits: 15, exponent: -1}, true},
		{"0.0010", decimal{digits: 1, exponent: -3}, true},
		{"1e2", decimal{digits: 1, exponent: 2}, true},
		{"80E-1", decimal{digits: 8}, true},
		{"1.0e+00", decimal{digits: 1}, true},
		{"18446744073709551609", decimal{digits: 18446744073709551609}, true},
		{"100000000000000000000000000000", decimal{digits: 1, exponent: 29}, true},
		{"1e999", decimal{digits: 1, exponent: 999}, true},
		{"1e1000", decimal{}, false},
		{"1e99999999999999999999", decimal{}, false},
		{"123456789012345678901", decimal{}, false},
	}
	for _, tt := range tests {
		if got, ok := parseDecimal(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("parseDecimal(%s) = %+v, %v, want %+v, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
	for _, text := range []string{"", "-", "+1", "01", "00", ".5", "5.", "1.e1", "1e", "1e+", "1 ", " 1", "0x1", "1_0", "1/2", "NaN", "1e1.0", "--1", "1-", "١"} {
		if got, ok := parseDecimal(text); ok {
			t.Errorf("parseDecimal(%q) = %+v, want none", text, got)
		}
	}
}

// Calculating with decimals is calculating with rational numbers.
func TestDecimalsAreRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	spell := func() string {
		s := []string{"", "-"}[r.IntN(2)] + fmt.Sprint(r.Int64()>>r.IntN(64))
		if r.IntN(2) == 0 {
			s += fmt.Sprintf(".%0*d", 1+r.IntN(4), r.IntN(1+r.IntN(1000)))
		}
		if r.IntN(2) == 0 {
			s += fmt.Sprintf("e%d", r.IntN(61)-30)
		}
		return s
	}
	compared := 0
	for range 10_000 {
		x, y := spell(), spell()
		d, ok := parseDecimal(x)
		e, ok2 := parseDecimal(y)
		if !ok || !ok2 {
			continue
		}
		compared++
		p, _ := new(big.Rat).SetString(x)
		q, _ := new(big.Rat).SetString(y)
		if got, want := d.compare(e), p.Cmp(q); got != want || (d == e) != (want == 0) {
			t.Errorf("%s and %s: compare = %d and equal = %v, want %d", x, y, got, d == e, want)
		}
		if got, want := d.isInteger(), p.IsInt(); got != want {
			t.Errorf("%s is an integer = %v, want %v", x, got, want)
		}
		if back, ok := decimalOf(p); !ok || back != d {
			t.Errorf("%s as a rational and back = %+v, %v, want %+v", x, back, ok, d)
		}
		if q.Sign() == 0 {
			continue
		}
		if got, want := d.isMultipleOf(e), new(big.Rat).Quo(p, q).IsInt(); got != want {
			t.Errorf("%s is a multiple of %s = %v, want %v", x, y, got, want)
		}
		product, ok := decimalOf(new(big.Rat).Mul(p, big.NewRat(7, 1)))
		if ok && !product.isMultipleOf(d) && d.digits != 0 {
			t.Errorf("seven times %s is no multiple of it", x)
		}
	}
	if compared < 5_000 {
		t.Errorf("only %d pairs were compared", compared)
	}
	if third, ok := decimalOf(big.NewRat(1, 3)); ok {
		t.Errorf("decimalOf(1/3) = %+v, want none", third)
	}
}
