package storetest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// repeats reports whether a fingerprint has intents other than the ignored ones.
func (l *accounts) repeats(n *ledger.IntentRecord) bool {
	if n == nil || l.wishes[n.Fingerprint][n.Intent] != "" {
		return false
	}
	for id := range l.wishes[n.Fingerprint] {
		if !slices.Contains(n.Ignored, id) {
			return true
		}
	}
	return false
}

// note records an intent.
func (l *accounts) note(n *ledger.IntentRecord, now int64) {
	if n == nil {
		return
	}
	if l.wishes[n.Fingerprint] == nil {
		l.wishes[n.Fingerprint] = make(map[string]string)
	}
	l.wishes[n.Fingerprint][n.Intent] = strconv.FormatInt(now, 10) + " " + n.Row
}

// finish applies an update to an intent.
func (l *accounts) finish(e *ledger.IntentUpdate) {
	switch {
	case e == nil || e.OldRow != "" && rowContent(l.wishes[e.Fingerprint][e.Intent]) != rowContent(e.OldRow):
	case e.Row == "":
		delete(l.wishes[e.Fingerprint], e.Intent)
	default:
		l.wishes[e.Fingerprint][e.Intent] = e.Row
	}
}

// rowContent returns the content of a row without the time of its recording.
func rowContent(row string) string {
	_, text, _ := strings.Cut(row, " ")
	return text
}
