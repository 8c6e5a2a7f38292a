package strictyaml

import (
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// few names are all listed in a hint.
const few = 8

// suggest returns the name that was probably meant: the nearest to the written one or, where none is near and they are few, all of them.
func suggest(written string, names []string) string {
	if near := fault.Nearest(written, names); near != "" {
		return `did you mean "` + near + `"?`
	}
	if len(names) == 0 || len(names) > few {
		return ""
	}
	return "known: " + strings.Join(names, ", ")
}
