package compiler

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/ir"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// call builds a call that stores its result; an undefined result leaves the block.
func (b *builder) call(s *ir.CallStmt) step {
	to := b.local(s.Result)
	if f := b.functions[s.Func]; f != nil {
		b.now.calls = append(b.now.calls, s.Func)
		return internal(f, b.operands(s.Args[2:]), to) // the first two arguments are input and data
	}
	args := b.operands(s.Args)
	for _, decl := range b.plan.Static.BuiltinFuncs {
		if decl.Name == s.Func && (decl.Decl.Result() == nil || len(decl.Decl.FuncArgs().Args) != len(args)) {
			b.unsupported = true
		}
	}
	fn := b.builtins(s.Func)
	if decl := ast.BuiltinMap[s.Func]; fn == nil || decl == nil || decl.Relation { // a relation has several values
		b.unsupported = true
	}
	return external(fn, natives(s.Func), args, to)
}

// internal builds a call of a function in the plan.
func internal(f *Rule, args []operand, to int) step {
	return func(r *Run, caller frame) outcome {
		own, stack, top := r.frame(f)
		for i, a := range args {
			own[f.params[i+2]] = a.of(caller)
		}
		o := r.call(f, own)
		r.stack, r.top = stack, top
		if o != next {
			return o
		}
		return result(r, caller, to)
	}
}

// external builds a call of a built-in function. An error of the function ends the run.
func external(fn topdown.BuiltinFunc, own native, args []operand, to int) step {
	return func(r *Run, caller frame) outcome {
		stack, top := r.stack, r.top
		operands := r.room(len(args))
		for i, a := range args {
			operands[i] = a.of(caller)
			r.left -= 1 + size(operands[i])
		}
		if r.left < 0 {
			return unsure
		}
		r.value = nil
		if own != nil {
			r.value = own(r, operands)
		}
		if r.value == nil && fn(r.builtins, operands, r.keep) != nil {
			return unsure
		}
		r.stack, r.top = stack, top
		return result(r, caller, to)
	}
}

// size estimates the work of processing a value.
func size(t *ast.Term) int {
	if t != nil {
		switch v := t.Value.(type) {
		case ast.String:
			return len(v) / 8
		case interface{ Len() int }:
			return v.Len()
		}
	}
	return 0
}

func result(r *Run, caller frame, to int) outcome {
	caller[to] = r.value
	if r.value == nil {
		return leave
	}
	return next
}

func (b *builder) operands(of []ir.Operand) []operand {
	out := make([]operand, len(of))
	for i, o := range of {
		out[i] = b.operand(o)
	}
	return out
}
