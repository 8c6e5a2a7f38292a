package money

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Result holds the parts of a response that determine its cost.
type Result struct {
	// Tokens are the counts of the last complete usage report. Known means that these counts are complete. It is false without such a report,
	// or if the response was cut off after content that the last report does not cover.
	Tokens Tokens
	Known  bool
	// Partial is set if the last report has only output tokens. Known is then false, and Tokens.Input is unknown.
	Partial bool
	// Failed is set if the response has an error, and neither a usage report nor content before it.
	Failed bool
	Job    Job
}

// Job holds the data of a response that describes a job of the platform. The zero value means that the response does not describe a job.
type Job struct {
	ID, Status string
	// Execution and Delay are in milliseconds. Finished is set if the response has an execution time.
	Execution, Delay float64
	Finished         bool
	// Cost is the sum of the costs in the output, in USD.
	Cost float64
}

// Reader extracts the token usage, the job's state and times, and the errors from one response of a run, as it arrives. The zero value is
// ready for use. It is not safe for concurrent use. End must always be called: it ends the Reader's coroutine.
type Reader struct {
	// Lines is set if each line of the response is a JSON document (NDJSON). A malformed line then does not affect the following ones.
	Lines bool
	// Batch is set if the request has several items. The reports in a list then count different tokens and are summed.
	Batch bool

	feed   feed
	resume func() (struct{}, bool)
	stop   func()
	walker walker
	like   pattern
	tally  usageTally
}

// Write processes the next part of the response. It never fails.
func (r *Reader) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if r.resume == nil {
		// The decoder pulls its input, while the response is pushed: a coroutine connects them.
		r.resume, r.stop = iter.Pull(r.run)
	}
	r.feed.part = p
	r.resume()
	r.feed.part = nil // owned by the caller
	return len(p), nil
}

// Complete reports whether the response so far contains its end marker and a usage report. The rest of the response is then not expected to
// change the result.
func (r *Reader) Complete() bool {
	return r.tally.done && r.tally.result(false).Known
}

// End ends the Reader and returns the result. cut means that the response was not read to its end.
func (r *Reader) End(cut bool) Result {
	if r.resume != nil {
		r.feed.ended = true
		r.resume()
		r.stop()
	}
	t := &r.tally
	result := t.result(cut && !t.done)
	result.Failed, result.Job = t.failed && !t.content && !result.Known && !result.Partial, t.job
	return result
}

// run reads the whole response. It calls yield when it needs the next part.
func (r *Reader) run(yield func(struct{}) bool) {
	r.feed.wait = func() bool { return yield(struct{}{}) }
	r.walker = walker{batch: r.Batch, decoder: jsontext.NewDecoder(new(bytes.Buffer))}
	switch first, err := r.feed.first(); {
	case err != nil:
	case r.Lines:
		for in := (line{in: &r.feed}); in.next(); {
			r.document(&in)
		}
	case first == '{' || first == '[' || first == '"':
		r.document(&r.feed)
	default:
		for in := (event{in: &r.feed}); in.next(); {
			if text := in.whole(); text != nil {
				r.event(text)
			} else {
				r.document(&in)
			}
			r.tally.end(&in)
		}
	}
}

// document reads the JSON values of one source, and skips text after the first error.
func (r *Reader) document(in source) {
	r.walker.reset(&shortener{in: in})
	r.values()
	for part, err := in.peek(); err == nil; part, err = in.peek() {
		in.skip(len(part))
	}
}

// event reads the data of an event.
func (r *Reader) event(text []byte) {
	if r.like.matches(text) {
		r.tally.add(&r.like.found)
		return
	}
	r.walker.reset(bytes.NewBuffer(text))
	if found, n := r.values(); n == 1 && found.best == nil && r.walker.textEnd > 0 {
		r.like.set(text, r.walker.textEnd, found)
	}
}

// values reads the JSON values of the walker's source. It returns the facts of the last value and the number of values, 0 if there are
// other texts.
func (r *Reader) values() (last found, n int) {
	for {
		found, err := r.walker.top()
		if errors.Is(err, io.EOF) {
			return last, n
		}
		if err != nil {
			if !r.feed.ended { // otherwise the last value may just be cut off
				// Text that is not JSON may be content of an unknown format.
				r.tally.content, r.tally.stale = true, true
			}
			return last, 0
		}
		r.tally.add(&found)
		last, n = found, n+1
	}
}

// pattern is an event without a usage report, split at the last text in it. Events that differ only in this text have the same facts. In a
// stream of tokens, these are most events.
type pattern struct {
	before, after []byte
	found         found
}

// set makes an event the pattern. end is the offset after the text's closing quote.
func (p *pattern) set(event []byte, end int64, f found) {
	begin := bytes.LastIndexByte(event[:end-1], '"') + 1
	p.before, p.after = append(p.before[:0], event[:begin]...), append(p.after[:0], event[end-1:]...)
	p.found = f
}

// matches reports whether an event differs from the pattern only in its text, and the text has no escapes.
func (p *pattern) matches(event []byte) bool {
	text, ok := bytes.CutPrefix(event, p.before)
	if ok {
		text, ok = bytes.CutSuffix(text, p.after)
	}
	special := func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }
	return ok && len(p.before) > 0 && len(text) > 0 && !bytes.ContainsFunc(text, special)
}

// source is text that can be read without copying.
type source interface {
	// peek returns the next bytes, at least one, or an error, which is io.EOF at the end.
	peek() ([]byte, error)
	// skip drops n bytes of the result of peek.
	skip(n int)
}

// feed is the source that supplies the parts of a response. It is read in the Reader's coroutine.
type feed struct {
	part  []byte
	ended bool
	// wait returns when part or ended has changed. It returns false if the coroutine must end.
	wait func() bool
}

func (f *feed) peek() ([]byte, error) {
	for len(f.part) == 0 {
		if f.ended || !f.wait() {
			f.ended = true
			return nil, io.EOF
		}
	}
	return f.part, nil
}

func (f *feed) skip(n int) { f.part = f.part[n:] }

// first skips a byte order mark and white space, and returns the following byte.
func (f *feed) first() (byte, error) {
	for {
		part, err := f.peek()
		if err != nil {
			return 0, err
		}
		if strings.IndexByte("\xef\xbb\xbf \t\r\n", part[0]) < 0 {
			return part[0], nil
		}
		f.skip(1)
	}
}

// line is the source of one line of a text.
type line struct {
	in    *feed
	ended bool
}

// next advances to the next line. It returns false at the end of the text.
func (l *line) next() bool {
	if l.ended {
		l.in.skip(1) // the line feed
		l.ended = false
	}
	_, err := l.in.peek()
	return err == nil
}

func (l *line) peek() ([]byte, error) {
	part, err := l.in.peek()
	if err != nil || l.ended {
		return nil, io.EOF
	}
	if at := bytes.IndexByte(part, '\n'); at >= 0 {
		part = part[:at]
	}
	if l.ended = len(part) == 0; l.ended {
		return nil, io.EOF
	}
	return part, nil
}

func (l *line) skip(n int) { l.in.skip(n) }
