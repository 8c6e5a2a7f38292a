package prose

import (
	"regexp"
	"slices"
	"strings"
)

// Figures are those of one page.
type Figures struct {
	// Words counts the words outside of code blocks.
	Words int
	// Headless counts relative clauses without a noun before them, such as "what runs", per 1,000 words. Questions have none.
	Headless float64
	// Median is the length of the middle sentence, in words. Rows of tables and fragments of three words and fewer are no sentences.
	Median int
	// Long counts sentences of more than [Longest] words.
	Long int
}

// Longest is the number of words that a sentence may have.
const Longest = 35

// Measure returns the figures of a page in Markdown.
func Measure(page string) Figures {
	all := sentences(Bare(page))
	var f Figures
	var lengths []int
	headless := 0
	for _, s := range all {
		words := strings.Fields(s.text)
		f.Words += len(words)
		plain := lower(words)
		if !strings.HasSuffix(s.text, "?") {
			headless += headlessClauses(plain)
		}
		if s.row || len(words) <= 3 {
			continue
		}
		lengths = append(lengths, len(words))
		if len(words) > Longest {
			f.Long++
		}
	}
	if f.Words == 0 {
		return f
	}
	f.Headless = float64(headless) * 1000 / float64(f.Words)
	if len(lengths) > 0 {
		slices.Sort(lengths)
		f.Median = lengths[len(lengths)/2]
	}
	return f
}

// Bare returns a page without its blocks of code, its comments and its anchors.
func Bare(page string) string {
	for _, pattern := range []string{"(?sm)^ *```.*?^ *```", `(?s)<!--.*?-->`, `<[^>\n]+>`} {
		page = regexp.MustCompile(pattern).ReplaceAllLiteralString(page, "")
	}
	return page
}

// sentence is one of the text, or a cell's worth of a table.
type sentence struct {
	text string
	row  bool
}

// sentences splits a text at the ends of sentences, paragraphs and items of lists.
func sentences(text string) (all []sentence) {
	begins := regexp.MustCompile(`(?m)^ *(?:#+|[-*]|[0-9]+\.) `)
	ends := regexp.MustCompile(`[.!?:]["')*\]]*\s+`)
	for paragraph := range strings.SplitSeq(begins.ReplaceAllLiteralString(text, "\n\n"), "\n\n") {
		var prose []string
		for line := range strings.Lines(paragraph) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "|") {
				all = append(all, sentence{strings.ReplaceAll(line, "|", " "), true})
				continue
			}
			prose = append(prose, line)
		}
		rest := strings.Join(prose, " ")
		for rest != "" {
			end := len(rest)
			if at := ends.FindStringIndex(rest); at != nil {
				end = at[1]
			}
			if s := strings.TrimSpace(rest[:end]); s != "" {
				all = append(all, sentence{s, false})
			}
			rest = rest[end:]
		}
	}
	return all
}

// lower returns words in lower case, without what surrounds their letters.
func lower(words []string) []string {
	plain := make([]string, len(words))
	for i, w := range words {
		plain[i] = strings.Trim(strings.ToLower(w), "*_()[],.;:!?\"'")
	}
	return plain
}

// headlessClauses counts the words that begin a relative clause, with a word behind them that begins its verb or its subject.
func headlessClauses(words []string) (n int) {
	openers := []string{"what", "whatever", "who", "whoever"}
	followers := strings.Fields("is was has are were have had they it a the passes ends wants differs comes runs costs others another policies callers makes made " +
		"cannot does takes stands needs gives goes came ran calls asks reads may must can pays")
	for i, w := range words[:max(len(words)-1, 0)] {
		relates := i > 0 && (w == "who") && noun(words[i-1])
		if slices.Contains(openers, w) && slices.Contains(followers, words[i+1]) && !relates {
			n++
		}
	}
	return n
}

// noun reports whether "who" can relate to the word before it.
func noun(word string) bool {
	return slices.Contains(strings.Fields("caller callers user users operator operators admin admins person people anybody everybody reader readers owner owners"), word)
}
