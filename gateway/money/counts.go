package money

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Tokens are counts of tokens.
type Tokens struct {
	Input, Output int64
	// Cached is the part of Input that the server read from its prompt cache.
	Cached int64
	// Unsplit counts tokens that are reported only as a total.
	Unsplit int64
}

func (t Tokens) plus(o Tokens) Tokens {
	return Tokens{t.Input + o.Input, t.Output + o.Output, t.Cached + o.Cached, t.Unsplit + o.Unsplit}
}

// maxTokens is the largest valid count in a report. A larger count makes the report invalid.
const maxTokens = 1 << 31

// class is the meaning of a member of a usage report.
type class uint8

const (
	input class = iota
	output
	total
	// cached is the part of input that was read from a cache.
	cached
	// cacheRead and cacheWrite are input tokens that the count of class input may exclude; see excludesCache.
	cacheRead
	cacheWrite
	// extraInput and extraOutput are excluded from input and output, but included in total.
	extraInput
	extraOutput
	classes
)

// classOf returns the class of a member by its normalized name.
func classOf(name string) (class, bool) {
	switch name {
	case "prompttokens", "inputtokens", "input", "prompt", "prompttokencount", "inputtokencount", "prompttokenscount", "inputtokenscount",
		"numprompttokens", "numinputtokens", "inputlength", "promptn", "promptevalcount", "tokensevaluated":
		return input, true
	case "completiontokens", "outputtokens", "output", "completion", "completiontokencount", "outputtokencount", "completiontokenscount",
		"outputtokenscount", "candidatestokencount", "responsetokencount", "generatedtokens", "generatedtokencount", "numcompletiontokens",
		"numoutputtokens", "numgeneratedtokens", "totaloutputtokens", "predictedn", "evalcount", "tokenspredicted":
		return output, true
	case "totaltokens", "totaltokencount", "totaltokenscount", "numtotaltokens", "total", "tokens":
		return total, true
	case "cachedtokens", "promptcachehittokens", "cachedcontenttokencount", "numcachedtokens", "cachedinputtokens", "cachedprompttokens":
		return cached, true
	case "cachereadinputtokens", "cachen":
		return cacheRead, true
	case "cachecreationinputtokens", "cachewriteinputtokens":
		return cacheWrite, true
	case "tooluseprompttokencount":
		return extraInput, true
	case "thoughtstokencount":
		return extraOutput, true
	}
	return 0, false
}

// excludesCache reports whether a member of class input excludes the tokens read from and written to a cache. This is the case in the
// Messages API and its cloud versions, and in the timings of llama.cpp.
func excludesCache(name string) bool { return name == "inputtokens" || name == "promptn" }

// normal returns a name in lower case without underscores and hyphens, because servers spell names differently.
func normal(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(name, "_", ""), "-", ""))
}

// member is a count with one of its names.
type member struct {
	class class
	name  string
	n     int64
}

// report is one usage report.
type report struct {
	members []member
	// invalid is set if a member is not a valid count.
	invalid bool
}

// set adds a member. If a name occurs twice, the last value is used, as in most JSON decoders.
func (r *report) set(c class, name string, n int64) {
	if i := slices.IndexFunc(r.members, func(m member) bool { return m.name == name }); i >= 0 {
		r.members[i].n = n
		return
	}
	r.members = append(r.members, member{c, name, n})
}

// number adds a numeric member. An invalid count makes the report invalid, with two exceptions: a total, because it follows from the other
// members, and a count of cached tokens, because these tokens are then charged like other tokens.
func (r *report) number(c class, name string, token jsontext.Token) {
	n, ok := count(token.String())
	if !ok {
		r.invalid = r.invalid || c != total && c != cached
		return
	}
	r.set(c, name, n)
}

// count parses a count. Some servers write integers as 10.0.
func count(text string) (int64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 || n > maxTokens || n != math.Trunc(n) {
		return 0, false
	}
	return int64(n), true
}

// of returns the count of a class. If a count has several names, their values are equal, except that some servers report 0 under names they
// do not use.
func (r *report) of(c class) (n int64, given bool) {
	for _, m := range r.members {
		if m.class == c {
			n, given = max(n, m.n), true
		}
	}
	return n, given
}

func (r *report) has(c class) bool { _, given := r.of(c); return given }

// whole reports whether a report includes all tokens. Otherwise the report includes a part of them, and another event has the rest.
func (r *report) whole() bool { return r.has(total) || r.has(input) && r.has(output) }

// empty reports whether a report counts nothing. Servers send such reports before they have counted.
func (r *report) empty() bool {
	return r.invalid || !slices.ContainsFunc(r.members, func(m member) bool { return m.n > 0 })
}

// over returns r merged over an earlier report of the same tokens.
func (r report) over(earlier *report) report {
	next := r
	next.members = slices.Clone(r.members)
	for _, m := range earlier.members {
		cache := m.class == cacheRead || m.class == cacheWrite || m.class == cached
		if r.has(m.class) || r.whole() && !cache || r.has(total) && m.class != cached {
			continue
		}
		next.members = append(next.members, m)
	}
	return next
}

// continues reports whether r may include the tokens of an earlier report.
func (r *report) continues(earlier *report) bool {
	if !r.whole() || !earlier.whole() {
		return true
	}
	if was, now := earlier.sum(), r.sum(); was.Unsplit > 0 || now.Unsplit > 0 {
		return now.Input+now.Output+now.Unsplit >= was.Input+was.Output+was.Unsplit
	}
	in, _ := r.of(input)
	before, _ := earlier.of(input)
	out, _ := r.of(output)
	less, _ := earlier.of(output)
	return in == before && out >= less
}

// tokens returns the counts of a report. known is false if a part of them is missing. A report without output tokens is complete if the
// response has no content, for example for embeddings.
func (r *report) tokens(content bool) (t Tokens, known bool) {
	known = !r.empty() && (r.whole() || r.has(input) && !content)
	return r.sum(), known
}

// sum returns the counts of a report.
func (r *report) sum() Tokens {
	var n [classes]int64
	var given [classes]bool
	for c := range classes {
		n[c], given[c] = r.of(c)
	}
	t := r.split(&n, &given)
	t.Cached = min(t.Input, max(n[cached], n[cacheRead]))
	return t
}

// split returns input and output tokens computed from the counts of the classes.
func (r *report) split(n *[classes]int64, given *[classes]bool) Tokens {
	if !given[total] {
		t := Tokens{Input: n[input] + n[extraInput], Output: n[output] + n[extraOutput]}
		if r.excludesCache() {
			t.Input += n[cacheRead] + n[cacheWrite]
		}
		return t
	}
	if cache := n[cacheRead] + n[cacheWrite]; given[input] && r.excludesCache() && n[total] >= n[input]+n[output]+cache {
		n[input] += cache
	}
	switch {
	case given[input] && given[output]:
		// The total includes tokens missing from both counts, such as reasoning and tool prompts, which are charged as output.
		return Tokens{Input: n[input], Output: max(n[output], n[total]-n[input])}
	case given[input]:
		return Tokens{Input: n[input], Output: max(0, n[total]-n[input])}
	case given[output]:
		return Tokens{Input: max(0, n[total]-n[output]), Output: n[output]}
	}
	return Tokens{Unsplit: n[total]}
}

// excludesCache reports whether no name used for the input includes the cached tokens.
func (r *report) excludesCache() bool {
	return !slices.ContainsFunc(r.members, func(m member) bool { return m.class == input && !excludesCache(m.name) })
}
