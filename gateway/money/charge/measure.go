package charge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Measure notes the figures of a run from its answer: how long the job waited
// and ran, how many tokens it took, and its cost. Of an answer that streams it
// looks at the end, where models put their account of it, and removes that if the caller
// has not asked for it.
type Measure struct{}

// Name implements Filter.
func (Measure) Name() string { return "measure" }

// Request implements Filter; there is nothing to do on the way in.
func (Measure) Request(context.Context, *filter.Exchange) error { return nil }

// Response looks at the answer, or at its stream as it passes.
func (Measure) Response(_ context.Context, ex *filter.Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	a := ex.Answer
	if row.Kind != operation.KindJob || row.Opaque || !a.Relayed {
		return nil
	}
	m := &metered{ReadCloser: a.Stream, ex: ex, events: a.Events()}
	if a.Stream != nil {
		a.Stream = m
	} else {
		m.see(a.Body)
		m.note()
	}
	return withoutUsage(ex)
}

// metered is the body of an answer that is looked at: as a whole, or, of events, at
// the end.
type metered struct {
	io.ReadCloser
	ex     *filter.Exchange
	events bool
	end    []byte
	scan   scan
}

// maxEnd is how much of the end of events is kept.
const maxEnd = 4 << 10

// Read implements io.Reader.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.see(p[:n])
	if errors.Is(err, io.EOF) {
		m.note()
	}
	return n, err
}

func (m *metered) see(p []byte) {
	if !m.events {
		_, _ = m.scan.Write(p) // does not fail
		return
	}
	if len(m.end) > 2*maxEnd { // seldom, so that an event costs only the copy of itself
		m.end = append(m.end[:0], m.end[len(m.end)-maxEnd:]...)
	}
	m.end = append(m.end, p[max(0, len(p)-maxEnd):]...)
}

// note keeps the figures seen.
func (m *metered) note() {
	ran := m.scan.result()
	if m.events {
		ran = usageOf(m.end[max(0, len(m.end)-maxEnd):])
	}
	m.ex.Money.Ran, m.ex.Event.Job = ran, told(&ran.Job)
}

// usageOf reads the account of tokens that stands last in a text.
func usageOf(text []byte) *filter.Ran {
	const name = `"usage":`
	at := bytes.LastIndex(text, []byte(name))
	if at < 0 {
		return new(filter.Ran)
	}
	// The account ends at the first brace that closes it; it has few objects inside.
	account, end := text[at+len(name):], 0
	for range maxInside {
		brace := bytes.IndexByte(account[end:], '}')
		if brace < 0 {
			break
		}
		end += brace + 1
		if usage, err := strictjson.DecodeLenient(account[:end]); err == nil {
			r := new(filter.Ran)
			addUsage(r, usage)
			return r
		}
	}
	return new(filter.Ran)
}

// maxInside is how many objects an account of tokens may have inside.
const maxInside = 8

// told returns nil for a job of which nothing is known.
func told(j *telemetry.Job) *telemetry.Job {
	if *j == (telemetry.Job{}) {
		return nil
	}
	return j
}

// addUsage adds an account of tokens, in the words of chat or of jobs.
func addUsage(r *filter.Ran, given any) {
	usage, _ := given.(map[string]any)
	for name, to := range map[string]*int64{
		"prompt_tokens": &r.Prompt, "input_tokens": &r.Prompt, "input": &r.Prompt,
		"completion_tokens": &r.Completion, "output_tokens": &r.Completion, "output": &r.Completion,
	} {
		if n, ok := filter.Number(usage[name]); ok {
			*to += int64(n)
		}
	}
}

func milliseconds(n float64) time.Duration {
	return time.Duration(n * float64(time.Millisecond))
}
