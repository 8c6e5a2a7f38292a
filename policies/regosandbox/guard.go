package regosandbox

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// RunDeep is like Run, but uses a stack that is large enough to evaluate the given number of nested queries.
func RunDeep(queries int, f func() error) error {
	return Run(func() error {
		growStack(queries)
		return f()
	})
}

// Run calls f and returns a panic in f as an error.
func Run(f func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case stop:
			err = errors.New(string(p))
		default:
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// stackRoom is the approximate stack size of an evaluation: Rego is evaluated with continuations, so each step nests in the
// previous one. It is the largest array that the compiler keeps on the stack.
const stackRoom = 128 << 10

// growStack grows the goroutine's stack to the size an evaluation needs in one step; growing it repeatedly would copy a deep stack
// many times. at only prevents the compiler from removing the array.
//
//go:noinline
func growStack(at int) byte {
	var room [stackRoom]byte
	room[at%stackRoom] = 1
	return room[(at+1)%stackRoom]
}

// Confine returns the query without what policies must not have: randomness, results of failed functions, and unbounded functions.
func Confine(q *topdown.Query, cancel topdown.Cancel) *topdown.Query {
	return q.WithSeed(noRandomness{}).WithCancel(cancel).WithStrictBuiltinErrors(true).WithBuiltins(replacements())
}

// Function returns the implementation of a built-in function that confined policies use, or nil if there is none.
func Function(name string) topdown.BuiltinFunc {
	if b := replacements()[boundedPrefix+name]; b != nil {
		return b.Func
	}
	return topdown.GetBuiltin(name)
}

// noRandomness is the random source of evaluations, which always fails.
type noRandomness struct{}

// Read always returns an error.
func (noRandomness) Read([]byte) (int, error) {
	return 0, errors.New("policies cannot use random numbers")
}

// Guarded wraps a query in a check of its recursion depth. It is used for the organisation's own Rego, not for the built-in policies.
func Guarded(q *topdown.Query, cancel topdown.Cancel) *topdown.Query {
	return q.WithQueryTracer(&guard{cancel: cancel})
}

// stop is the value with which a guard panics.
type stop string

// guard traces an evaluation of Rego that is not from the library. The evaluator compares two composite values by recursing into
// their elements and does not check for cancellation meanwhile. Values with shared parts can have more elements than a stack can
// hold, and a stack overflow terminates the process. The guard panics before that happens, which ends only the evaluation.
type guard struct {
	cancel topdown.Cancel
	steps  int
}

// Enabled implements topdown.QueryTracer.
func (*guard) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (*guard) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// depthCheckInterval is the number of steps between two checks of the depth, small enough that a stack does not grow much in between.
const depthCheckInterval = 1 << 12

// maxDepth is the highest call depth at a check. It exceeds what a comparison of two request bodies needs (three calls for each
// element) and is a small part of the maximum stack (about 64 MB of one gigabyte; see runtime/debug.SetMaxStack). It is the depth
// of the evaluation, not of the rest of the process.
const maxDepth = 1 << 18

// TraceEvent implements topdown.QueryTracer.
func (g *guard) TraceEvent(e topdown.Event) {
	if e.Op != topdown.UnifyOp {
		return
	}
	if g.steps++; g.steps%depthCheckInterval != 0 {
		return
	}
	if g.cancel.Cancelled() {
		panic(stop("cancelled"))
	}
	var deep [1]uintptr
	if runtime.Callers(maxDepth, deep[:]) > 0 {
		panic(stop("the policy compares values that are too large"))
	}
}
