package strictyaml

import (
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// few is the maximum number of names for which a hint lists all names.
const few = 8

// suggest returns a hint with the name that is most similar to written. If no name is similar and there are at most few names, the hint
// lists all names.
func suggest(written string, names []string) string {
	if near := fault.Nearest(written, names); near != "" {
		return `did you mean "` + near + `"?`
	}
	if len(names) == 0 || len(names) > few {
		return ""
	}
	return "known: " + strings.Join(names, ", ")
}
