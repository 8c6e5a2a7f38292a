package usage

import (
	"cmp"
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
	// Operations lists the requested operations: one operation of v1, or the root fields of a GraphQL document. Each operation is counted in
	// its own row. The names are known to the gateway and never text chosen by the caller.
	Operations []string
	// Agent is the unmodified User-Agent header.
	Agent string
	// Status is the HTTP status of the response.
	Status int
	// V2 lists the v2 operations into which the gateway translated the call.
	V2 []string
	// Lost lists the fields of the call without an equivalent in v2.
	Lost []string
}

// RowKey identifies a row. A row counts the calls that have all of these properties in common.
type RowKey struct {
	Key       string `json:"key"`
	Dialect   string `json:"dialect"`
	Operation string `json:"operation"`
	// Agent is the name of the program with its major version, NoAgent or OtherAgent.
	Agent string `json:"agent"`
}

// Totals holds the counters of a row.
type Totals struct {
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Statuses counts responses by class: "2xx", "4xx", "5xx".
	Statuses map[string]int64 `json:"statuses"`
	// V2 counts calls by the v2 operations into which the gateway translated them.
	V2 map[string]int64 `json:"v2,omitempty"`
	// Lost counts the calls that used a field without an equivalent in v2, by field.
	Lost map[string]int64 `json:"lost,omitempty"`
}

// Row holds the number of calls of an organisation with the same RowKey.
type Row struct {
	RowKey
	Totals
}

// Batch holds the totals that are to be added to the stored rows of an organisation.
type Batch struct {
	Org string
	// Source and Seq identify the batch. The batches of one source are written in order, and a repeated batch is counted only once.
	Source string
	Seq    int64
	Rows   []Row
}

// Writer stores batches. After an error, the batch may or may not have been written, and the Recorder writes it again until there is no
// error.
type Writer interface {
	Write(ctx context.Context, b Batch) error
}

// Agents for programs without a usable name.
const (
	// NoAgent is the program name of a call without a User-Agent.
	NoAgent = "none"
	// OtherAgent is the program name in two cases: the program has an invalid name, or the organisation already has MaxAgents other programs.
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

// Agent reduces a User-Agent header (RFC 9110, section 10.1.5) to the name and the major version of the first product:
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
	if status < http.StatusOK || status > 599 {
		return "other"
	}
	return string(rune('0'+status/100)) + "xx"
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
		increase(&s.V2, op, 1)
	}
	for _, field := range lost(c.Lost) {
		if len(s.Lost) >= maxLost && s.Lost[field] == 0 {
			field = "other"
		}
		increase(&s.Lost, field, 1)
	}
}

func increase(m *map[string]int64, name string, by int64) {
	if *m == nil {
		*m = make(map[string]int64)
	}
	(*m)[name] += by
}

// Names returns the keys of counts, sorted by count, largest first.
func Names(counts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}
