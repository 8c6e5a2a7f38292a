package graphql

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
)

// Names used in reports in place of a caller's text.
const (
	// fieldInvalid is recorded for a request whose root fields cannot be determined.
	fieldInvalid = "invalid"
	// fieldUnknown is recorded for a root field that this API has never had.
	fieldUnknown = "unknown"
	// fieldIntrospection is recorded for __schema, __type and __typename.
	fieldIntrospection = "introspection"
)

// maxFieldNames is the maximum number of distinct root fields reported for one request.
const maxFieldNames = 16

// Fields returns the distinct names of the root fields of a request, for usage counts. The result is never empty, and never contains text
// chosen by the caller.
func (a *API) Fields(in *translate.Incoming) []string {
	doc, f := a.parse(in)
	if f != nil {
		return a.fieldNames(nil)
	}
	return a.fieldNames(doc.Roots())
}

// fieldNames returns the names of root fields as described at Fields.
func (a *API) fieldNames(roots []engine.RootField) []string {
	var names []string
	for _, root := range roots {
		name := a.known(root.Name)
		if len(names) < maxFieldNames && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{fieldInvalid}
	}
	return names
}

// known returns the name of a root field, or one of the constants above if the interface does not have the field.
func (a *API) known(name string) string {
	if strings.HasPrefix(name, "__") {
		return fieldIntrospection
	}
	if _, gone := unsupportedReason(name); gone || a.engine.HasRoot(name) {
		return name
	}
	return fieldUnknown
}

// Successors returns the v2 operations that replace a root field, most important first. It returns nil if v2 has no equivalent.
func Successors(field string) []string { return rootFields()[field].v2 }
