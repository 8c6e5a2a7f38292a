package fault

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
)

// longestName is the length in bytes of the longest misspelt name for which suggestions are computed.
const longestName = 64

// Nearest returns the name with the smallest edit distance from the misspelt name written, or "" if no name is close enough. The largest
// accepted distance is two edits, so that two swapped letters are accepted; it is one edit for very short names, and a third of the letters
// for long names. Nearest ignores case, hyphens and underscores. Among equally close names, it prefers one with the length of written, and
// then the first in names.
func Nearest(written string, names []string) string {
	if len(written) > longestName {
		return ""
	}
	best, nearest, asked := "", 1+max(min(2, len(written)/2), len(written)/3), folded(written)
	for _, name := range names {
		d := levenshtein.ComputeDistance(asked, folded(name))
		if d < nearest || d == nearest && best != "" && len(name) == len(written) && len(best) != len(written) {
			best, nearest = name, d
		}
	}
	return best
}

// folded returns s in lower case without hyphens and underscores, because people often confuse these.
func folded(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(s), "-", ""), "_", "")
}

// mostMeant limits the names that [Abbreviates] returns.
const mostMeant = 3

// Abbreviates returns the indexes of at most three names that contain every word of written, those with the fewest words first. For
// example, "L4" matches "NVIDIA L4", and "rtx4090" matches "NVIDIA GeForce RTX 4090". If written contains no digit, Abbreviates returns
// nil.
func Abbreviates(written string, names []string) []int {
	asked := words(written)
	if len(written) > longestName || !strings.ContainsAny(written, "0123456789") {
		return nil
	}
	var found []int
	lengths := make(map[int]int)
	for i, name := range names {
		if has := words(name); !slices.ContainsFunc(asked, func(word string) bool { return !contains(has, word) }) {
			found, lengths[i] = append(found, i), len(has)
		}
	}
	slices.SortStableFunc(found, func(a, b int) int { return cmp.Compare(lengths[a], lengths[b]) })
	return found[:min(len(found), mostMeant)]
}

// words splits a name into lower-case words at all characters other than letters and digits.
func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// contains reports whether word is one of the words in has, or the concatenation of consecutive words in has.
func contains(has []string, word string) bool {
	for i := range has {
		for end := i + 1; end <= len(has); end++ {
			if strings.Join(has[i:end], "") == word {
				return true
			}
		}
	}
	return false
}
