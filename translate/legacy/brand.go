package legacy

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/tollgate-dev/tollgate/translate"
)

// defaultName stands for the brand that nothing says.
const defaultName = "Platform"

var brandPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,31}$`)

// KnownName is the platform's name inside identifiers: the operator's, else the one in
// the platform's address, "" if that has none.
func (c Config) KnownName() string { return cmp.Or(c.Brand, registered(c.Host)) }

// Name is Known, and always a name.
func (c Config) Name() string { return cmp.Or(c.KnownName(), defaultName) }

// LowerName is Name with a small first letter, as members have it that begin with it.
func (c Config) LowerName() string {
	name := c.Name()
	return strings.ToLower(name[:1]) + name[1:]
}

// registered returns the name of the domain that a host was registered under, in letters
// and digits: AcmeCloud for api.acme-cloud.co.uk, "" for names that the public suffix list
// does not know, such as addresses and names of a private network.
func registered(host string) string {
	host = strings.ToLower(host)
	suffix, icann := publicsuffix.PublicSuffix(host)
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil || !icann && !strings.Contains(suffix, ".") {
		return ""
	}
	var brand strings.Builder
	for word := range strings.SplitSeq(strings.TrimSuffix(domain, "."+suffix), "-") {
		if word != "" {
			brand.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	name := brand.String()
	if !brandPattern.MatchString(name) {
		return ""
	}
	return name
}

// maxSpellings bounds the spellings that are remembered of an organisation.
const maxSpellings = 4

// RememberSpelling remembers a name that a caller has for the platform, if callers may have
// one of their own.
func (s *Session) RememberSpelling(ctx context.Context, c Config, name string) {
	if c.Brand != "" || name == c.Name() || !brandPattern.MatchString(name) {
		return
	}
	if seen := s.spellings(ctx); len(seen) < maxSpellings && !seen[name] {
		translate.AddNotes(ctx, s.Client, translate.KindSpelling, map[string]bool{name: true})
	}
}

// PlatformNames lists the names that the platform has inside the identifiers of an answer
// to a caller who spelled it, or "": the operator's alone if there is one, else the
// known one and those that callers of the organisation spelled.
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

// spellings are the names remembered of the organisation. Where the store cannot
// tell, the known name has to do.
func (s *Session) spellings(ctx context.Context) map[string]bool {
	seen, _ := Notes[bool](ctx, s, translate.KindSpelling)
	return seen
}
