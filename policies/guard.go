package policies

import (
	"runtime"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// stop is what a guard panics with.
type stop string

// guard watches an evaluation of Rego that is not ours. The evaluator compares
// two composite values by going deeper for each of their elements, and does not
// look whether it was cancelled on the way. Values that share their parts can
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

// maxDepth is how many calls deep an evaluation may be when it is looked at: more
// than comparing any two request bodies takes (three for each element), and a small
// part of what a stack may grow to (about 64 MB of a gigabyte, see
// runtime/debug.SetMaxStack). It is the evaluation's own depth: what the rest of the
// process does is nothing to it.
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
