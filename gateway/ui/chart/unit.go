package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unit describes the unit of a chart's values.
type Unit struct {
	// Name is the name of the unit, such as "USD" or "requests". It follows values if Sign is empty.
	Name string
	// Sign is a symbol before values, such as "$".
	Sign string
	// Whole reports that values have no decimals.
	Whole bool
}

// The units of the console.
//
//nolint:gochecknoglobals // read only
var (
	USD      = Unit{Name: "USD", Sign: "$"}
	Requests = Unit{Name: "requests", Whole: true}
)

// Format formats a value with thousands separators and two decimals, or no decimals if the unit is whole. An amount below one cent has up
// to six decimals so that it is not shown as 0. A missing value results in "no data".
func (u Unit) Format(v float64) string {
	if !present(v) {
		return "no data"
	}
	if text, negative := strings.CutPrefix(u.digits(v), "-"); negative {
		return "-" + u.Sign + text
	}
	return u.Sign + u.digits(v)
}

// text formats a value with its unit for use in a sentence.
func (u Unit) text(v float64) string {
	if u.Sign != "" {
		return u.Format(v)
	}
	return u.Format(v) + " " + u.Name
}

func (u Unit) digits(v float64) string {
	switch {
	case u.Whole:
		return Separated(strconv.FormatFloat(math.Round(v), 'f', 0, 64))
	case v != 0 && math.Abs(v) < 0.01:
		text := strings.TrimRight(strconv.FormatFloat(v, 'f', 6, 64), "0")
		if text == "0." || text == "-0." {
			return "0.000000"
		}
		return text
	}
	return Separated(strconv.FormatFloat(v, 'f', 2, 64))
}

// Separated inserts commas between the thousands of a decimal number.
func Separated(text string) string {
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	whole, rest, found := strings.Cut(text, ".")
	if found {
		rest = "." + rest
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole + rest
}

// Change returns the relative difference between now and before, such as "+12%", or "" if the values cannot be compared.
func Change(now, before float64) string {
	if !present(now) || !present(before) || before <= 0 {
		return ""
	}
	percent := math.Round(100 * (now/before - 1))
	switch {
	case percent > 999:
		return "> +999%"
	case percent == 0:
		return "0%"
	}
	return fmt.Sprintf("%+.0f%%", percent)
}

// scale is a vertical axis from 0 to top.
type scale struct{ top, step float64 }

// smallest and largest are the limits of the height of an axis.
const smallest, largest = 1e-6, 1e15

// maxTicks is the maximum number of intervals between grid lines.
const maxTicks = 4

// newScale returns the smallest axis with round steps that reaches the value highest. The steps of whole units are whole.
func newScale(highest float64, u Unit) scale {
	if math.IsNaN(highest) || highest <= 0 {
		return scale{1, 1}
	}
	highest = min(max(highest, smallest), largest)
	for exponent := math.Floor(math.Log10(highest / maxTicks)); ; exponent++ {
		for _, digit := range []float64{1, 2, 2.5, 5} {
			step := digit * math.Pow(10, exponent)
			if u.Whole && step != math.Trunc(step) {
				continue
			}
			if n := math.Ceil(highest/step - 1e-9); n <= maxTicks {
				return scale{n * step, step}
			}
		}
	}
}

// ticks returns the values of grid lines, starting with 0.
func (s scale) ticks() (list []float64) {
	for i := range int(math.Round(s.top/s.step)) + 1 {
		list = append(list, float64(i)*s.step)
	}
	return list
}

// label formats the value of a grid line. Values of 10,000 and above are abbreviated.
func (s scale) label(v float64, u Unit) string {
	factor, suffix := 1.0, ""
	switch {
	case s.top >= 1e12:
		factor, suffix = 1e12, "T"
	case s.top >= 1e9:
		factor, suffix = 1e9, "B"
	case s.top >= 1e6:
		factor, suffix = 1e6, "M"
	case s.top >= 1e4:
		factor, suffix = 1e3, "k"
	}
	if v == 0 {
		return u.Sign + "0"
	}
	decimals := 0
	for step := s.step / factor; decimals < 12 && math.Abs(step-math.Round(step)) > 1e-9*step; decimals++ {
		step *= 10
	}
	return u.Sign + Separated(strconv.FormatFloat(v/factor, 'f', decimals, 64)) + suffix
}
