package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Flag is the only argument of a child. It has the form of a flag so that a test binary that
// does not act as the child fails at once, instead of running its tests again.
const Flag = "--run-isolated-rego"

// Bounds of children.
const (
	// Slots is how many children run at once; an organisation has one at most.
	Slots = 2
	// DefaultMemory is how many bytes of memory a job may take, in addition to what its
	// child takes at rest, the request included.
	DefaultMemory = 128 << 20
	// DefaultCompile is the deadline of a compilation, in processor time.
	DefaultCompile = 5 * time.Second
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 64 << 20
)

// Errors of jobs.
var (
	// ErrMemory means that a job took more memory than it may.
	ErrMemory = errors.New("more memory is needed than allowed")
	// ErrDeadline means that a job did not end in time.
	ErrDeadline = errors.New("the deadline is exceeded")
	// ErrCrashed means that a child ended without an answer.
	ErrCrashed = errors.New("the process that isolates Rego crashed")
	// ErrBusy means that all slots, or the organisation's, are taken.
	ErrBusy = errors.New("other Rego is being evaluated")
	// ErrCompiling means that the caller stopped waiting for a compilation, which continues.
	ErrCompiling = errors.New("the Rego is being compiled for the first time, and takes effect once that has succeeded")
	// ErrClosed means that the Runner is closed.
	ErrClosed = errors.New("the process is stopping")
)

// Config says how children are run.
type Config struct {
	// Command returns the command of a child, which is started with an empty environment.
	// [Self] runs this executable.
	Command func() *exec.Cmd
	// Memory is the bound of one job; 0 is DefaultMemory.
	Memory int64
	// Compile is the deadline of a compilation, as in Job; 0 is DefaultCompile.
	Compile time.Duration
}

// Runner runs jobs in child processes. It may be used from several goroutines at once.
type Runner struct {
	cfg       Config
	slots     slots
	checks    checks
	closing   chan struct{}
	close     sync.Once
	marked    sync.Once // inherited descriptors are closed in children
	compiling sync.WaitGroup
}

// New returns a Runner, which must be closed.
func New(cfg Config) *Runner {
	if cfg.Memory == 0 {
		cfg.Memory = DefaultMemory
	}
	if cfg.Compile == 0 {
		cfg.Compile = DefaultCompile
	}
	r := &Runner{cfg: cfg, closing: make(chan struct{})}
	r.checks.init()
	return r
}

// Close kills all children, and waits for the end of compilations that nobody waits for. Jobs
// fail with [ErrClosed] from then on.
func (r *Runner) Close() {
	r.close.Do(func() {
		r.checks.close()
		close(r.closing)
	})
	r.compiling.Wait()
}

// Self returns the command that runs this executable as a child. On Linux the running
// executable is started even if its file has been replaced or removed.
func Self() *exec.Cmd {
	const self = "/proc/self/exe"
	if _, err := os.Lstat(self); err == nil {
		return &exec.Cmd{Path: self, Args: []string{os.Args[0], Flag}}
	}
	path, err := os.Executable()
	return &exec.Cmd{Path: path, Args: []string{os.Args[0], Flag}, Err: err}
}

// Job is work for a child.
type Job struct {
	// Org is the organisation whose slot the job takes.
	Org string
	// Name selects the work.
	Name string
	// Deadline bounds the processor time of the job's child, its start included. By the clock it may take
	// four times as long, for the machine may be busy; on systems without /proc, only the clock counts.
	Deadline time.Duration
	// Request is encoded as JSON.
	Request any
	// Input writes what the job reads after its request; nil is nothing. It is called in a
	// goroutine of its own. The job fails with Input's error, and the context ends with the job.
	Input func(ctx context.Context, w io.Writer) error
}

// Run runs a job and decodes its answer into answer. It fails with [ErrBusy] if there is no
// free slot. An error of the job itself is a *JobError.
func (r *Runner) Run(ctx context.Context, j *Job, answer any) error {
	request, err := json.Marshal(j.Request)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	release, ok := r.slots.try(j.Org)
	if !ok {
		return ErrBusy
	}
	defer release()
	text, err := r.start(ctx, j, request)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// JobError is an error that a job returned.
type JobError struct {
	// Message is the error's text.
	Message string
	// Detail is what the [Handler] added for its caller, as JSON; nil for nothing.
	Detail json.RawMessage
}

// Error returns the message.
func (f *JobError) Error() string { return f.Message }
