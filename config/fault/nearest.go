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

// Nearest returns the name closest to a misspelt one by edit distance, or "" if no name is close enough. Names with up to two edits are
// close, because swapping two letters counts as two edits; for very short names the limit is one edit, and for long names a third of the
// letters. Case, hyphens and underscores are ignored. Among equally close names, one of the same length is preferred, then the first.
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

// folded removes differences that people often confuse: case, hyphens, underscores and missing word breaks.
func folded(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(s), "-", ""), "_", "")
}

// mostMeant limits the names that [Abbreviates] returns.
const mostMeant = 3

// Abbreviates returns the indexes of at most three names that contain every word of written, names with the fewest words first. For
// example, "L4" matches "NVIDIA L4", and "rtx4090" matches "NVIDIA GeForce RTX 4090". A text without a digit matches no name.
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

// contains reports whether word is one of the words of a name, or consecutive words joined together.
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
