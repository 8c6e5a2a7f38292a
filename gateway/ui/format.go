package ui

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// decimal reads an amount of the API, 0 for none.
func decimal(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64) // it is 0 where there is none
	return n
}

// usd writes an amount with cents, and a small one with all its digits.
func usd(text string) string {
	n := decimal(text)
	if text == "" || n != 0 && math.Abs(n) < 0.01 {
		return text
	}
	return strconv.FormatFloat(n, 'f', 2, 64)
}

// amount writes an amount of the API in USD, such as $1,234.56; "" for none.
func amount(text string) string {
	if text == "" {
		return ""
	}
	return usdOf(decimal(text))
}

// usdOf writes an amount in USD with separators and two decimals; one below a cent has up to six.
func usdOf(n float64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	if n != 0 && n < 0.005 {
		return sign + "$" + strings.TrimRight(strconv.FormatFloat(n, 'f', 6, 64), "0")
	}
	whole, cents, _ := strings.Cut(strconv.FormatFloat(n, 'f', 2, 64), ".")
	return sign + "$" + grouped(whole) + "." + cents
}

// count writes a number with separators.
func count(n int64) string {
	if n < 0 {
		return "-" + grouped(strconv.FormatInt(-n, 10))
	}
	return grouped(strconv.FormatInt(n, 10))
}

// grouped separates the thousands of a number's digits.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// hoursPerMonth is the length of a month, as in all monthly prices of the gateway.
const hoursPerMonth = 730

// month returns the monthly amount of a rate per hour, in USD.
func month(perHour string) string {
	return strconv.FormatFloat(decimal(perHour)*hoursPerMonth, 'f', 2, 64)
}

// short returns the beginning of a long name.
func short(text string) string {
	if letters := []rune(text); len(letters) > 12 {
		return string(letters[:12]) + "…"
	}
	return text
}

// words writes an identifier as words.
func words(text string) string { return strings.NewReplacer("_", " ", "-", " ").Replace(text) }

// title writes an identifier as words that begin with a capital.
func title(text string) string {
	letters := []rune(words(text))
	if len(letters) == 0 {
		return ""
	}
	return strings.ToUpper(string(letters[:1])) + string(letters[1:])
}

// plural writes a number with a noun, such as 1 request or 2 requests.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(int64(n)) + " " + noun + "s"
}

// stamp writes a time for programs.
func stamp(t any) string {
	if at, ok := timeOf(t); ok {
		return at.UTC().Format(time.RFC3339)
	}
	return ""
}

// moment writes a time for people, with its zone; "" for none.
func moment(t any) string {
	if at, ok := timeOf(t); ok {
		return at.Format("2006-01-02 15:04 MST")
	}
	return ""
}

// timeOf reads a time or a pointer to one, in UTC unless it has a zone of its own. The zero time is none.
func timeOf(t any) (time.Time, bool) {
	if p, ok := t.(*time.Time); ok && p != nil {
		t = *p
	}
	at, ok := t.(time.Time)
	if at.Location() == time.Local {
		at = at.UTC()
	}
	return at, ok && !at.IsZero()
}

// age writes the time from another time until now in its largest unit, such as 3 h.
func age(now time.Time, t any) string {
	at, ok := timeOf(t)
	if !ok {
		return ""
	}
	return lasting(now.Sub(at))
}

// lasting writes a duration in its largest unit, such as 3 h; a negative one is 0 s.
func lasting(d time.Duration) string {
	for _, u := range []struct {
		name string
		of   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}} {
		if d >= u.of {
			return fmt.Sprintf("%d %s", d/u.of, u.name)
		}
	}
	return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
}

// pretty writes a value as JSON with indents.
func pretty(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return ""
	}
	return string(text)
}

// percent writes a share of 1 as a percentage.
func percent(share float64) string { return strconv.Itoa(int(math.Round(100*share))) + "%" }

// coordinate writes a number of a drawing.
func coordinate(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }
