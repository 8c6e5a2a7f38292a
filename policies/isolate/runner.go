package isolate

import (
	"cmp"
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

// Flag is the only argument of a child process. It looks like a command-line flag, so that a test binary which does not call the child's
// code rejects it and exits, instead of running its tests again.
const Flag = "--run-isolated-rego"

// Limits of children.
const (
	// Slots is the number of children that run at once; each organisation has at most one.
	Slots = 2
	// DefaultMemory is the memory in bytes that a job may use, including its request, in addition to the memory of an idle child.
	DefaultMemory = 128 << 20
	// DefaultCompile is the processor time limit of a compilation.
	DefaultCompile = 5 * time.Second
	// maxAnswer is the size of the largest answer, in bytes.
	maxAnswer = 64 << 20
)

// Errors of jobs.
var (
	// ErrMemory means that a job exceeded its memory limit.
	ErrMemory = errors.New("memory limit exceeded")
	// ErrDeadline means that a job exceeded its time limit.
	ErrDeadline = errors.New("time limit exceeded")
	// ErrCrashed means that a child exited without an answer.
	ErrCrashed = errors.New("isolated Rego process crashed")
	// ErrBusy means that all slots, or the slot of the organisation, are in use.
	ErrBusy = errors.New("another Rego job is running")
	// ErrCompiling means that the caller stopped waiting for a compilation, which continues.
	ErrCompiling = errors.New("the Rego is still being compiled and takes effect once the compilation succeeds")
	// ErrClosed means that the Runner is closed.
	ErrClosed = errors.New("process is shutting down")
)

// Config configures the child processes.
type Config struct {
	// Command returns the command that starts a child. Its environment is emptied. [Self] runs this executable.
	Command func() *exec.Cmd
	// Memory is the memory limit of a job in bytes; 0 means DefaultMemory.
	Memory int64
	// Compile is the processor time limit of a compilation; 0 means DefaultCompile.
	Compile time.Duration
}

// Runner runs jobs in child processes. It is safe for concurrent use.
type Runner struct {
	cfg       Config
	slots     slots
	checks    checks
	closing   context.Context //nolint:containedctx // ends when the Runner is closed
	close     context.CancelFunc
	marked    sync.Once // whether inherited descriptors are marked close-on-exec
	compiling sync.WaitGroup
}

// New returns a Runner. Call Close when it is no longer needed.
func New(cfg Config) *Runner {
	cfg.Memory, cfg.Compile = cmp.Or(cfg.Memory, DefaultMemory), cmp.Or(cfg.Compile, DefaultCompile)
	r := &Runner{cfg: cfg}
	r.closing, r.close = context.WithCancel(context.Background()) //nolint:forbidigo // lives as long as the Runner
	r.checks.init()
	return r
}

// Close kills all children and waits for background compilations to end. Later jobs fail with [ErrClosed].
func (r *Runner) Close() {
	r.checks.close()
	r.close()
	r.compiling.Wait()
}

// Self returns the command that runs this executable as a child. On Linux it starts the running executable even if its file has
// been replaced or removed.
func Self() *exec.Cmd {
	const self = "/proc/self/exe"
	if _, err := os.Lstat(self); err == nil {
		return &exec.Cmd{Path: self, Args: []string{os.Args[0], Flag}}
	}
	path, err := os.Executable()
	return &exec.Cmd{Path: path, Args: []string{os.Args[0], Flag}, Err: err}
}

// Job describes work for a child.
type Job struct {
	// Org is the organisation whose slot the job uses.
	Org string
	// Name selects the work.
	Name string
	// Deadline limits the child's processor time, including its start. The elapsed time may be four times as long, because the
	// machine may be busy. On systems without /proc, only the elapsed time is limited.
	Deadline time.Duration
	// Request is sent to the child as JSON.
	Request any
	// Input, if not nil, writes the data that the job reads after its request. It is called on its own goroutine. An error from
	// Input fails the job, and its context ends with the job.
	Input func(ctx context.Context, w io.Writer) error
}

// Run runs a job and decodes its answer into answer. It returns [ErrBusy] if no slot is free, and a *JobError if the job itself fails.
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

// JobError is an error returned by a job.
type JobError struct {
	// Message is the text of the error.
	Message string
	// Detail is additional JSON data from the [Handler], or nil.
	Detail json.RawMessage
}

// Error returns the message.
func (f *JobError) Error() string { return f.Message }
