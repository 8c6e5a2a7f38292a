package fault

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
)

// longestName bounds the misspelt names that suggestions are computed for, in bytes.
const longestName = 64

// Nearest returns the name that was probably meant by a misspelt one: the one with the fewest edits, "" if every name has too many. Two
// edits are few, since two swapped letters are two; one in a very short name; a third of the letters in a long name. Case, hyphens and
// underscores are ignored. Of several such names, a name of the same length is preferred, then the first.
func Nearest(written string, names []string) string {
	if len(written) > longestName {
		return ""
	}
	best, nearest := "", 1+max(min(2, len(written)/2), len(written)/3)
	for _, name := range names {
		d := levenshtein.ComputeDistance(folded(written), folded(name))
		if d < nearest || d == nearest && best != "" && len(name) == len(written) && len(best) != len(written) {
			best, nearest = name, d
		}
	}
	return best
}

// folded makes spellings equal that people mix up: case, hyphens for underscores, and words run together.
func folded(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// mostMeant bounds the names that [Abbreviates] returns.
const mostMeant = 3

// Abbreviates returns the indexes of the names that have every word of written, at most three, those with the fewest words first: of
// "NVIDIA L4" for "L4", and of "NVIDIA GeForce RTX 4090" for "rtx4090". A written name without a digit abbreviates nothing.
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

// words splits a name at everything but letters and digits, in lower case.
func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// contains reports whether word is one of the words of a name, or several consecutive ones run together.
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
