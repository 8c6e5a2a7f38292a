package prose_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/prose"
)

var update = flag.Bool("update", false, "lower the allowances in testdata to the present figures") //nolint:gochecknoglobals // a flag

// allowances are the numbers of faults that parts of the project may still have. They only fall: with -update, a figure that has fallen
// is written, and one that has risen stays.
type allowances struct {
	file    string
	allowed map[string]int
	found   map[string]int
}

func readAllowances(t *testing.T, file string) *allowances {
	t.Helper()
	a := &allowances{"testdata/" + file, map[string]int{}, map[string]int{}}
	text, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, n, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if count, err := strconv.Atoi(n); ok && err == nil {
			a.allowed[name] = count
		}
	}
	return a
}

// check reports the faults above the allowances, and allowances that are no longer needed.
func (a *allowances) check(t *testing.T, details map[string][]string) {
	t.Helper()
	if *update {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(a.found)) {
			n := a.found[name]
			if allowed, listed := a.allowed[name]; listed {
				n = min(n, allowed)
			}
			if n > 0 {
				fmt.Fprintf(&b, "%s\t%d\n", name, n)
			}
		}
		if err := os.WriteFile(a.file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(a.found)) {
		if a.found[name] > a.allowed[name] {
			t.Errorf("%s: %d, at most %d allowed:\n  %s", name, a.found[name], a.allowed[name], strings.Join(details[name], "\n  "))
		}
	}
	for name, n := range a.allowed {
		if a.found[name] < n {
			t.Errorf("%s: %d allowed and %d left: lower it with go test ./test/prose -update", name, n, a.found[name])
		}
	}
}

// Comments, messages and pages use the measured forms at most twice as often as net/http, except where an allowance is left.
func TestForms(t *testing.T) {
	t.Parallel()
	a, details := readAllowances(t, "forms.txt"), map[string][]string{}
	all := map[string]*prose.Tally{"comments": {}, "messages": {}, "pages": {}}
	measure := func(kind, place, text string) {
		tally := prose.Count(text)
		all[kind].Add(tally)
		for form, n := range tally.Over() {
			name := place + " " + form
			if a.found[name] = n; n > a.allowed[name] && !*update {
				details[name] = prose.Find(text, form)
			}
		}
	}
	for _, s := range sources(t) {
		measure("comments", s.Folder+" comments", s.Comments)
		var messages strings.Builder
		for _, m := range s.Messages {
			messages.WriteString(m.Text + ".\n")
		}
		measure("messages", s.Folder+" messages", messages.String())
	}
	for page, text := range pages(t) {
		measure("pages", page, prose.Bare(text))
	}
	a.check(t, details)
	for _, kind := range prose.Sorted(map[string]int{"comments": 0, "messages": 0, "pages": 0}) {
		line := fmt.Sprintf("%-9s %6d words", kind, all[kind].Words)
		for _, f := range prose.Forms() {
			line += fmt.Sprintf("  %s %.2f (%.2f)", f.Name, float64(all[kind].Counts[f.Name])*1000/float64(all[kind].Words), f.Bar)
		}
		t.Log(line)
	}
}

func sources(t *testing.T) []prose.Source {
	t.Helper()
	all, err := prose.Sources(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 60 {
		t.Fatalf("%d packages only", len(all))
	}
	return all
}

// Log messages and problem texts name their subject first, are short and use plain words.
func TestMessages(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/words.txt")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			words = append(words, regexp.QuoteMeta(line))
		}
	}
	avoided := regexp.MustCompile(`(?i)\b(?:` + strings.Join(words, "|") + `)\b`)
	a, details := readAllowances(t, "messages.txt"), map[string][]string{}
	n := 0
	for _, s := range sources(t) {
		for _, m := range s.Messages {
			if m.Kind != prose.Log && m.Kind != prose.Problem {
				continue
			}
			n++
			for _, fault := range faults(m.Text, avoided) {
				a.found[s.Folder]++
				details[s.Folder] = append(details[s.Folder], m.String()+": "+fault)
			}
		}
	}
	if n < 250 {
		t.Errorf("%d messages only", n)
	}
	a.check(t, details)
}

// longest is the length, in bytes, of a message without a value.
const longest = 120

var pronouns = strings.Fields("it its that this what these those they them their he she his her one none nobody who whoever whose which something nothing anything") //nolint:gochecknoglobals // read only

// faults returns the rules that a message breaks.
func faults(text string, avoided *regexp.Regexp) (list []string) {
	words := strings.Fields(strings.ToLower(text))
	for i, word := range words[:min(2, len(words))] {
		if slices.Contains(pronouns, strings.Trim(word, ",.:;")) && (i == 0 || !slices.Contains(pronouns, words[0])) && (i != 1 || word != "that") {
			list = append(list, fmt.Sprintf("pronoun %q before the subject", word))
		}
	}
	if word := avoided.FindString(text); word != "" {
		list = append(list, fmt.Sprintf("avoid %q", word))
	}
	if len(text) >= longest && !strings.Contains(text, "%") {
		list = append(list, fmt.Sprintf("%d characters", len(text)))
	}
	return list
}

// The search finds the messages of the product. With -v, all of them are printed: go test ./test/prose -run TestList -v.
func TestList(t *testing.T) {
	t.Parallel()
	found := 0
	for _, s := range sources(t) {
		found += len(s.Messages)
		for _, m := range s.Messages {
			if testing.Verbose() {
				fmt.Println(m)
			}
		}
	}
	if found < 1000 {
		t.Errorf("%d messages are found, and there are more than 1,000: the search misses some", found)
	}
}
