package compiler

import (
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/ir"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// builder compiles plans into closures.
type builder struct {
	plan      *ir.Policy
	root      string
	builtins  func(string) topdown.BuiltinFunc
	functions map[string]*Rule
	static    []*ast.Term

	// State of the function being built.
	now         *Rule
	lists       map[ir.Local]bool // local arrays built by appending
	unsupported bool              // set if it reads data, which runs do not have, or contains a statement or call that is not supported
}

// outcome is the result of a step or a block: a number of enclosing blocks to leave, or one of the constants below.
type outcome int

const (
	// next continues with the next step.
	next outcome = -1 - iota
	// returned leaves the function; its value is in the run.
	returned
	// unsure ends the run without a result; an evaluation is needed.
	unsure
)

// leave ends the innermost block, like an undefined statement. leave+1 also ends the enclosing block.
const leave outcome = 0

type (
	step  func(r *Run, f frame) outcome // executes a statement
	block []step                        // executed in order
	frame []*ast.Term                   // local variables; nil is undefined
)

// do executes the steps of a block.
func (b block) do(r *Run, f frame) outcome {
	for _, s := range b {
		if o := s(r, f); o != next {
			return o
		}
	}
	return next
}

// within converts the outcome of a nested block into the outcome for the enclosing block.
func within(o outcome) outcome {
	if o == leave {
		return next
	}
	if o > leave {
		return o - 1
	}
	return o
}

// function builds the body of a function. A run that reaches an unsupported function has no result.
func (b *builder) function(fn *ir.Func) {
	b.now, b.lists, b.unsupported = b.functions[fn.Name], map[ir.Local]bool{}, false
	visit(fn.Blocks, func(s ir.Stmt) {
		if m, ok := s.(*ir.MakeArrayStmt); ok {
			b.lists[m.Target] = true
		}
	})
	b.local(fn.Return)
	for _, l := range fn.Params {
		b.local(l)
	}
	b.now.body = b.blocks(fn.Blocks)
	if b.unsupported {
		b.now.body = []block{{func(*Run, frame) outcome { return unsure }}}
	}
}

func (b *builder) blocks(from []*ir.Block) []block {
	out := make([]block, len(from))
	for i, inner := range from {
		out[i] = b.block(inner)
	}
	return out
}

func (b *builder) block(from *ir.Block) block {
	out := make(block, 0, len(from.Stmts))
	for i := 0; i < len(from.Stmts); i++ {
		if set, n := b.constantSet(from.Stmts[i:]); n > 0 {
			out = append(out, set)
			i += n - 1
		} else if s := b.statement(from, i); s != nil {
			out = append(out, s)
		}
	}
	return out
}

// statement builds one statement. A nil step does nothing.
func (b *builder) statement(in *ir.Block, i int) step {
	switch s := in.Stmts[i].(type) {
	case *ir.NopStmt:
		return nil
	case *ir.MakeSetStmt:
		return b.makeSet(s, in.Stmts[i+1:])
	case *ir.CallStmt:
		return b.call(s)
	}
	for _, build := range []func(ir.Stmt) step{b.control, b.condition, b.assignment, b.construction} {
		if s := build(in.Stmts[i]); s != nil {
			return s
		}
	}
	b.unsupported = true
	return nil
}

// local returns the index of a local variable.
func (b *builder) local(l ir.Local) int {
	b.now.locals = max(b.now.locals, int(l)+1)
	return int(l)
}

// operand is a value read by a statement.
type operand struct {
	constant *ast.Term // or local
	local    int
	list     bool // the local may be an array under construction
}

func (b *builder) operand(o ir.Operand) operand {
	switch v := o.Value.(type) {
	case ir.Local:
		return b.read(v)
	case ir.StringIndex:
		return operand{constant: b.static[v]}
	case ir.Bool:
		return operand{constant: ast.InternedTerm(bool(v))}
	default:
		panic(fmt.Sprintf("accept: unexpected operand type %T", v)) // the IR has three operand types
	}
}

// read returns a local variable as an operand.
func (b *builder) read(l ir.Local) operand {
	b.now.readsInput = b.now.readsInput || l == ir.Input
	b.unsupported = b.unsupported || l == ir.Data
	return operand{local: b.local(l), list: b.lists[l]}
}

// of returns the value of an operand, or nil if it is undefined.
func (o operand) of(f frame) *ast.Term {
	if o.constant != nil {
		return o.constant
	}
	if o.list {
		return settled(f, o.local)
	}
	return f[o.local]
}

// visit calls f for the statements of blocks, including nested ones.
func visit(blocks []*ir.Block, f func(ir.Stmt)) {
	for _, b := range blocks {
		for _, s := range b.Stmts {
			f(s)
			switch s := s.(type) {
			case *ir.BlockStmt:
				visit(s.Blocks, f)
			case *ir.ScanStmt:
				visit([]*ir.Block{s.Block}, f)
			case *ir.NotStmt:
				visit([]*ir.Block{s.Block}, f)
			}
		}
	}
}
