package regosandbox

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// RunDeep is Run on a stack that has room for an evaluation of that many queries.
func RunDeep(queries int, f func() error) error {
	return Run(func() error {
		growStack(queries)
		return f()
	})
}

// Run calls f and returns a panic in it as an error.
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

// stackRoom is about what an evaluation needs: Rego is evaluated by
// continuations, so each step nests in the one before. It is the most that the
// compiler leaves on a stack.
const stackRoom = 128 << 10

// growStack makes the goroutine's stack as deep as an evaluation needs in one
// step; growing bit by bit copies a deep stack many times over. at only keeps
// the compiler from leaving the room out.
//
//go:noinline
func growStack(at int) byte {
	var room [stackRoom]byte
	room[at%stackRoom] = 1
	return room[(at+1)%stackRoom]
}

// Confine returns the query with everything withheld that a policy may not have:
// randomness, results of functions that failed, and functions without bounds.
func Confine(q *topdown.Query, cancel topdown.Cancel) *topdown.Query {
	return q.WithSeed(noRandomness{}).WithCancel(cancel).WithStrictBuiltinErrors(true).WithBuiltins(replacements())
}

// Function is a built-in function as confined policies call it; nil is none.
func Function(name string) topdown.BuiltinFunc {
	if b := replacements()[boundedPrefix+name]; b != nil {
		return b.Func
	}
	return topdown.GetBuiltin(name)
}

// noRandomness is the seed of evaluations: policies have no random numbers.
type noRandomness struct{}

// Read refuses.
func (noRandomness) Read([]byte) (int, error) { return 0, errors.New("policies have no randomness") }

// Guarded returns the query with a watch on how deep it goes, for Rego that is
// not the library's.
func Guarded(q *topdown.Query, cancel topdown.Cancel) *topdown.Query {
	return q.WithQueryTracer(&guard{cancel: cancel})
}

// stop is the value that a guard panics with.
type stop string

// guard watches an evaluation of Rego that is not the library's. The evaluator
// compares two composite values by recursing into each of their elements, and
// does not check for cancellation meanwhile. Values that share their parts can
// have more elements than a stack has room for, and a stack that overflows ends
// the process. So the guard panics first, which ends the evaluation alone.
type guard struct {
	cancel topdown.Cancel
	steps  int
}

// Enabled implements topdown.QueryTracer.
func (*guard) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (*guard) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// glance is how many steps lie between two looks: few enough that a stack does
// not grow by much between them.
const glance = 1 << 12

// maxDepth is how many calls deep an evaluation may be when it is looked at: more than
// comparing any two request bodies takes (three for each element), and a small part of the
// bound of a stack (about 64 MB of a gigabyte, see runtime/debug.SetMaxStack). It is the
// evaluation's own depth: the rest of the process does not count.
const maxDepth = 1 << 18

// TraceEvent implements topdown.QueryTracer.
func (g *guard) TraceEvent(e topdown.Event) {
	if e.Op != topdown.UnifyOp {
		return
	}
	if g.steps++; g.steps%glance != 0 {
		return
	}
	if g.cancel.Cancelled() {
		panic(stop("cancelled"))
	}
	var deep [1]uintptr
	if runtime.Callers(maxDepth, deep[:]) > 0 {
		panic(stop("it compares values that are too large"))
	}
}
