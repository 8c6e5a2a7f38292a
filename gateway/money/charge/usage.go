package charge

import (
	"bytes"
	"io"
	"maps"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// A chat that streams says how many tokens it took only if its body asks for that, and a
// budget cannot do without: so the gateway asks, and takes the answer out of the stream
// again if the caller has not asked as well.

// askUsage has the body of a stream that a budget pays by token ask for its account.
func askUsage(ex *filter.Exchange) {
	row, _ := operation.Of(ex.Operation.ID)
	body, isObject := ex.Body.Doc.(map[string]any)
	if row.Kind != operation.KindJob || row.ID == filter.ModelCall || ex.Money.Held == nil || priceOf(ex).PerTokens == 0 || !isObject ||
		!ex.Operation.Streams || body["stream"] != true {
		return
	}
	const member, flag = "stream_options", "include_usage"
	options, isObject := body[member].(map[string]any)
	if options[flag] == true || body[member] != nil && !isObject {
		return
	}
	body, options = maps.Clone(body), maps.Clone(options)
	if options == nil {
		options = make(map[string]any, 1)
	}
	options[flag] = true
	body[member] = options
	ex.Rewrite(body)
	ex.Money.UsageAsked = true
}

// withoutUsage takes the account that only the gateway has asked for out of an answer.
func withoutUsage(ex *filter.Exchange) error {
	a := ex.Answer
	if !ex.Money.UsageAsked || !a.Events() {
		return nil
	}
	a.Header.Del("Content-Length")
	if a.Stream != nil {
		a.Stream = &usageless{ReadCloser: a.Stream}
		return nil
	}
	var err error
	a.Body, err = io.ReadAll(&usageless{ReadCloser: io.NopCloser(bytes.NewReader(a.Body))})
	return err
}

// usageless is an event stream without the account of tokens. Each event passes when its
// end has come, which is when a reader can use it; one that is longer than an account
// passes as it comes.
type usageless struct {
	io.ReadCloser
	// ready may be read; begun is the beginning of an event; long says that more of it
	// has passed.
	ready, begun bytes.Buffer
	long         bool
	err          error
}

// Read implements io.Reader.
func (u *usageless) Read(p []byte) (int, error) {
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

// pass makes ready the complete events of the stream so far.
func (u *usageless) pass() {
	for end := eventEnd(u.begun.Bytes()); end > 0; end = eventEnd(u.begun.Bytes()) {
		u.event(u.begun.Next(end))
		u.long = false
	}
	switch rest := u.begun.Len(); {
	case u.err != nil:
		u.event(u.begun.Next(rest))
	case rest > maxEnd:
		u.long = true
		u.event(u.begun.Next(rest))
	}
}

// event passes an event that is not an account.
func (u *usageless) event(text []byte) {
	if u.long || !isUsage(text) {
		u.ready.Write(text)
	}
}

// eventEnd is the length of the first event of a stream, 0 if its end has not come: an
// empty line.
func eventEnd(text []byte) int {
	for at := 0; ; {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return 0
		}
		line := bytes.TrimSuffix(text[at:at+n], []byte("\r"))
		if at += n + 1; len(line) == 0 {
			return at
		}
	}
}

// isUsage reports whether an event is the account of tokens, which has no choices.
func isUsage(event []byte) bool {
	_, data, found := bytes.Cut(event, []byte("data:"))
	if !found || !bytes.Contains(data, []byte(`"usage"`)) {
		return false
	}
	doc, err := strictjson.DecodeLenient(bytes.TrimSpace(data))
	chunk, _ := doc.(map[string]any)
	choices, listed := chunk["choices"].([]any)
	_, told := chunk["usage"].(map[string]any)
	return err == nil && listed && len(choices) == 0 && told
}
