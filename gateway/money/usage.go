package money

import (
	"bytes"
	"io"
	"maps"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// A chat server reports the tokens of a stream only on request, and budgets need that report. The gateway therefore requests the report,
// and removes it from the stream unless the caller has requested it too. A server that does not support the member stream_options rejects
// the chat. The chat is then sent again without the member, and the endpoint is remembered.

// askUsage requests the usage report of a stream whose tokens are charged to a budget.
func (f *Reserve) askUsage(ex *filter.Exchange) {
	row, _ := operation.Lookup(ex.Operation.ID)
	body, isObject := ex.Body.Doc.(map[string]any)
	if row.Kind != operation.KindJob || row.ID == filter.ModelCall || ex.Cost.Reservation == nil || priceOf(ex).PerTokens == 0 || !isObject ||
		!ex.Operation.Streams || body["stream"] != true {
		return
	}
	const member, flag = "stream_options", "include_usage"
	options, isObject := body[member].(map[string]any)
	if options[flag] == true || body[member] != nil && !isObject {
		return
	}
	_, sent := body[member]
	if !sent && f.StreamOptions.refused(ex) {
		return
	}
	body, options = maps.Clone(body), maps.Clone(options)
	if options == nil {
		options = make(map[string]any, 1)
	}
	options[flag] = true
	body[member] = options
	if sent {
		ex.ReplaceBody(body)
	} else {
		ex.ExtendBody(body)
	}
	ex.Cost.UsageRequested = true
}

// withoutUsage removes the usage report from a response if only the gateway, and not the caller, has requested the report.
func withoutUsage(ex *filter.Exchange) error {
	a := ex.Response
	if !ex.Cost.UsageRequested || ex.Out.Resent || !a.Events() {
		return nil
	}
	a.Header.Del("Content-Length")
	if a.Stream != nil {
		a.Stream = &usageFilter{ReadCloser: a.Stream}
		return nil
	}
	var err error
	a.Body, err = io.ReadAll(&usageFilter{ReadCloser: io.NopCloser(bytes.NewReader(a.Body))})
	return err
}

// usageFilter is an event stream without usage reports. Each event is released once it is complete, because readers cannot use it
// earlier. An event that is longer than any usage report is released as it arrives.
type usageFilter struct {
	io.ReadCloser
	// ready contains the bytes for the next reads. begun contains the beginning of an event. long is set if an earlier part of this event has
	// been released.
	ready, begun bytes.Buffer
	long         bool
	err          error
}

// Read implements io.Reader.
func (u *usageFilter) Read(p []byte) (int, error) {
	for u.ready.Len() == 0 && u.err == nil {
		var n int
		n, u.err = u.ReadCloser.Read(p)
		u.begun.Write(p[:n])
		u.pass()
	}
	if u.ready.Len() == 0 {
		return 0, u.err
	}
	return u.ready.Read(p)
}

// pass releases the complete events received so far.
func (u *usageFilter) pass() {
	for end := eventEnd(u.begun.Bytes()); end > 0; end = eventEnd(u.begun.Bytes()) {
		u.event(u.begun.Next(end))
		u.long = false
	}
	switch rest := u.begun.Len(); {
	case u.err != nil:
		u.event(u.begun.Next(rest))
	case rest > maxUsage:
		u.long = true
		u.event(u.begun.Next(rest))
	}
}

// event releases an event unless it is a usage report.
func (u *usageFilter) event(text []byte) {
	if u.long || !isUsage(text) {
		u.ready.Write(text)
	}
}

// eventEnd returns the length of the first event of a stream, including its empty line; 0 if the empty line has not arrived. Lines end
// with CR, LF or CRLF (WHATWG HTML, section 9.2.5).
func eventEnd(text []byte) int {
	for at := 0; ; {
		n := bytes.IndexAny(text[at:], "\r\n")
		if n < 0 {
			return 0
		}
		end := at + n + 1
		if text[end-1] == '\r' && end < len(text) && text[end] == '\n' {
			end++
		}
		if n == 0 {
			return end
		}
		at = end
	}
}

// maxUsage is the length, in bytes, of the longest event that is checked.
const maxUsage = 4 << 10

// isUsage reports whether an event is a usage report, which has no choices.
func isUsage(event []byte) bool {
	_, data, found := bytes.Cut(event, []byte("data:"))
	if !found || !bytes.Contains(data, []byte(`"usage"`)) {
		return false
	}
	doc, err := strictjson.DecodeLenient(bytes.TrimSpace(data))
	chunk, _ := doc.(map[string]any)
	choices, listed := chunk["choices"].([]any)
	_, reported := chunk["usage"].(map[string]any)
	return err == nil && listed && len(choices) == 0 && reported
}
