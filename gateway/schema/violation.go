package schema

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits on the violations reported for one body.
const (
	maxViolations = 50
	maxFaults     = 200 // validator errors that are processed
	maxEcho       = 64  // maximum characters of a name in a message
)

// Violation describes one error in a body or query.
type Violation struct {
	// Pointer is the JSON Pointer (RFC 6901) to the invalid value. It is "" for the whole body and for query parameters. For a missing or
	// unknown member, it is the pointer to the enclosing object.
	Pointer string
	// Location is the location of the error in readable form: "$", "$.gpu.count" or "$.ports[0]" in a body, or "query.tail" for a query
	// parameter.
	Location string
	// Keyword is the violated JSON Schema keyword or the name of a rule.
	Keyword string
	// Message describes valid values. It never contains the invalid value.
	Message string
	// Status is the HTTP status for the violation: 422 if the value can never be valid, or 400 if a rule between fields is violated.
	Status int
}

// String returns the violation with its location, for example "$.gpu.count: must be at least 1".
func (v Violation) String() string { return v.Location + ": " + v.Message }

// at returns a violation at the path tokens. A token is a member name (string) or an array index (int).
func at(status int, keyword, message string, tokens ...any) Violation {
	var pointer, location strings.Builder
	location.WriteByte('$')
	for _, t := range tokens {
		pointer.WriteByte('/')
		switch t := t.(type) {
		case int:
			pointer.WriteString(strconv.Itoa(t))
			fmt.Fprintf(&location, "[%d]", t)
		case string:
			t = clip(t)
			pointer.WriteString(escapeToken(t))
			if isIdentifier(t) {
				location.WriteString("." + t)
			} else {
				location.WriteString("[" + quote(t) + "]")
			}
		}
	}
	return Violation{Pointer: pointer.String(), Location: location.String(), Keyword: keyword, Message: message, Status: status}
}

// inQuery returns a violation about a query parameter.
func inQuery(status int, keyword, message, name string) Violation {
	return Violation{Location: "query." + name, Keyword: keyword, Message: message, Status: status}
}

// tidy sorts violations, removes duplicates and limits their number.
func tidy(vs []Violation) []Violation {
	slices.SortFunc(vs, func(a, b Violation) int {
		return cmp.Or(
			comparePointers(a.Pointer, b.Pointer),
			cmp.Compare(a.Location, b.Location), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Message, b.Message),
		)
	})
	vs = slices.Compact(vs)
	return vs[:min(len(vs), maxViolations)]
}

// comparePointers compares two pointers for sorting. A pointer precedes the pointers to its parts. Array indexes are ordered numerically,
// and names by bytes.
func comparePointers(a, b string) int {
	a, moreA := strings.CutPrefix(a, "/")
	b, moreB := strings.CutPrefix(b, "/")
	for moreA && moreB {
		var x, y string
		x, a, moreA = strings.Cut(a, "/")
		y, b, moreB = strings.Cut(b, "/")
		i, isIndexX := index(x)
		j, isIndexY := index(y)
		if isIndexX && isIndexY && i != j {
			return cmp.Compare(i, j)
		}
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	switch {
	case moreA:
		return 1
	case moreB:
		return -1
	}
	return 0
}

func isIdentifier(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// quote returns s in single quotes. It escapes unprintable characters.
func quote(s string) string {
	q := strconv.QuoteToGraphic(clip(s))
	q = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
	return "'" + strings.ReplaceAll(q, "'", `\'`) + "'"
}

func clip(s string) string {
	if utf8.RuneCountInString(s) <= maxEcho {
		return s
	}
	return string([]rune(s)[:maxEcho]) + "…"
}

func unprocessable(keyword, message string, tokens ...any) Violation {
	return at(http.StatusUnprocessableEntity, keyword, message, tokens...)
}
