package money

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Measure is the stage that reads the facts about a run from the response: the queueing time and the run time of the job, the number of
// tokens, and the cost. If the gateway added the request for a usage report to a streaming call, Measure removes the report from the
// stream.
type Measure struct{}

// Name implements Filter.
func (Measure) Name() string { return "measure usage" }

// Request implements Filter and does nothing.
func (Measure) Request(context.Context, *filter.Exchange) error { return nil }

// Response implements filter.ResponseFilter. It reads the response, or its stream while it is being relayed.
func (Measure) Response(_ context.Context, ex *filter.Exchange) error {
	row, _ := operation.Lookup(ex.Operation.ID)
	a := ex.Response
	if row.Kind != operation.KindJob || row.Opaque || !a.Relayed {
		return nil
	}
	m := &metered{
		ReadCloser: a.Stream, ex: ex, completes: completes(&row), lingers: ex.Cost.Reservation != nil && row.Synchronous,
		reader: Reader{Lines: a.Lines(), Batch: ex.Cost.Batch},
	}
	if a.Stream != nil {
		a.Stream = m
	} else {
		_, _ = m.reader.Write(a.Body) // does not fail
		m.note(false)
	}
	return withoutUsage(ex)
}

// completes reports whether an operation returns the response of a model server rather than a job of the platform.
func completes(row *operation.Spec) bool {
	return row.Verb == operation.VerbRun && row.Synchronous && !row.SubmitsJob
}

// metered is a response body that is analyzed while it is being read.
type metered struct {
	io.ReadCloser
	ex *filter.Exchange
	// completes is the result of the function completes. lingers is set if Close reads the rest of the body.
	completes, lingers bool
	reader             Reader
	noted              bool
}

// Read implements io.Reader.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if m.noted {
		return n, err
	}
	_, _ = m.reader.Write(p[:n]) // does not fail
	if errors.Is(err, io.EOF) {
		m.note(false)
	}
	return n, err
}

// Close implements io.Closer. If the cost of the run depends on the rest of the response, Close reads the rest first.
func (m *metered) Close() error {
	if !m.noted && m.lingers {
		m.drain()
	}
	if !m.noted {
		m.note(true)
	}
	return m.ReadCloser.Close()
}

// Limits on reading the rest of a response after the caller has disconnected. maxLinger is the maximum number of bytes. lastLinger is the
// time limit after the end marker and a usage report have arrived; the rest is then read only so that the connection can be reused.
const (
	maxLinger  = 1 << 20
	lastLinger = time.Second
)

// drain reads the rest of the response.
func (m *metered) drain() {
	timer := time.AfterFunc(filter.LingerTimeout, func() { _ = m.ReadCloser.Close() })
	defer timer.Stop()
	part, short := make([]byte, 16<<10), false
	for left := maxLinger; left > 0; {
		if !short && m.reader.Complete() {
			short = true
			timer.Reset(lastLinger)
		}
		n, err := m.Read(part[:min(left, len(part))])
		if left -= n; err != nil {
			return
		}
	}
}

// note stores the facts of the response. cut is set if the response was not read to its end.
func (m *metered) note(cut bool) {
	m.noted = true
	ran := runOf(m.reader.End(cut), m.completes)
	m.ex.Cost.Run, m.ex.Event.Job = ran, jobOf(&ran.Job)
}

// runOf returns the facts of a run. A completion is not a job, so its ID and status are dropped.
func runOf(r Result, completes bool) *filter.RunReport {
	ran := &filter.RunReport{
		Job: telemetry.Job{
			Finished: r.Job.Finished, Executed: milliseconds(r.Job.Execution), Cost: r.Job.Cost,
			Prompt: r.Tokens.Input, Completion: r.Tokens.Output, Cached: r.Tokens.Cached,
		},
		Complete: r.Known, Partial: r.Partial, UnsplitTokens: r.Tokens.Unsplit,
	}
	if ran.Finished {
		ran.Queued = milliseconds(r.Job.Delay)
	}
	if completes {
		ran.Failed = r.Failed
	} else {
		ran.ID, ran.Status = r.Job.ID, r.Job.Status
	}
	return ran
}

// jobOf returns j, or nil if j is the zero value.
func jobOf(j *telemetry.Job) *telemetry.Job {
	if *j == (telemetry.Job{}) {
		return nil
	}
	return j
}

func milliseconds(n float64) time.Duration {
	return time.Duration(n * float64(time.Millisecond))
}
