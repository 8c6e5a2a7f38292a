package strictyaml

import (
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// few is the largest number of names that a hint lists completely.
const few = 8

// suggest returns a hint with the name closest to written. If no name is close and there are few names, it lists all of them.
func suggest(written string, names []string) string {
	if near := fault.Nearest(written, names); near != "" {
		return `did you mean "` + near + `"?`
	}
	if len(names) == 0 || len(names) > few {
		return ""
	}
	return "known: " + strings.Join(names, ", ")
}
