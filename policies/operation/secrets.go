package operation

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// SecretReference is a placeholder for an account secret in the state of a resource.
type SecretReference struct {
	// Name is the name of the secret, or "" if it cannot be determined.
	Name string
	// Pointer is the JSON Pointer (RFC 6901) of the text that contains the placeholder: a string, or the name of a member.
	Pointer string
}

// A documented placeholder has the form {{ <PLATFORM>_SECRET_<name> }}. The platform publishes no grammar (reference
// platform-v2-growth, section 6), so any text in double braces that mentions a secret counts as a placeholder.
var (
	braces    = regexp.MustCompile(`(?s)\{[\s\p{Z}{]*\{((?:[^{}]|\{[^{]|\}[^}])*)`)
	mention   = regexp.MustCompile(`(?i)secret`)
	reference = regexp.MustCompile(`(?i)^\s*[a-z0-9]+_SECRET_([a-z_][a-z0-9_.\-/]*)\s*$`)
)

// SecretReferences returns the secret placeholders in a decoded JSON value, in both strings and member names, ordered by pointer
// within each object.
func SecretReferences(v any) (found []SecretReference) {
	switch v := v.(type) {
	case string:
		if !strings.Contains(v, "{") {
			return nil // as most strings, without the cost of a regular expression
		}
		for _, inner := range braces.FindAllStringSubmatch(v, -1) {
			if name := reference.FindStringSubmatch(inner[1]); name != nil {
				found = append(found, SecretReference{Name: name[1]})
			} else if mention.MatchString(inner[1]) {
				found = append(found, SecretReference{})
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = append(found, within(name, append(SecretReferences(name), SecretReferences(v[name])...))...)
		}
	case []any:
		for i, item := range v {
			found = append(found, within(strconv.Itoa(i), SecretReferences(item))...)
		}
	}
	return found
}

// within adds a member name or an array index to the front of the pointers of references.
func within(part string, found []SecretReference) []SecretReference {
	for i := range found {
		found[i].Pointer = string(jsontext.Pointer("").AppendToken(part)) + found[i].Pointer
	}
	return found
}
