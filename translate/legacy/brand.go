package legacy

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
)

// defaultName is used if no name of the platform is known.
const defaultName = "Platform"

var brandPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,31}$`)

// KnownName returns the vendor's name in the form used in identifiers, or "" if the name is unknown.
func (c Config) KnownName() string { return cmp.Or(c.Brand, c.Derived) }

// Name returns KnownName, or a default name if KnownName is empty.
func (c Config) Name() string { return cmp.Or(c.KnownName(), defaultName) }

// LowerName returns Name with a lower-case first letter, for members that begin with the platform's name.
func (c Config) LowerName() string {
	name := c.Name()
	return strings.ToLower(name[:1]) + name[1:]
}

// maxSpellings is the maximum number of spellings stored for an organisation.
const maxSpellings = 4

// RememberSpelling stores a caller's name for the platform. It does nothing if the operator has configured the name.
func (s *Session) RememberSpelling(ctx context.Context, c Config, name string) {
	if c.Brand != "" || name == c.Name() || !brandPattern.MatchString(name) {
		return
	}
	if seen := s.spellings(ctx); len(seen) < maxSpellings && !seen[name] {
		translate.AddNotes(ctx, s.Client, translate.KindSpelling, map[string]bool{name: true})
	}
}

// PlatformNames returns the names of the platform that identifiers in a response contain. If the configuration sets a name, PlatformNames
// returns only this name. Otherwise it returns the known name of the platform, the name that the caller used (spelled, unless it is ""),
// and the names that other callers of the organisation have used.
func (s *Session) PlatformNames(ctx context.Context, c Config, spelled string) []string {
	if c.Brand != "" {
		return []string{c.Brand}
	}
	names := map[string]bool{c.KnownName(): true, spelled: true}
	maps.Copy(names, s.spellings(ctx))
	delete(names, "")
	if len(names) == 0 {
		return []string{defaultName}
	}
	return slices.Sorted(maps.Keys(names))
}

// spellings returns the stored spellings of the organisation. If the store fails, only the known name is used.
func (s *Session) spellings(ctx context.Context) map[string]bool {
	seen, _ := Notes[bool](ctx, s, translate.KindSpelling)
	return seen
}
