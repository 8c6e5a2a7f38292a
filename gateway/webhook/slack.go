package webhook

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Message is the data of an event, with a text for people. In the format of Slack, Text and Links are sent; in all other formats, Data is
// sent.
type Message struct {
	Data  any
	Text  string
	Links []Link
}

// Link is a link in a [Message].
type Link struct{ Title, URL string }

// MarshalJSON implements json.Marshaler.
func (s Message) MarshalJSON() ([]byte, error) { return json.Marshal(s.Data) }

// body encodes an event in the format. The text of an event whose data is not a Message is its type.
func (f Format) body(e event) ([]byte, error) {
	if f != FormatSlack {
		return json.Marshal(e)
	}
	s, _ := e.Data.(Message)
	parts := []string{escapeText.Replace(cmp.Or(s.Text, e.Type))}
	for _, l := range s.Links {
		parts = append(parts, "<"+escapeLink.Replace(l.URL)+"|"+escapeLink.Replace(l.Title)+">")
	}
	return json.Marshal(map[string]string{"text": strings.Join(parts, " ")})
}

// escapeText escapes the characters that Slack interprets as the start of a link or a mention.
var escapeText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;") //nolint:gochecknoglobals // safe for concurrent use

// escapeLink escapes the address of a link, which ends with a vertical bar.
var escapeLink = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C") //nolint:gochecknoglobals // likewise
