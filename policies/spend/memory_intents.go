package spend

import (
	"slices"
	"strconv"
	"strings"
)

// repeats reports whether a wish has other intents than those that are past.
func (l *ledger) repeats(n *Note) bool {
	if n == nil || l.wishes[n.Wish][n.Intent] != "" {
		return false
	}
	for id := range l.wishes[n.Wish] {
		if !slices.Contains(n.Past, id) {
			return true
		}
	}
	return false
}

// note notes an intent.
func (l *ledger) note(n *Note, now int64) {
	if n == nil {
		return
	}
	if l.wishes[n.Wish] == nil {
		l.wishes[n.Wish] = make(map[string]string)
	}
	l.wishes[n.Wish][n.Intent] = strconv.FormatInt(now, 10) + " " + n.Row
}

// finish has an intent go on.
func (l *ledger) finish(e *Ending) {
	switch {
	case e == nil || e.Was != "" && said(l.wishes[e.Wish][e.Intent]) != said(e.Was):
	case e.Row == "":
		delete(l.wishes[e.Wish], e.Intent)
	default:
		l.wishes[e.Wish][e.Intent] = e.Row
	}
}

// said is the content of a row, without when it was noted.
func said(row string) string {
	_, text, _ := strings.Cut(row, " ")
	return text
}
