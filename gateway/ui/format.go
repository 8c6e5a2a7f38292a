package ui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// decimal parses a decimal amount of the API. An empty or invalid text results in 0.
func decimal(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64) // an empty text is read as 0
	return n
}

// usdLimit formats an amount as a limit that permits it: in USD, rounded up to cents.
func usdLimit(text string) string {
	if text == "" {
		return ""
	}
	return strconv.FormatFloat(math.Ceil(decimal(text)*100-1e-6)/100, 'f', 2, 64)
}

// amount formats an amount of the API in USD, such as $1,234.56. It returns "" for an empty text.
func amount(text string) string {
	if text == "" {
		return ""
	}
	return usdOf(decimal(text))
}

// usdOf formats an amount in USD with separators and two decimals. It describes an amount below one cent in words.
func usdOf(n float64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	if n != 0 && n < 0.01 {
		return "less than $0.01"
	}
	return sign + "$" + chart.Separated(strconv.FormatFloat(n, 'f', 2, 64))
}

// count formats a number with thousands separators.
func count(n int64) string { return chart.Separated(strconv.FormatInt(n, 10)) }

// hoursPerMonth is the number of hours that the gateway bases monthly prices on.
const hoursPerMonth = 730

// readings are rewrites of amounts, counts and durations in notes and reasons of the API, applied in order. The API returns amounts with
// all decimals of the ledger.
//
//nolint:gochecknoglobals // read only
var readings = []struct {
	find *regexp.Regexp
	// read formats a match, given its subexpressions.
	read func(m []string) string
}{
	{regexp.MustCompile(`\$\.([A-Za-z_])`), func(m []string) string { return m[1] }}, // $.gpu.count is gpu.count
	{regexp.MustCompile(`\b(\d+) x (\d+ GB)?`), func(m []string) string {
		if m[1] == "1" && m[2] != "" {
			return m[2]
		}
		return m[1] + " × " + m[2]
	}},
	{regexp.MustCompile(`\bat ([\d.]*\d)( per GB and month)?`), func(m []string) string { return "at " + amount(m[1]) + cmp.Or(m[2], " per hour") }},
	{regexp.MustCompile(`([\d.]*\d) USD\b(.*?)(used) ([\d.]*\d), (reserved) ([\d.]*\d), (needed) ([\d.]*\d)`), func(m []string) string {
		return amount(m[1]) + m[2] + m[3] + " " + amount(m[4]) + ", " + m[5] + " " + amount(m[6]) + ", " + m[7] + " " + amount(m[8])
	}},
	{regexp.MustCompile(`(\b(?:per_[a-z]+|total), )([\d.]*\d) of ([\d.]*\d) left`), func(m []string) string {
		return m[1] + amount(m[2]) + " of " + amount(m[3]) + " left"
	}},
	{regexp.MustCompile(`([\d.]*\d) USD\b`), func(m []string) string { return amount(m[1]) }},
	{regexp.MustCompile(`\bper_([a-z]+)`), func(m []string) string { return "per " + m[1] }},
	{regexp.MustCompile(`\bresets in ([\dhm.]+s)`), func(m []string) string {
		d, _ := time.ParseDuration(m[1]) // an invalid duration does not occur
		return "resets in " + lastingFully(d)
	}},
}

// readable rewrites the figures in a note or reason of the API: amounts with two decimals, counts and durations with their units.
func readable(text string) string {
	for _, r := range readings {
		text = r.find.ReplaceAllStringFunc(text, func(found string) string { return r.read(r.find.FindStringSubmatch(found)) })
	}
	return text
}

// month converts an hourly rate to a monthly amount in USD.
func month(perHour string) string {
	return strconv.FormatFloat(decimal(perHour)*hoursPerMonth, 'f', 2, 64)
}

// short truncates a long name.
func short(text string) string {
	if letters := []rune(text); len(letters) > 12 {
		return string(letters[:12]) + "…"
	}
	return text
}

// words replaces the underscores and hyphens of an identifier with spaces.
func words(text string) string { return strings.NewReplacer("_", " ", "-", " ").Replace(text) }

// title returns an identifier as words, starting with a capital letter.
func title(text string) string { return upper(words(text)) }

// upper returns a text that starts with a capital letter.
func upper(text string) string { return withFirst(text, strings.ToUpper) }

// lower returns a text that starts with a lower-case letter, for use in a sentence.
func lower(text string) string { return withFirst(text, strings.ToLower) }

// withFirst returns a text with a changed first letter.
func withFirst(text string, change func(letter string) string) string {
	letters := []rune(text)
	if len(letters) == 0 {
		return ""
	}
	return change(string(letters[:1])) + string(letters[1:])
}

// joined lists names.
func joined[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

// plural formats a number with a noun, such as 1 request or 2 requests.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(int64(n)) + " " + noun + "s"
}

// stamp formats a time for machines.
func stamp(t any) string {
	if at, ok := timeOf(t); ok {
		return at.UTC().Format(time.RFC3339)
	}
	return ""
}

// moment formats a time with its zone. It returns "" for a zero time.
func moment(t any) string {
	if at, ok := timeOf(t); ok {
		return at.Format("2006-01-02 15:04 MST")
	}
	return ""
}

// timeOf converts a time.Time or *time.Time, in UTC unless it has another zone. It returns false for a zero time.
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

// lasting formats a duration in its largest unit, such as 3 h. A negative duration results in 0 s.
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

// lastingFully formats a duration in its two largest units, such as 2 h 29 min.
func lastingFully(d time.Duration) string {
	if d >= 24*time.Hour && d%(24*time.Hour) >= time.Hour {
		return lasting(d) + " " + lasting(d%(24*time.Hour))
	}
	if d < 24*time.Hour && d >= time.Hour && d%time.Hour >= time.Minute {
		return lasting(d) + " " + lasting(d%time.Hour)
	}
	return lasting(d)
}

// smallPercent formats a fraction as a percentage that is 0 only if the fraction is 0.
func smallPercent(share float64) string {
	if share > 0 && share < 0.01 {
		return "less than 1%"
	}
	return percent(share)
}

// pretty formats a value as indented JSON.
func pretty(v any) string {
	text, _ := json.MarshalIndent(v, "", "  ") // values in responses are JSON values
	return string(text)
}

// percent formats a fraction as a percentage.
func percent(share float64) string { return strconv.Itoa(int(math.Round(100*share))) + "%" }

// coordinate formats an SVG coordinate or a width with one decimal.
func coordinate(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }
