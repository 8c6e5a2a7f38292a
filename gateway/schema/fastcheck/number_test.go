package fastcheck

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want float64
		ok   bool
	}{
		{"0", 0, true},
		{"-0", 0, true},
		{"-1.50", -1.5, true},
		{"0.00000000000001", 1e-14, true},
		{"9007199254740991", 1<<53 - 1, true},
		{"9007199254740992", 0, false},
		{"0.4999999999999999", 0, false},
		{"123456789012345678901", 0, false},
	}
	for _, tt := range tests {
		if got, ok := parse(tt.text); ok != tt.ok || ok && got != tt.want {
			t.Errorf("parse(%s) = %v, %v, want %v, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
	for _, text := range []string{"", "-", "+1", "1e0", "1E1", "1 ", " 1", "0x1", "1_0", "1/2", "NaN", "Inf", "--1", "1-", "\u0661"} {
		if got, ok := parse(text); ok {
			t.Errorf("parse(%q) = %v, want none", text, got)
		}
	}
}

// Parsed numbers compare as the rational numbers that they stand for.
func TestParsedNumbersAreRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	spell := func() string {
		s := []string{"", "-"}[r.IntN(2)] + fmt.Sprint(r.Int64()>>r.IntN(64))
		if r.IntN(2) == 0 {
			s += fmt.Sprintf(".%0*d", 1+r.IntN(4), r.IntN(1+r.IntN(1000)))
		}
		return s
	}
	compared := 0
	for range 20_000 {
		x := spell()
		y := spell()
		if len(x) > 3 && r.IntN(2) == 0 { // a neighbour
			y = x[:len(x)-1] + fmt.Sprint(r.IntN(10))
		}
		f, ok := parse(x)
		g, ok2 := parse(y)
		if !ok || !ok2 {
			continue
		}
		compared++
		p, _ := new(big.Rat).SetString(x)
		q, _ := new(big.Rat).SetString(y)
		if got, want := cmp.Compare(f, g), p.Cmp(q); got != want {
			t.Errorf("%s and %s: compare = %d, want %d", x, y, got, want)
		}
		if got, want := f == math.Trunc(f), p.IsInt(); got != want {
			t.Errorf("%s is an integer = %v, want %v", x, got, want)
		}
	}
	if compared < 5_000 {
		t.Errorf("only %d pairs were compared", compared)
	}
}
