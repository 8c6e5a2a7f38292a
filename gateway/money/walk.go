package money

import (
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// walker reads the members of JSON values that determine the cost. It reads only members at known places, and ignores objects that a caller
// or a model fills, such as the arguments of a tool.
type walker struct {
	decoder *jsontext.Decoder
	// textEnd is the offset after the last string with content. It is 0 before the first one.
	textEnd int64
	batch   bool
	// lists is the number of lists around the current value.
	lists int
}

// Limits of the nesting of reports and of content.
const (
	maxDepth   = 5
	maxContent = 12
)

// reset makes w read another text.
func (w *walker) reset(text io.Reader) {
	w.lists, w.textEnd = 0, 0
	w.decoder.Reset(text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// top reads the next value of the source.
func (w *walker) top() (found, error) {
	var f found
	if kind := w.decoder.PeekKind(); kind == '{' || kind == '[' {
		return f, noEnd(w.value(&f, 0, true))
	}
	token, err := w.decoder.ReadToken()
	if err != nil {
		return f, err
	}
	f.content = token.Kind() != 'n' // a server may send text without an enclosing object
	return f, nil
}

// noEnd replaces io.EOF inside a value with an error.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// value reads an object or a list of objects. It looks for usage reports if reports is set.
func (w *walker) value(f *found, depth int, reports bool) error {
	switch kind := w.decoder.PeekKind(); {
	case depth > maxContent || kind != '{' && kind != '[':
		return w.decoder.SkipValue()
	case kind == '{':
		return w.object(f, depth, reports && depth <= maxDepth)
	}
	if _, err := w.decoder.ReadToken(); err != nil {
		return err
	}
	w.lists++
	defer func() { w.lists-- }()
	var list found
	for w.decoder.PeekKind() != ']' {
		var item found
		var err error
		if w.decoder.PeekKind() == '"' {
			item.content, err = w.text()
		} else {
			err = w.value(&item, depth, reports)
		}
		if err != nil {
			return err
		}
		list.follow(&item, w.batch)
	}
	f.include(&list)
	_, err := w.decoder.ReadToken()
	return err
}

// object reads an object.
func (w *walker) object(f *found, depth int, reports bool) error {
	var own found
	var counts report // counts that are members of the object itself
	err := w.members(func(name string, kind jsontext.Kind) error {
		switch {
		case reports && kind == '{' && rankOf(name) > 0:
			return w.report(&own, rankOf(name), depth)
		case reports && kind == '0' && (isCount(name) || w.lists == 0 && isBareCount(name)):
			return w.count(&counts, name)
		case reports && isState(name) && kind != '{' && kind != '[':
			return w.state(&own, name, depth)
		case reports && name == "error":
			return w.failure(&own)
		}
		return w.member(&own, name, depth, reports)
	})
	if err != nil {
		return err
	}
	if own.done && counts.has(output) && !counts.has(input) {
		counts.set(input, "promptevalcount", 0) // Ollama omits 0, its count for a cached prompt
	}
	own.offer(counts, rankCounts, depth)
	f.include(&own)
	if depth == 0 {
		f.job = own.job
	}
	return nil
}

// members reads an object. It calls read for each member, with its normalized name, to read the value.
func (w *walker) members(read func(name string, kind jsontext.Kind) error) error {
	if _, err := w.decoder.ReadToken(); err != nil {
		return err
	}
	for w.decoder.PeekKind() != '}' {
		token, err := w.decoder.ReadToken()
		if err == nil {
			err = read(normal(token.String()), w.decoder.PeekKind())
		}
		if err != nil {
			return err
		}
	}
	_, err := w.decoder.ReadToken()
	return err
}

// rankOf returns the rank of a usage report by its name, 0 for any other member.
func rankOf(name string) int {
	switch name {
	case "usage", "usagemetadata", "tokenusage", "usageinfo":
		return rankUsage
	case "metainfo", "amazonbedrockinvocationmetrics", "billedunits", "tokens", "stats":
		return rankCounts
	case "timings", "details":
		return rankTimings
	}
	return 0
}

// isTiming reports whether a member of timings or details, whose names have many meanings, is a count of tokens.
func isTiming(name string) bool {
	return slices.Contains([]string{"promptn", "predictedn", "cachen", "generatedtokens", "inputlength", "prompttokens", "completiontokens"}, name)
}

// isCount reports whether a member counts tokens outside of a usage report.
func isCount(name string) bool {
	return slices.Contains([]string{"promptevalcount", "evalcount", "tokensevaluated", "tokenspredicted", "inputtokencount", "generatedtokencount"}, name)
}

// isBareCount reports whether a member counts tokens directly in an event or in the output of a worker. In a list, such members may count
// the tokens of one item or of all items so far.
func isBareCount(name string) bool {
	return slices.Contains([]string{"prompttokens", "completiontokens", "totaltokens", "inputtokens", "outputtokens"}, name)
}

// contains reports what an object or list with the given name may contain.
func contains(name string) (reports, content bool) {
	switch name {
	case "output", "outputs", "message", "response", "data", "result", "results", "delta", "body", "chunk", "chunks", "choices", "xgroq",
		"meta", "stream", "payload", "completion", "generation", "generations", "event", "info", "item", "value", "answer", "reply",
		"llmoutput", "responsemetadata", "generationinfo", "metrics":
		return true, true
	case "content", "parts", "candidates", "token", "tokens", "toolcalls", "function", "functioncall", "audio", "summary":
		return false, true
	}
	return false, false
}

// isText reports whether a string with the given name is content.
func isText(name string) bool {
	switch name {
	case "content", "text", "reasoning", "reasoningcontent", "thinking", "partialjson", "generatedtext", "refusal", "arguments", "response",
		"output", "outputtext", "delta", "completion", "generation", "transcript", "b64json":
		return true
	}
	return false
}

// isState reports whether a member holds the state of a job or of a stream.
func isState(name string) bool {
	switch name {
	case "id", "status", "executiontime", "delaytime", "cost", "type", "object", "done":
		return true
	}
	return false
}

// member reads any other member.
func (w *walker) member(f *found, name string, depth int, reports bool) error {
	kind := w.decoder.PeekKind()
	if kind == '"' && isText(name) {
		content, err := w.text()
		f.content = f.content || content
		return err
	}
	within, content := contains(name)
	if !content || kind != '{' && kind != '[' {
		return w.decoder.SkipValue()
	}
	var in found
	err := w.value(&in, depth+1, reports && within)
	if name != "output" {
		in.job.Cost = 0
	}
	f.include(&in)
	return err
}

// text reads a string and reports whether it has content.
func (w *walker) text() (bool, error) {
	token, err := w.decoder.ReadToken()
	if err != nil || token.String() == "" {
		return false, err
	}
	w.textEnd = w.decoder.InputOffset()
	return true, nil
}

// report reads a usage report.
func (w *walker) report(f *found, rank, depth int) error {
	var r report
	err := w.counts(&r, f, rank, depth)
	f.offer(r, rank, depth)
	return err
}

// counts reads the members of a usage report.
func (w *walker) counts(r *report, f *found, rank, depth int) error {
	return w.members(func(name string, kind jsontext.Kind) error {
		c, known := classOf(name)
		known = known && (rank > rankTimings || isTiming(name))
		switch {
		case kind == '{' && (name == "tokens" || name == "billedunits"):
			return w.report(f, rank, depth)
		case kind == '{' && (name == "prompttokensdetails" || name == "inputtokensdetails"):
			return w.details(r)
		case kind == '[' && name == "prefill":
			return w.prefill(r)
		case !known || kind == '[' || kind == '{' || kind == 'n':
		case kind == '0':
			return w.count(r, name)
		default:
			r.invalid = r.invalid || c != total && c != cached
		}
		return w.decoder.SkipValue()
	})
}

// details reads the input details of a report, for their count of cached tokens.
func (w *walker) details(r *report) error {
	return w.members(func(name string, kind jsontext.Kind) error {
		if c, known := classOf(name); known && c == cached && kind == '0' {
			return w.count(r, name)
		}
		return w.decoder.SkipValue()
	})
}

// count reads a number as a count.
func (w *walker) count(r *report, name string) error {
	token, err := w.decoder.ReadToken()
	if err != nil {
		return err
	}
	c, _ := classOf(name)
	r.number(c, name, token)
	return nil
}

// prefill counts the prompt tokens listed by TGI.
func (w *walker) prefill(r *report) error {
	if _, err := w.decoder.ReadToken(); err != nil {
		return err
	}
	var n int64
	for ; w.decoder.PeekKind() != ']'; n++ {
		if err := w.decoder.SkipValue(); err != nil {
			return err
		}
	}
	if n > 0 {
		r.set(input, "prefill", n)
	}
	_, err := w.decoder.ReadToken()
	return err
}

// failure reads the value of an error.
func (w *walker) failure(f *found) error {
	switch kind := w.decoder.PeekKind(); kind {
	case 'n', 'f', '0':
	case '"':
		failed, err := w.text()
		f.failed = f.failed || failed
		return err
	default:
		f.failed = true
	}
	return w.decoder.SkipValue()
}

// state reads the state of a job or of a stream.
func (w *walker) state(f *found, name string, depth int) error {
	token, err := w.decoder.ReadToken()
	if err != nil {
		return err
	}
	value := token.String()
	switch name {
	case "type":
		f.failed = f.failed || value == "error" && depth == 0
		f.done = f.done || isEnd(value)
	case "object":
		f.failed = f.failed || value == "error" && depth == 0
	case "done":
		f.done = f.done || value == "true"
	case "id":
		f.id = value
		if token.Kind() == '"' && depth == 0 {
			f.job.ID = value
		}
	case "status":
		if token.Kind() == '"' && depth == 0 {
			f.job.Status = value
		}
	default:
		f.time(name, token, depth)
	}
	return nil
}

// isEnd reports whether an event type marks the last event of a stream.
func isEnd(kind string) bool {
	return slices.Contains([]string{"message_stop", "response.completed", "response.incomplete", "response.failed"}, kind)
}

// maxAmount is the largest time or cost that is accepted.
const maxAmount = 1e12

// time reads a time or a cost of a job.
func (f *found) time(name string, token jsontext.Token, depth int) {
	n, err := strconv.ParseFloat(token.String(), 64)
	if token.Kind() != '0' || err != nil || n < 0 || n > maxAmount {
		return
	}
	switch {
	case name == "executiontime" && depth == 0:
		f.job.Execution, f.job.Finished = n, true
	case name == "delaytime" && depth == 0:
		f.job.Delay = n
	case name == "cost" && depth == 1:
		f.job.Cost += n
	}
}
