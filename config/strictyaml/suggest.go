package strictyaml

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// few names are all listed in a hint.
const few = 8

// suggest returns the name that was probably meant: the nearest to the written one or, where none is near and they are few, all of them.
// Near is two edits, since swapping two letters is two, or one for very short words, or a third of a long one.
func suggest(written string, names []string) string {
	const longest = 64
	if len(written) <= longest {
		best, nearest := "", 1+max(min(2, len(written)/2), len(written)/3)
		for _, name := range names {
			if d := levenshtein.ComputeDistance(folded(written), folded(name)); d < nearest {
				best, nearest = name, d
			}
		}
		if best != "" {
			return `did you mean "` + best + `"?`
		}
	}
	if len(names) == 0 || len(names) > few {
		return ""
	}
	return "known: " + strings.Join(names, ", ")
}

// folded makes spellings equal that people mix up: case, hyphens for underscores, and words run together.
func folded(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}
