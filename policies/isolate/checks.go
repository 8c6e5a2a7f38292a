package isolate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// CompileJob is the name of the job that compiles Rego. The job has no result: the parent compiles the same Rego afterwards and finds the
// errors itself.
const CompileJob = "compile"

const (
	// maxKnown limits the number of stored compilation results.
	maxKnown = 1 << 14
	// retry is the time after which a failed compilation can be tried again.
	retry = time.Minute
)

// digest identifies a request.
type digest [sha256.Size]byte

// check is a compilation. It is in progress until done is closed.
type check struct {
	done chan struct{}
	err  error     // nil if the compilation finished
	at   time.Time // when it finished
	left bool      // whether a caller stopped waiting for it
}

// checks holds the compilations in progress and the most recent results, by request.
type checks struct {
	mu      sync.Mutex // also guards the fields of every check
	closed  bool
	running map[digest]*check
	known   *lru.Cache[digest, *check]
	ended   chan struct{}
}

func (c *checks) init() {
	c.known, _ = lru.New[digest, *check](maxKnown) // fails only for a size below 1
	c.running, c.ended = map[digest]*check{}, make(chan struct{}, 1)
}

// begin returns the compilation of a request. For a new one it calls start, which must not block.
func (c *checks) begin(key digest, start func(x *check)) *check {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.running[key]; x != nil {
		return x
	}
	if x, ok := c.known.Get(key); ok && (x.err == nil || time.Since(x.at) < retry) {
		return x
	}
	x := &check{done: make(chan struct{})}
	if c.closed {
		x.err = ErrClosed
		close(x.done)
		return x
	}
	c.running[key] = x
	start(x)
	return x
}

// close prevents new compilations.
func (c *checks) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// end records the result of a compilation.
func (c *checks) end(key digest, x *check, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.err, x.at = err, time.Now()
	close(x.done)
	delete(c.running, key)
	if !errors.Is(err, ErrClosed) {
		c.known.Add(key, x)
	}
	if x.left {
		select {
		case c.ended <- struct{}{}:
		default: // the receiver has not yet read an earlier value
		}
	}
}

// isLeft reports whether a caller stopped waiting.
func (c *checks) isLeft(x *check) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return x.left
}

// abandon records that a caller stops waiting, and returns the result if there already is one.
func (c *checks) abandon(x *check) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-x.done:
		return x.err
	default:
		x.left = true
		return ErrCompiling
	}
}

// Compile returns nil if a child process has compiled the request, now or earlier, whether or not the Rego has errors. The caller can then
// safely compile the same Rego. If the request takes too long, uses too much memory or crashes the child, Compile returns an error, which
// is cached for a minute.
//
// If ctx ends first, Compile returns [ErrCompiling] and the compilation continues; see [Runner.CompileEnded]. Later callers whose
// context has a deadline get the same error immediately. The compilation waits for a slot of org.
func (r *Runner) Compile(ctx context.Context, org string, request any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	key := digest(sha256.Sum256(text))
	x := r.checks.begin(key, func(x *check) {
		r.compiling.Go(func() { r.checks.end(key, x, r.compile(context.WithoutCancel(ctx), org, text)) })
	})
	if _, hurried := ctx.Deadline(); hurried && r.checks.isLeft(x) {
		return r.checks.abandon(x) // another caller with a deadline has already waited
	}
	select {
	case <-x.done:
		return x.err
	case <-ctx.Done():
		return r.checks.abandon(x)
	}
}

// compile waits for a slot and compiles a request in a child process.
func (r *Runner) compile(ctx context.Context, org string, request []byte) error {
	ctx, stop := r.open(ctx)
	defer stop()
	release, err := r.slots.wait(ctx, org)
	if err != nil {
		return err
	}
	defer release()
	_, err = r.start(ctx, &Job{Org: org, Name: CompileJob, Deadline: r.cfg.Compile}, request)
	switch {
	case errors.Is(err, ErrDeadline):
		return &compileError{fmt.Sprintf("compilation of the Rego exceeds %s of CPU time: simplify the Rego", r.cfg.Compile), err}
	case errors.Is(err, ErrMemory):
		return &compileError{fmt.Sprintf("compilation of the Rego exceeds %d MiB of memory: simplify the Rego", r.cfg.Memory>>20), err}
	}
	return err
}

// compileError is a compilation error with its own message.
type compileError struct {
	text string
	err  error
}

func (e *compileError) Error() string { return e.text }
func (e *compileError) Unwrap() error { return e.err }

// open returns a context that ends with the cause [ErrClosed] when the Runner is closed.
func (r *Runner) open(ctx context.Context) (open context.Context, stop func()) {
	open, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(r.closing, func() { cancel(ErrClosed) })
	return open, func() {
		forget()
		cancel(nil)
	}
}

// Compiled reports whether a child process has compiled the request.
func (r *Runner) Compiled(request any) bool {
	text, err := json.Marshal(request)
	if err != nil {
		return false
	}
	r.checks.mu.Lock()
	defer r.checks.mu.Unlock()
	x, ok := r.checks.known.Get(sha256.Sum256(text))
	return ok && x.err == nil
}

// CompileEnded returns a channel. When a compilation ends after a caller of Compile has stopped waiting for it, the channel receives a
// value.
func (r *Runner) CompileEnded() <-chan struct{} { return r.checks.ended }
