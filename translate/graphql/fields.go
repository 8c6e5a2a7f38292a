package graphql

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
)

// Names for fields that a report cannot call by the caller's own word, which could be
// any text.
const (
	// FieldInvalid is a request whose root fields cannot be told.
	FieldInvalid = "invalid"
	// FieldUnknown is a root field this interface never had.
	FieldUnknown = "unknown"
	// FieldIntrospection is __schema, __type and __typename.
	FieldIntrospection = "introspection"
)

// maxFieldNames bounds how many root fields of one request are told apart.
const maxFieldNames = 16

// Fields names the root fields a request asks for, each once, for counting who
// uses what. It is never empty, and all names are ours.
func (a *API) Fields(in *translate.Incoming) []string {
	r, f := readRequest(in)
	if f != nil {
		return []string{FieldInvalid}
	}
	roots, _ := a.engine.Roots(r)
	return a.asked(roots)
}

// asked names root fields as Fields does.
func (a *API) asked(roots []engine.RootField) []string {
	var names []string
	for _, root := range roots {
		name := a.known(root.Name)
		if len(names) < maxFieldNames && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{FieldInvalid}
	}
	return names
}

// known returns the name of a root field if it is one of ours.
func (a *API) known(name string) string {
	if strings.HasPrefix(name, "__") {
		return FieldIntrospection
	}
	if _, gone := unsupportedReason(name); gone || a.engine.HasRoot(name) {
		return name
	}
	return FieldUnknown
}

// Successors lists the v2 operations that a program should call in place of a
// root field, the main one first; nil when v2 has nothing for it.
func Successors(field string) []string { return rootFields()[field].v2 }
