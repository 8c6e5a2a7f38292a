package main

import (
	"cmp"
	"fmt"
	"math/big"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// A cell is a value in a table. The types usd, number, share, status and time.Time have separate formats for people and programs. All other
// values are formatted by fmt.
type (
	// usd is a decimal amount in US dollars. For people it has two decimals and thousands separators.
	usd string
	// number is a decimal number. For people it has thousands separators.
	number string
	// share is a percentage. On a terminal it is also drawn as a bar.
	share int
	// status is an HTTP status, or 0 without a status.
	status int
)

// budgetCell returns an amount of the named budget in its unit.
func budgetCell(name, amount string) any {
	if amount != "" && (strings.HasPrefix(name, "per_") || name == "total") {
		return usd(amount)
	}
	return number(amount)
}

// takenShare returns the percentage of a limit that is used or reserved. A limit of 0 counts as fully used.
func takenShare(limit, used, reserved string) share {
	sum := new(big.Rat).Add(decimal(used), decimal(reserved))
	if of := decimal(limit); of.Sign() > 0 {
		percent, _ := sum.Quo(sum.Mul(sum, big.NewRat(100, 1)), of).Float64()
		return share(percent)
	}
	return 100
}

func decimal(text string) *big.Rat {
	if r, ok := new(big.Rat).SetString(text); ok {
		return r
	}
	return new(big.Rat)
}

// programText formats a cell for programs: times in RFC 3339, and amounts without rounding.
func programText(cell any) string {
	switch c := cell.(type) {
	case time.Time:
		if c.IsZero() {
			return ""
		}
		return c.UTC().Format(time.RFC3339)
	case *time.Time:
		return moment(c)
	case share:
		return strconv.Itoa(int(c))
	case status:
		if c == 0 {
			return ""
		}
	}
	return fmt.Sprint(cell)
}

// peopleText formats a cell for people, on one line.
func peopleText(cell any, onTerminal bool) string {
	switch c := cell.(type) {
	case usd:
		return dollars(string(c))
	case number:
		return separated(string(c))
	case share:
		text := fmt.Sprintf("%d %%", int(c))
		if onTerminal {
			text = fmt.Sprintf("%-*s %5s", shareWidth, bar(big.NewRat(min(max(int64(c), 0), 100), 100), big.NewRat(1, 1), shareWidth), text)
		}
		return text
	}
	return oneLine(programText(cell))
}

// shareWidth is the length of a bar for 100 percent, in terminal cells.
const shareWidth = 10

// isNumeric reports whether a cell is right-aligned.
func isNumeric(cell any) bool {
	switch cell.(type) {
	case usd, number, share, status:
		return true
	}
	return reflect.ValueOf(cell).CanInt()
}

// dollars formats an amount with two decimals and thousands separators. An amount below half a cent is shown as "<0.01".
func dollars(text string) string {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return text
	}
	if rounded := r.FloatString(2); rounded != "0.00" || r.Sign() == 0 {
		return separated(rounded)
	}
	return "<0.01"
}

// separated adds thousands separators to a decimal number.
func separated(text string) string {
	whole, fraction, _ := strings.Cut(text, ".")
	sign := ""
	if digits, isNegative := strings.CutPrefix(whole, "-"); isNegative {
		whole, sign = digits, "-"
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}

// Codes for Select Graphic Rendition (ECMA-48, section 8.3.117).
const (
	sgrBold, sgrRed, sgrYellow = "1", "31", "33"
	sgrEnd                     = "\x1b[0m"
)

// colourOf returns the code for the colour of a cell on a terminal, or "" for no colour. Refusals and failures are red, budgets that are
// nearly used up are yellow, and names of columns are bold.
func colourOf(cell any, isName bool) string {
	switch c := cell.(type) {
	case status:
		if c >= 400 {
			return sgrRed
		}
	case share:
		switch {
		case c >= 100:
			return sgrRed
		case c >= 80:
			return sgrYellow
		}
	}
	if isName {
		return sgrBold
	}
	return ""
}

// isTerminal reports whether w, a reader or writer, is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	null, _ := os.Stat(os.DevNull) // compared by identity, because standard input is named /dev/stdin
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !os.SameFile(info, null)
}

// inColour reports whether w is a terminal, and NO_COLOR and TERM permit colours and bars (https://no-color.org).
func inColour(w any) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && cmp.Or(os.Getenv("TERM"), "dumb") != "dumb"
}
