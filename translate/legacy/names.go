package legacy

import (
	"regexp"
	"strings"
)

// Names maps locations in v2 bodies to the fields of a dialect. Locations have no array indexes. A location that is not in the map belongs
// to the field of its nearest parent in the map.
type Names map[string]string

var arrayPosition = regexp.MustCompile(`\[\d+\]|\.\d+\b`)

// In returns v2 messages with the location at their beginning replaced with the dialect's name of the field. Messages without a known
// location stay unchanged.
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
