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

// CompileJob is the job that compiles Rego and answers nothing: the parent compiles the same
// bytes, and finds their faults itself.
const CompileJob = "compile"

const (
	// maxKnown bounds how many results of compilations are kept.
	maxKnown = 1 << 14
	// retry is how long a failed compilation is not tried again.
	retry = time.Minute
)

// digest names a request.
type digest [sha256.Size]byte

// check is a compilation, under way until done is closed.
type check struct {
	done chan struct{}
	err  error     // nil if it ended by itself
	at   time.Time // when it ended
	left bool      // a caller stopped waiting for it
}

// checks holds the compilations under way, and the latest others, by request.
type checks struct {
	mu      sync.Mutex // guards the fields of every check, too
	closed  bool
	running map[digest]*check
	known   *lru.Cache[digest, *check]
	ended   chan struct{}
}

func (c *checks) init() {
	c.known, _ = lru.New[digest, *check](maxKnown) // it fails only for a size below 1
	c.running, c.ended = map[digest]*check{}, make(chan struct{}, 1)
}

// begin returns the compilation of a request. It calls start for a new one, which does not wait.
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

// close lets no compilation begin any more.
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
		default: // the receiver has yet to learn of an earlier one
		}
	}
}

// isLeft reports whether a caller stopped waiting.
func (c *checks) isLeft(x *check) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return x.left
}

// leave notes that a caller stops waiting, and returns the result if there is one already.
func (c *checks) leave(x *check) error {
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

// Compile returns nil if a child has compiled the request, now or before, whether its Rego has
// faults or not: the caller may compile the same bytes. The error of a request that takes too
// long, takes too much memory or crashes the child is kept for a minute.
//
// If ctx ends first, Compile fails with [ErrCompiling] and the compilation continues; see
// [Runner.CompileEnded]. Later callers whose contexts have a deadline get that error at once. The compilation waits for a slot of org.
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
		return r.checks.leave(x) // another such caller has waited
	}
	select {
	case <-x.done:
		return x.err
	case <-ctx.Done():
		return r.checks.leave(x)
	}
}

// compile waits for a slot and compiles a request in a child.
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
		return &compileError{fmt.Sprintf("the Rego does not compile within %s; simplify it", r.cfg.Compile), err}
	case errors.Is(err, ErrMemory):
		return &compileError{fmt.Sprintf("compiling the Rego takes more than %d MiB of memory; simplify it", r.cfg.Memory>>20), err}
	}
	return err
}

// compileError is the error of a compilation, in words of its own.
type compileError struct {
	text string
	err  error
}

func (e *compileError) Error() string { return e.text }
func (e *compileError) Unwrap() error { return e.err }

// open returns a context that ends with the cause [ErrClosed] when the Runner is closed.
func (r *Runner) open(ctx context.Context) (open context.Context, stop func()) {
	open, cancel := context.WithCancelCause(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-r.closing:
			cancel(ErrClosed)
		case <-open.Done():
		}
	}()
	return open, func() {
		cancel(nil)
		<-stopped
	}
}

// Compiled reports whether a child has compiled the request.
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

// CompileEnded receives a value after the end of a compilation that a caller of Compile did not wait
// for.
func (r *Runner) CompileEnded() <-chan struct{} { return r.checks.ended }
