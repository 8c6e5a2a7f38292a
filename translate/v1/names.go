package v1

import (
	"strings"

	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// v1Names maps locations in v2 bodies to v1 fields.
var v1Names = namesOf(podCreateForm, endpointCreateForm, templateCreateForm, volumeCreateForm, registryCreateForm)

func namesOf(forms ...form) legacy.Names {
	names := legacy.Names{}
	for _, f := range forms {
		for _, field := range f {
			for location := range strings.FieldsSeq(field.name + " " + field.v2) {
				names["$."+location] = field.name
			}
		}
	}
	return names
}
