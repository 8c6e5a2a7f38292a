package prose

import (
	"regexp"
	"slices"
	"strings"
)

// Rename is a row of the table of renames in the changelog.
type Rename struct {
	Kind, Old string
	// New is the new name, or "removed" with a reason.
	New string
}

// Removed reports whether the name has no successor.
func (r Rename) Removed() bool { return strings.HasPrefix(r.New, "removed") }

// Renames returns the rows of the tables in a page whose header is "kind, before, now". A cell may list several names of one kind, in the
// order of their successors.
func Renames(page string) []Rename {
	var all []Rename
	inTable := false
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 {
			inTable = false
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case slices.Equal(cells, []string{"kind", "before", "now"}):
			inTable = true
		case inTable && !strings.HasPrefix(cells[0], "---"):
			before, now := names(cells[1]), names(cells[2])
			for i, old := range before {
				next := cells[2]
				if len(now) == len(before) {
					next = now[i]
				} else if len(now) == 1 {
					next = now[0]
				}
				all = append(all, Rename{cells[0], old, next})
			}
		}
	}
	return all
}

var quoted = regexp.MustCompile("`([^`]+)`")

// names returns the quoted names of a cell.
func names(cell string) []string {
	var list []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		list = append(list, m[1])
	}
	return list
}

// Matches reports whether a public name has the old name of the row as a part: elements of the path of a setting, the first words of a
// command, a member, or the whole name.
func (r Rename) Matches(name string) bool { return r.pattern(r.Old).MatchString(name) }

// Names reports whether a public name has the new name of the row as a part.
func (r Rename) Names(name string) bool { return r.pattern(r.New).MatchString(name) }

// Apply replaces the old name in a public name by the new one.
func (r Rename) Apply(name string) string {
	return r.pattern(r.Old).ReplaceAllString(name, "${1}"+strings.ReplaceAll(r.New, "$", "$$")+"${2}")
}

func (r Rename) pattern(name string) *regexp.Regexp {
	name = regexp.QuoteMeta(name)
	switch r.Kind {
	case "setting":
		return regexp.MustCompile(`(^|\.)` + name + `($|[.\[])`)
	case "command":
		return regexp.MustCompile(`(^|^tollgate )` + name + `($| )`)
	case "member":
		return regexp.MustCompile(`(^|: )` + name + `($)`)
	case "route":
		return regexp.MustCompile(`(^)` + name + `($|: )`)
	}
	return regexp.MustCompile(`(^)` + name + `($)`)
}

// Missing returns the names of before that now lacks and that no sequence of renames leads to a name of now.
func Missing(before, now Names, renames []Rename) []string {
	var missing []string
	for _, kind := range Kinds() {
		for _, name := range before[kind] {
			if !follow(kind, name, now[kind], renames) {
				missing = append(missing, kind+" "+name)
			}
		}
	}
	return missing
}

// follow reports whether renames lead from a name to one of now, or to its removal.
func follow(kind, name string, now []string, renames []Rename) bool {
	seen, open := map[string]bool{name: true}, []string{name}
	for len(open) > 0 {
		name, open = open[0], open[1:]
		if slices.Contains(now, name) {
			return true
		}
		for _, r := range renames {
			applies := r.Kind == kind || kind == "member" && r.Kind == "route"
			if !applies || !r.Matches(name) {
				continue
			}
			if r.Removed() {
				return true
			}
			if next := r.Apply(name); !seen[next] {
				seen[next] = true
				open = append(open, next)
			}
		}
	}
	return false
}

// Unknown returns the rows whose new name does not exist.
func Unknown(now Names, renames []Rename) []Rename {
	var unknown []Rename
	for _, r := range renames {
		kinds := []string{r.Kind}
		if r.Removed() || !slices.Contains(Kinds(), r.Kind) {
			continue
		}
		if !slices.ContainsFunc(kinds, func(kind string) bool { return slices.ContainsFunc(now[kind], r.Names) }) {
			unknown = append(unknown, r)
		}
	}
	return unknown
}
