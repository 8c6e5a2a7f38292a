package strictyaml

import (
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// suggest returns the name that was probably meant: the nearest to the written one or, where none is near and they are few, all of them.
func suggest(written string, names []string) string {
	const few = 8
	if near := fault.Nearest(written, names); near != "" {
		return `did you mean "` + near + `"?`
	}
	if len(names) == 0 || len(names) > few {
		return ""
	}
	return "known: " + strings.Join(names, ", ")
}
