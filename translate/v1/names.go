package v1

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// createForms are the forms of all bodies that create a resource. Other bodies have the same fields.
var createForms = []form{podCreateForm, endpointCreateForm, templateCreateForm, volumeCreateForm, registryCreateForm}

// v1Names maps locations in v2 bodies to v1 fields. If several fields may have the same location, it prefers a field that the caller sent.
func v1Names(sent form) legacy.Names {
	names := legacy.Names{}
	for _, f := range append(slices.Clip(createForms), sent) {
		for _, field := range f {
			for location := range strings.FieldsSeq(field.name + " " + field.v2) {
				names["$."+location] = field.name
			}
		}
	}
	return names
}
