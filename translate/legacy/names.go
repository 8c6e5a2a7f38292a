package legacy

import (
	"regexp"
	"strings"
)

// PlatformNames maps locations in v2 bodies to the members of a dialect that they came from.
// Array positions are left out. A location not listed is looked up by its parents.
type Names map[string]string

var arrayPosition = regexp.MustCompile(`\[\d+\]|\.\d+\b`)

// In puts the dialect's names in place of the locations that v2's messages begin
// with. Text it does not know is left alone.
func (n Names) In(messages []string) []string {
	out := make([]string, len(messages))
	for i, message := range messages {
		location, rest, ok := strings.Cut(message, ":")
		if name := n.of(location); ok && name != "" {
			message = name + ":" + rest
		}
		out[i] = message
	}
	return out
}

func (n Names) of(location string) string {
	location = arrayPosition.ReplaceAllString(location, "")
	for location != "" && location != "$" {
		if name, ok := n[location]; ok {
			return name
		}
		dot := strings.LastIndexByte(location, '.')
		if dot < 0 {
			return ""
		}
		location = location[:dot]
	}
	return ""
}
