package webhook

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Spoken is the data of an event with a description for people. It is encoded as Data alone; the format slack has Text and Links alone.
type Spoken struct {
	Data  any
	Text  string
	Links []Link
}

// Link is a link of a [Spoken].
type Link struct{ Title, URL string }

// MarshalJSON implements json.Marshaler.
func (s Spoken) MarshalJSON() ([]byte, error) { return json.Marshal(s.Data) }

// body writes an event in the format. The text of an event that is not Spoken is its type.
func (f Format) body(e event) ([]byte, error) {
	if f != FormatSlack {
		return json.Marshal(e)
	}
	s, _ := e.Data.(Spoken)
	parts := []string{escaped.Replace(cmp.Or(s.Text, e.Type))}
	for _, l := range s.Links {
		parts = append(parts, "<"+linked.Replace(l.URL)+"|"+linked.Replace(l.Title)+">")
	}
	return json.Marshal(map[string]string{"text": strings.Join(parts, " ")})
}

// escaped writes what Slack takes for the beginning of a link or a mention as the
// character it is.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;") //nolint:gochecknoglobals // safe for concurrent use

// linked does the same within a link, whose address ends with a vertical bar.
var linked = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C") //nolint:gochecknoglobals // likewise
