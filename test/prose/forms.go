package prose

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Form is a sentence pattern that native engineers rarely write and that makes a sentence hard to follow.
type Form struct {
	Name string
	// Bar is the highest permitted rate per 1,000 words: twice the rate in the comments of net/http, or the smallest rate that matters
	// where net/http has none.
	Bar     float64
	pattern *regexp.Regexp
}

// Forms returns the measured patterns. The rates of net/http, for comparison: relative 0.10, that-of 0.08, is-how 0.21, is-none 0,
// of-which 0.42, behind 0.06, told 0.15.
func Forms() []Form {
	compile := regexp.MustCompile
	return []Form{
		{"relative", 0.2, compile(`\b(?:[Ww]hat|[Ww]hoever|[Ww]hatever|[Ww]ho) (?:is|was|has|are|were|have|had|they|it|a|the|passes|ends|wants|differs|comes|runs|costs|others|another|policies|callers|makes|made|cannot|does|takes|stands|needs)\b`)},
		{"that-of", 0.16, compile(`\b(?:that|those) of\b`)},
		{"is-how", 0.5, compile(`\b(?:is|are) (?:how (?:long|much|many|often|far|late|old)|when|what|whether|where|whose)\b`)},
		{"is-none", 0.2, compile(`\b(?:is|are|has|have|with|for) (?:none|nothing)\b|\b(?:is|are) no [a-z]\w+`)},
		{"of-which", 0.9, compile(`\b(?:of|by|in|to|for|from|at|on) (?:which|whom)\b`)},
		{"behind", 0.12, compile(`\b(?:behind|beside)\b`)},
		{"told", 0.3, compile(`\b(?:tells?|told)\b`)},
	}
}

// harmless are "is no" phrases that read naturally.
var harmless = regexp.MustCompile(`\b(?:is|are) no (?:longer|more|need|way|other|such|different)`)

// Tally counts the words of a text and the occurrences of each form in it.
type Tally struct {
	Words  int
	Counts map[string]int
}

// Count returns the tally of a text.
func Count(text string) Tally {
	t := Tally{Words: len(strings.Fields(text)), Counts: map[string]int{}}
	plain := harmless.ReplaceAllLiteralString(text, "_")
	for _, f := range Forms() {
		t.Counts[f.Name] = len(f.pattern.FindAllString(plain, -1))
	}
	return t
}

// Add adds the counts of another tally to t.
func (t *Tally) Add(other Tally) {
	if t.Counts == nil {
		t.Counts = map[string]int{}
	}
	t.Words += other.Words
	for name, n := range other.Counts {
		t.Counts[name] += n
	}
}

// Over returns the forms whose rate in t is above their bar, with their counts. A single occurrence is never above the bar.
func (t *Tally) Over() map[string]int {
	over := map[string]int{}
	for _, f := range Forms() {
		if n := t.Counts[f.Name]; n > 1 && float64(n)*1000 > f.Bar*float64(t.Words) {
			over[f.Name] = n
		}
	}
	return over
}

// Find returns the phrases of a text that match a form, in order, each with some words around it.
func Find(text, form string) []string {
	var found []string
	for _, f := range Forms() {
		if f.Name != form {
			continue
		}
		for _, at := range f.pattern.FindAllStringIndex(text, -1) {
			phrase := text[max(at[0]-30, 0):min(at[1]+30, len(text))]
			if !harmless.MatchString(phrase) {
				found = append(found, strings.ReplaceAll(phrase, "\n", " "))
			}
		}
	}
	return found
}

// Sorted returns the names of counted forms.
func Sorted(counts map[string]int) []string { return slices.Sorted(maps.Keys(counts)) }
