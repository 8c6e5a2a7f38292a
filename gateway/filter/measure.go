package filter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Measure notes what the answer of a run tells about it: how long the job waited
// and ran, how many tokens it took, and what it cost. Of an answer that streams it
// looks at the end, where models put their account of it.
type Measure struct{}

// Name implements Filter.
func (Measure) Name() string { return "measure" }

// Request implements Filter; there is nothing to do on the way in.
func (Measure) Request(context.Context, *Exchange) error { return nil }

// Response looks at the answer, or at what passes of it.
func (Measure) Response(_ context.Context, ex *Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	a := ex.Answer
	switch {
	case row.Kind != operation.KindJob || row.Opaque || !a.Relayed:
	case a.Stream != nil:
		a.Stream = &metered{ReadCloser: a.Stream, event: ex.Event}
	default:
		ex.Event.Job = jobOf(a.Body)
	}
	return nil
}

// metered is the body of an answer whose end is kept.
type metered struct {
	io.ReadCloser
	event *telemetry.Event
	end   []byte
}

// maxEnd is how much of the end of an answer is kept.
const maxEnd = 4 << 10

// Read implements io.Reader.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.end = append(m.end, p[max(0, n-maxEnd):n]...)
	if len(m.end) > maxEnd {
		m.end = append(m.end[:0], m.end[len(m.end)-maxEnd:]...)
	}
	if errors.Is(err, io.EOF) {
		m.event.Job = usageOf(m.end)
	}
	return n, err
}

// usageOf reads the account of tokens that stands last in a text.
func usageOf(text []byte) *telemetry.Job {
	const name = `"usage":`
	at := bytes.LastIndex(text, []byte(name))
	if at < 0 {
		return nil
	}
	// The account ends at the first brace that closes it; it has few objects inside.
	account, end := text[at+len(name):], 0
	for range maxInside {
		brace := bytes.IndexByte(account[end:], '}')
		if brace < 0 {
			return nil
		}
		end += brace + 1
		if usage, err := strictjson.DecodeLenient(account[:end]); err == nil {
			j := new(telemetry.Job)
			addUsage(j, usage)
			return told(j)
		}
	}
	return nil
}

// maxInside is how many objects an account of tokens may have inside.
const maxInside = 8

// jobOf reads a job, or a completion.
func jobOf(body []byte) *telemetry.Job {
	doc, err := strictjson.DecodeLenient(body)
	object, _ := doc.(map[string]any)
	if err != nil || object == nil {
		return nil
	}
	j := new(telemetry.Job)
	if _, j.Finished = object["executionTime"].(json.Number); j.Finished {
		j.Queued, j.Executed = milliseconds(object["delayTime"]), milliseconds(object["executionTime"])
	}
	addUsage(j, object["usage"])
	outputs, isList := object["output"].([]any)
	if !isList {
		outputs = []any{object["output"]}
	}
	for _, item := range outputs {
		output, _ := item.(map[string]any)
		addUsage(j, output["usage"])
		if usd, ok := number(output["cost"]); ok {
			j.Cost += usd
		}
	}
	return told(j)
}

// told returns nil for a job of which nothing is known.
func told(j *telemetry.Job) *telemetry.Job {
	if *j == (telemetry.Job{}) {
		return nil
	}
	return j
}

// addUsage adds an account of tokens, in the words of chat or of jobs.
func addUsage(j *telemetry.Job, given any) {
	usage, _ := given.(map[string]any)
	for name, to := range map[string]*int64{
		"prompt_tokens": &j.Prompt, "input": &j.Prompt, "completion_tokens": &j.Completion, "output": &j.Completion,
	} {
		if n, ok := number(usage[name]); ok {
			*to += int64(n)
		}
	}
}

func milliseconds(v any) time.Duration {
	n, _ := number(v)
	return time.Duration(n * float64(time.Millisecond))
}

// maxNumber bounds what is believed of an answer.
const maxNumber = 1e12

// number reads a number that is not negative and not absurd.
func number(v any) (float64, bool) {
	text, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	n, err := text.Float64()
	return n, err == nil && n >= 0 && n <= maxNumber && !math.IsNaN(n)
}
