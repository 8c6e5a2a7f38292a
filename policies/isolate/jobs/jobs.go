package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/isolate"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
	"github.com/tollgate-dev/tollgate/policies/replay"
)

// Names of jobs in addition to isolate.CompileJob.
const (
	tryJob    = "try"
	replayJob = "replay"
)

// Time limits of jobs, including the start of the child.
const (
	TryTime    = 2 * time.Second
	ReplayTime = time.Minute
	// callTime limits the decision on one call of a replay.
	callTime = time.Second
)

// Trial is the request to evaluate a draft for one call.
type Trial struct {
	Source *policies.Source
	Draft  policies.Draft
	// Input is the policy input with numbers as json.Number. Masked lists the pointers of its unknown members.
	Input  map[string]any
	Masked []string
}

// run evaluates the draft in this process.
func (t *Trial) run(ctx context.Context) (*policies.TrialResult, error) {
	call, err := policyinput.ParseRecorded(t.Input, t.Masked)
	if err != nil {
		return nil, err
	}
	return t.Source.Try(ctx, t.Draft, call)
}

// Try evaluates a draft for one call in a child of r, or in this process if r is nil. Faults of the draft are returned as joined
// *policyconfig.Error values.
func Try(ctx context.Context, r *isolate.Runner, t *Trial) (*policies.TrialResult, error) {
	if r == nil {
		return t.run(ctx)
	}
	return t.isolated(ctx, r, TryTime)
}

// isolated evaluates the draft in a child of r, for at most the given processor time.
func (t *Trial) isolated(ctx context.Context, r *isolate.Runner, limit time.Duration) (*policies.TrialResult, error) {
	var out policies.TrialResult
	if err := r.Run(ctx, &isolate.Job{Org: t.Source.Org, Name: tryJob, Deadline: limit, Request: t}, &out); err != nil {
		return nil, faulty(err)
	}
	return &out, nil
}

// ReplayRequest is the request to replay recorded calls.
type ReplayRequest struct {
	Source  *policies.Source
	Draft   policies.Draft
	Options replay.Options
}

// run replays a log in this process.
func (p *ReplayRequest) run(ctx context.Context, log io.Reader) (*replay.Report, error) {
	engine, err := p.engine(ctx)
	if err != nil {
		return nil, err
	}
	return replay.Run(ctx, log, engine, p.Options)
}

// engine compiles the draft. A compilation that exceeds its time limit is abandoned until the process exits.
func (p *ReplayRequest) engine(ctx context.Context) (*policies.Engine, error) {
	type compiled struct {
		engine *policies.Engine
		err    error
	}
	limits := policyconfig.DefaultLimits()
	limits.Deadline, limits.Remember, limits.Concurrency = callTime, 0, 1
	bounded, cancel := context.WithCancel(ctx)
	done, elapsed := make(chan compiled, 1), isolate.Elapsed(bounded, isolate.DefaultCompile)
	defer func() {
		cancel()
		<-elapsed
	}()
	go func() {
		var c compiled
		c.engine, c.err = p.Source.Draft(ctx, p.Draft, limits)
		done <- c
	}()
	select {
	case c := <-done:
		return c.engine, c.err
	case <-elapsed:
		return nil, fmt.Errorf("compilation of the draft took longer than %s: simplify the draft", isolate.DefaultCompile)
	}
}

// Replay evaluates a draft against the calls that the function log writes. It does so in a child process started by r, or in this process
// if r is nil. Faults of the draft are returned as joined *policyconfig.Error values.
func Replay(
	ctx context.Context, r *isolate.Runner, p *ReplayRequest, log func(ctx context.Context, w io.Writer) error,
) (*replay.Report, error) {
	if r != nil {
		var out replay.Report
		err := r.Run(ctx, &isolate.Job{Org: p.Source.Org, Name: replayJob, Deadline: ReplayTime, Request: p, Input: log}, &out)
		if err != nil {
			return nil, faulty(err)
		}
		return &out, nil
	}
	events, written := io.Pipe()
	go func() { _ = written.CloseWithError(log(ctx, written)) }() // the reader receives the error
	report, err := p.run(ctx, events)
	_ = events.Close() // unblocks the writer
	return report, err
}

// detail describes an error to the parent.
type detail struct {
	// Faults are the faults of the draft.
	Faults []*policyconfig.Error `json:"faults,omitempty"`
	// Input is set if the input of the call is invalid.
	Input bool `json:"input,omitempty"`
}

// detailOf describes an error in the child.
func detailOf(err error) *detail {
	d := &detail{Input: errors.Is(err, policies.ErrInput)}
	for _, e := range policyconfig.Joined(err) {
		if f, ok := errors.AsType[*policyconfig.Error](e); ok {
			d.Faults = append(d.Faults, f)
		}
	}
	return d
}

// faulty reconstructs the child's error in the parent.
func faulty(err error) error {
	f, ok := errors.AsType[*isolate.JobError](err)
	if !ok {
		return err
	}
	var d detail
	if json.Unmarshal(f.Detail, &d) != nil { // without detail, only the message is left
		return err
	}
	switch {
	case len(d.Faults) > 0:
		return errors.Join(fault.AsErrors(d.Faults)...)
	case d.Input:
		return &inputError{f.Message}
	}
	return err
}

// inputError is an error in the input of a call.
type inputError struct{ message string }

func (e *inputError) Error() string { return e.message }
func (e *inputError) Unwrap() error { return policies.ErrInput }

// New returns a runner whose children run this executable, which must call [Main]. Call Close on the runner when it is no longer
// needed.
func New() *isolate.Runner { return isolate.New(isolate.Config{Command: isolate.Self}) }

// Main runs the child's job if the process is a child, and returns its exit code. Programs and test binaries that start themselves
// as children must call it first in main or TestMain.
func Main(ctx context.Context) (code int, isChild bool) {
	if !isolate.IsChild() {
		return 0, false
	}
	return isolate.Serve(ctx, handle), true
}

// handle is the isolate.Handler of the jobs.
func handle(ctx context.Context, job string, request []byte, ready func(), input io.Reader) (answer, about any, err error) {
	_ = compiler.Library() // parses the library before the memory of the job is measured
	switch job {
	case isolate.CompileJob:
		return do(request, ready, func(c *policies.Compilation) (any, error) {
			c.Run(ctx)
			return nil, nil //nolint:nilnil // the parent only waits for the end
		})
	case tryJob:
		return do(request, ready, func(t *Trial) (any, error) { return t.run(ctx) })
	case replayJob:
		return do(request, ready, func(p *ReplayRequest) (any, error) { return p.run(ctx, input) })
	}
	return nil, nil, fmt.Errorf("unknown job %q", job)
}

// do decodes a request, calls ready, and runs the job.
func do[T any](request []byte, ready func(), run func(*T) (any, error)) (answer, about any, err error) {
	d := json.NewDecoder(bytes.NewReader(request))
	d.UseNumber()
	t := new(T)
	if err := d.Decode(t); err != nil {
		return nil, nil, err
	}
	ready()
	if answer, err = run(t); err != nil {
		return nil, detailOf(err), err
	}
	return answer, nil, nil
}
