package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// body writes an event in the format. Data with a method Text writes itself for Slack.
func (f Format) body(e event) ([]byte, error) {
	if f != FormatSlack {
		return json.Marshal(e)
	}
	if t, ok := e.Data.(interface{ Text() string }); ok {
		return json.Marshal(map[string]string{"text": escaped.Replace(t.Text())})
	}
	data, err := json.Marshal(e.Data)
	if err != nil {
		return nil, err
	}
	members := make(map[string]json.RawMessage)
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "*%s*", e.Type)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := string(members[name])
		var s string
		if json.Unmarshal(members[name], &s) == nil {
			value = s
		}
		fmt.Fprintf(&text, " %s: %s", name, value)
	}
	return json.Marshal(map[string]string{"text": escaped.Replace(text.String())})
}

// escaped writes what Slack takes for the beginning of a link or a mention as the
// character it is.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;") //nolint:gochecknoglobals // safe for concurrent use
