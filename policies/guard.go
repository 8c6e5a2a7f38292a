package policies

import (
	"runtime/metrics"

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

// maxStacks is how much memory the stacks of all goroutines may have before an
// evaluation that compares much is ended. It is a fraction of what one stack may
// grow to (a gigabyte, see runtime/debug.SetMaxStack).
const maxStacks = 256 << 20

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
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Uint64() > maxStacks {
		panic(stop("it compares values that are too large"))
	}
}
