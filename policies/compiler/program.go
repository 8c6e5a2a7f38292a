package compiler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Program finds out quickly that a rule denies nothing. Nearly all calls violate nothing, and a full evaluation spends most of its time on
// finding that out. OPA's planner makes a plan of the same Rego: functions of simple statements over local variables (package ir of OPA).
// A Program turns the plan into closures, which work on the values of package ast with the built-in functions of topdown.
//
// A Program decides nothing else. It answers whether the value of a rule is the empty set or list; everything else, such as an error, a
// conflict or an undefined value, is left to the evaluation of the Rego, which words the refusal. The work of a run is bounded for every
// input, and more work is left to the evaluation, too. Regular expressions are matched by automata, some other functions without topdown.
//
// A Program never changes and is safe for concurrent use.
type Program struct {
	// Unsupported says which functions there is no program for. A run that comes to one
	// cannot tell.
	Unsupported []error

	functions map[string]*function // by path, joined by dots
	memos     int                  // how many functions have something remembered of them
	runs      sync.Pool
	automata  *lru.Cache[string, *automaton] // by regular expression, nil for those that have none
}

// function is a rule, or several of one name.
type function struct {
	name   string
	params []int
	locals int // how many there are, parameters included
	body   []block
	memo   int // its place in Run.memo, -1 with more arguments than are remembered

	looks bool     // at the input
	calls []string // the functions it calls

	// constant is set if the function depends on nothing, in which case its value is
	// found once.
	constant bool
	value    atomic.Pointer[known]
}

// known is the result of a function with arguments: the same, not equal ones.
type known struct {
	set  bool
	args [2]*ast.Term
	term *ast.Term // nil if it is undefined
}

// CompileProgram returns the program of rules, references below data, and of all that they
// depend on. root is the root of data that holds rules only: the program sees no data.
// functions resolves the built-in functions by name. The compiler's modules are as it
// left them.
func CompileProgram(ctx context.Context, c *ast.Compiler, rules []string, root string, functions func(name string) topdown.BuiltinFunc) (*Program, error) {
	plan, err := planOf(ctx, c, rules)
	if err != nil {
		return nil, fmt.Errorf("accept: plan: %w", err)
	}
	b := &builder{
		plan: plan, root: root, builtins: functions,
		functions: map[string]*function{}, static: make([]*ast.Term, len(plan.Static.Strings)),
	}
	for i, s := range plan.Static.Strings {
		b.static[i] = ast.InternedTerm(s.Value)
	}
	p := &Program{functions: map[string]*function{}, automata: newAutomata()}
	for _, fn := range plan.Funcs.Funcs {
		f := &function{name: fn.Name, memo: -1}
		for _, l := range fn.Params {
			f.params = append(f.params, int(l))
		}
		if len(fn.Params) <= 2+len(known{}.args) {
			f.memo = p.memos
			p.memos++
		}
		b.functions[fn.Name] = f
		if len(fn.Path) > 0 {
			p.functions[strings.Join(fn.Path[1:], ".")] = f
		}
	}
	for _, fn := range plan.Funcs.Funcs {
		if err := b.function(fn); err != nil {
			b.now.body = []block{{func(*Run, frame) outcome { return unsure }}}
			p.Unsupported = append(p.Unsupported, fmt.Errorf("%s: %w", fn.Name, err))
		}
	}
	b.constants()
	p.runs.New = func() any { return newRun(p.memos) }
	return p, nil
}

// Rule finds a rule by its path below data; nil is none.
func (p *Program) Rule(path string) *Rule {
	f := p.functions[path]
	if f == nil {
		return nil
	}
	return &Rule{f}
}

// Rule is a rule of a program.
type Rule struct{ *function }

// constants marks the functions without arguments that depend on nothing: neither they
// nor those they call look at the input.
func (b *builder) constants() {
	for _, f := range b.functions {
		f.constant = len(f.params) == 2 && !f.looks
	}
	for changed := true; changed; {
		changed = false
		for _, f := range b.functions {
			if f.constant && slices.ContainsFunc(f.calls, b.depends) {
				f.constant, changed = false, true
			}
		}
	}
}

// depends reports whether the result of a function may depend on the input.
func (b *builder) depends(name string) bool { return !b.functions[name].constant }
