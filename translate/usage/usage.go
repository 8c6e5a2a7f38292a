package usage

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Call is one call of a retired interface, after it was answered.
type Call struct {
	// Org and Key name the caller.
	Org, Key string
	// Dialect is "v1" or "graphql".
	Dialect string
	// Operations are the requested operations: one operation of v1, or the root fields of a
	// GraphQL document. Each is a row of its own. They are names the gateway knows, never the
	// caller's text.
	Operations []string
	// Agent is the User-Agent header as it came.
	Agent string
	// Status is the HTTP status of the answer.
	Status int
	// V2 lists the v2 operations the call became.
	V2 []string
	// Lost holds the fields that v2 has no place for.
	Lost []string
}

// RowKey names one row: the calls that are counted together.
type RowKey struct {
	Key       string `json:"key"`
	Dialect   string `json:"dialect"`
	Operation string `json:"operation"`
	// Agent is the program, as a product token with its major version, or one
	// of NoAgent and OtherAgent.
	Agent string `json:"agent"`
}

// Totals is the sum of the calls of a row.
type Totals struct {
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Statuses counts answers by class: "2xx", "4xx", "5xx".
	Statuses map[string]int64 `json:"statuses"`
	// V2 counts, by operation, the calls that became it.
	V2 map[string]int64 `json:"v2,omitempty"`
	// Lost counts, by field, the calls of which v2 has no place for something of it.
	Lost map[string]int64 `json:"lost,omitempty"`
}

// Row is one row of an organisation.
type Row struct {
	RowKey
	Totals
}

// Batch is sums to be added to the kept ones.
type Batch struct {
	Org string
	// Source and Seq name the batch: those of one source are written in order,
	// and one that comes again is not counted again.
	Source string
	Seq    int64
	Rows   []Row
}

// Writer keeps batches. An error leaves open whether the batch was written; it
// is sent again until it is.
type Writer interface {
	Write(ctx context.Context, b Batch) error
}

// Programs that have no name of their own.
const (
	// NoAgent is a call without a User-Agent.
	NoAgent = "none"
	// OtherAgent is a program beyond MaxAgents, or whose name cannot be read.
	OtherAgent = "other"
)

// Bounds of the rows that callers can cause.
const (
	// MaxAgents is how many programs are told apart in one organisation.
	MaxAgents = 32
	// maxName bounds the names of programs and fields, in bytes.
	maxName = 48
	// maxLost bounds the different fields of one row.
	maxLost = 32
)

// Agent cuts a User-Agent header (RFC 9110, section 10.1.5) to its first
// product, the name and the major version: "python-requests/2.31.0 extra" is
// "python-requests/2".
func Agent(header string) string {
	if strings.TrimSpace(header) == "" {
		return NoAgent
	}
	product, _, _ := strings.Cut(strings.TrimSpace(header), " ")
	name, version, _ := strings.Cut(product, "/")
	if !token(name) {
		return OtherAgent
	}
	name = name[:min(len(name), maxName-4)]
	if major := digits(version); major != "" {
		return name + "/" + major
	}
	return name
}

// digits returns the number text begins with, "" when it is no version's.
func digits(text string) string {
	n := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if n < 0 {
		n = len(text)
	}
	if n > 3 {
		return ""
	}
	return text[:n]
}

// token reports whether s is a token of RFC 9110, section 5.6.2.
func token(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}) < 0
}

// class is the class of a status.
func class(status int) string {
	switch {
	case status < http.StatusOK || status > 599:
		return "other"
	default:
		return string(rune('0'+status/100)) + "xx"
	}
}

// lost lists fields, each once.
func lost(names []string) []string {
	var fields []string
	for _, field := range names {
		if !token(field) || len(field) > maxName {
			field = "other"
		}
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// add counts one call.
func (s *Totals) add(c *Call, now time.Time) {
	if s.Count == 0 {
		s.First = now
		s.Statuses = make(map[string]int64, 1)
	}
	s.Count++
	s.Last = now
	s.Statuses[class(c.Status)]++
	for _, op := range c.V2 {
		increase(&s.V2, op)
	}
	for _, field := range lost(c.Lost) {
		if len(s.Lost) >= maxLost && s.Lost[field] == 0 {
			field = "other"
		}
		increase(&s.Lost, field)
	}
}

func increase(m *map[string]int64, name string) {
	if *m == nil {
		*m = make(map[string]int64)
	}
	(*m)[name]++
}

// Names returns the names of a count, the most frequent first.
func Names(counts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return int(max(-1, min(1, counts[b]-counts[a])))
		}
		return strings.Compare(a, b)
	})
}
