package usage

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Call is one completed call of a legacy API.
type Call struct {
	// Org and Key identify the caller.
	Org, Key string
	// Dialect is "v1" or "graphql".
	Dialect string
	// Operations lists the requested operations: one operation of v1, or the root fields of a GraphQL document. Each is
	// counted in its own row. The names are known to the gateway and never the caller's text.
	Operations []string
	// Agent is the unmodified User-Agent header.
	Agent string
	// Status is the HTTP status of the response.
	Status int
	// V2 lists the v2 operations that the call made.
	V2 []string
	// Lost lists the fields that v2 has no equivalent for.
	Lost []string
}

// RowKey identifies a row, which counts calls that have all these properties in common.
type RowKey struct {
	Key       string `json:"key"`
	Dialect   string `json:"dialect"`
	Operation string `json:"operation"`
	// Agent is the program as a product token with its major version, or NoAgent or OtherAgent.
	Agent string `json:"agent"`
}

// Totals holds the counts of a row.
type Totals struct {
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Statuses counts responses by class: "2xx", "4xx", "5xx".
	Statuses map[string]int64 `json:"statuses"`
	// V2 counts calls by the v2 operations that they made.
	V2 map[string]int64 `json:"v2,omitempty"`
	// Lost counts calls by their fields that v2 has no equivalent for.
	Lost map[string]int64 `json:"lost,omitempty"`
}

// Row is one row of an organisation.
type Row struct {
	RowKey
	Totals
}

// Batch holds totals to add to the stored rows.
type Batch struct {
	Org string
	// Source and Seq identify the batch. Batches of one source are written in order, and a repeated batch is not counted
	// again.
	Source string
	Seq    int64
	Rows   []Row
}

// Writer stores batches. After an error, the batch may or may not have been written; the Recorder sends it again until a
// write succeeds.
type Writer interface {
	Write(ctx context.Context, b Batch) error
}

// Agents for programs without a usable name.
const (
	// NoAgent is the program name of a call without a User-Agent.
	NoAgent = "none"
	// OtherAgent is the program name of programs beyond MaxAgents and of programs with an invalid name.
	OtherAgent = "other"
)

// Limits on the rows that callers can create.
const (
	// MaxAgents is the maximum number of distinct programs of one organisation.
	MaxAgents = 32
	// maxName is the maximum length of the names of programs and fields in bytes.
	maxName = 48
	// maxLost is the maximum number of distinct fields of one row.
	maxLost = 32
)

// Agent reduces a User-Agent header (RFC 9110, section 10.1.5) to the name and the major version of its first product:
// "python-requests/2.31.0 extra" becomes "python-requests/2".
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

// digits returns the leading number of text, or "" if it is too long for a version.
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

// token reports whether s is a token (RFC 9110, section 5.6.2).
func token(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}) < 0
}

// class returns the class of a status.
func class(status int) string {
	switch {
	case status < http.StatusOK || status > 599:
		return "other"
	default:
		return string(rune('0'+status/100)) + "xx"
	}
}

// lost returns the distinct names of fields, with "other" for invalid ones.
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

// Names returns the names in counts, most frequent first.
func Names(counts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return int(max(-1, min(1, counts[b]-counts[a])))
		}
		return strings.Compare(a, b)
	})
}
