package compiler

import (
	"context"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/cache"
)

// Run evaluates the rules of a program for one input. It is not safe for concurrent use. Results of functions are reused for
// identical arguments.
type Run struct {
	program  *Program
	builtins topdown.BuiltinContext
	input    *ast.Term
	memo     []known   // by function, of the last call
	value    *ast.Term // result of the function or built-in that returned last
	keep     func(*ast.Term) error
	stack    []*ast.Term // frames
	top      int
	left     int // remaining part of maxWork
}

// stackSize is the number of local variables for which a run has space without allocating.
const stackSize = 512

// maxWork limits the work of a run. A run that exceeds it has no result. The work is the number of loop iterations and of operands of
// built-in functions, where an item or eight bytes count as one. The limit is reached after a few milliseconds.
const maxWork = 1 << 16

func newRun(memos int) *Run {
	r := &Run{memo: make([]known, memos), stack: make([]*ast.Term, stackSize)}
	r.builtins = topdown.BuiltinContext{
		Context: context.Background(), //nolint:forbidigo // a run is bounded
		Metrics: metrics.NoOp(), Cancel: topdown.NewCancel(),
	}
	r.keep = func(t *ast.Term) error {
		r.value = t
		return nil
	}
	return r
}

// Begin starts a run. Call End when it is finished. patterns caches compiled patterns.
func (p *Program) Begin(input *ast.Term, patterns cache.InterQueryValueCache) *Run {
	r, _ := p.runs.Get().(*Run)
	r.program, r.input, r.left = p, input, maxWork
	r.builtins.InterQueryBuiltinValueCache = patterns
	return r
}

// End ends the run.
func (r *Run) End() {
	clear(r.memo)
	clear(r.stack)
	r.builtins.InterQueryBuiltinValueCache, r.input, r.value, r.top = nil, nil, nil, 0
	r.program.runs.Put(r)
}

// Silent reports whether the rule, called with args, has an empty set or an empty array as its value. It returns false if the run cannot
// determine the value.
func (r *Run) Silent(rule *Rule, args ...*ast.Term) bool {
	t, sure := r.Value(rule, args...)
	if !sure || t == nil {
		return false
	}
	switch v := t.Value.(type) {
	case ast.Set:
		return v.Len() == 0
	case *ast.Array:
		return v.Len() == 0
	}
	return false
}

// Value returns the value of the rule f, called with args. The value is nil if it is undefined. sure is false if the run cannot determine the
// value.
func (r *Run) Value(f *Rule, args ...*ast.Term) (t *ast.Term, sure bool) {
	if len(args) != len(f.params)-2 {
		return nil, false
	}
	own, stack, top := r.frame(f)
	for i, a := range args {
		own[f.params[i+2]] = a
	}
	o := r.call(f, own)
	r.stack, r.top = stack, top
	return r.value, o == next
}

// frame returns the frame of a function and the previous state of the stack.
func (r *Run) frame(f *Rule) (own frame, stack []*ast.Term, top int) {
	stack, top = r.stack, r.top
	own = r.room(f.locals)
	clear(own)
	own[f.params[0]] = r.input
	return own, stack, top
}

// room returns space for n values on the stack.
func (r *Run) room(n int) []*ast.Term {
	if r.top+n > len(r.stack) {
		r.stack, r.top = make([]*ast.Term, max(2*len(r.stack), n)), 0
	}
	r.top += n
	return r.stack[r.top-n : r.top : r.top]
}

// call calls a function on its frame. The value is stored in the run, nil if it is undefined.
func (r *Run) call(f *Rule, own frame) outcome {
	if f.memo < 0 {
		return r.do(f, own)
	}
	k := known{set: true}
	for i, p := range f.params[2:] {
		k.args[i] = own[p]
	}
	if last := &r.memo[f.memo]; last.set && last.args == k.args {
		r.value = last.term
		return next
	}
	if v := f.value.Load(); v != nil {
		r.value = v.term
		return next
	}
	o := r.do(f, own)
	if o == next {
		k.term = r.value
		r.memo[f.memo] = k
		if f.constant {
			f.setConstant(k)
		}
	}
	return o
}

// do executes the body of a function.
func (r *Run) do(f *Rule, own frame) outcome {
	r.value = nil
	for _, b := range f.body {
		if o := b.do(r, own); o == unsure {
			return unsure
		} else if o == returned {
			return next
		}
		r.value = nil
	}
	return next
}

// setConstant stores the value of a constant function.
func (f *Rule) setConstant(k known) {
	if k.term != nil {
		if s, ok := k.term.Value.(ast.Set); ok {
			s.Slice() // sort now, because sorting is not safe for concurrent use
		}
	}
	f.value.Store(&k)
}
