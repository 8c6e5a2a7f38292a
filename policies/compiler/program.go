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

// Program quickly detects that a rule has an empty result. Nearly all calls violate no policy, and a full evaluation spends most of
// its time finding that out. OPA's planner translates Rego into a plan: functions of simple statements over local variables
// (package ir of OPA). A Program compiles the plan into closures, which operate on the values of package ast with the built-in
// functions of topdown.
//
// A Program only determines whether the value of a rule is the empty set or list. In all other cases, such as an error, a conflict or an
// undefined value, the Rego must be evaluated, which also produces the messages. The work of a run is limited for every input; a run that
// exceeds the limit has no result. Regular expressions are matched by automata, and some other functions are implemented without topdown.
//
// A Program is immutable and safe for concurrent use.
type Program struct {
	functions map[string]*Rule // by path, joined with dots
	memos     int              // number of functions whose last result is cached
	runs      sync.Pool
	automata  *lru.Cache[string, *automaton] // by regular expression; nil for unsupported ones
}

// Rule is a function of a program: a rule, or several rules with the same name.
type Rule struct {
	params []int
	locals int // number of local variables, including parameters
	body   []block
	memo   int // index in Run.memo, or -1 if it has too many arguments

	readsInput bool     // whether it reads the input
	calls      []string // the functions it calls

	// constant is set if the function depends on nothing. Its value is then computed once.
	constant bool
	value    atomic.Pointer[known]
}

// known is the result of a function for identical (not merely equal) arguments.
type known struct {
	set  bool
	args [2]*ast.Term
	term *ast.Term // nil if the result is undefined
}

// CompileProgram returns the program for rules, given as references below data, and their dependencies. root is the root of data
// that contains only rules: the program cannot read data. functions resolves built-in functions by name. c must have compiled the
// modules.
func CompileProgram(
	ctx context.Context, c *ast.Compiler, rules []string, root string, functions func(name string) topdown.BuiltinFunc,
) (*Program, error) {
	plan, err := planOf(ctx, c, rules)
	if err != nil {
		return nil, fmt.Errorf("accept: plan: %w", err)
	}
	b := &builder{
		plan: plan, root: root, builtins: functions,
		functions: map[string]*Rule{}, static: make([]*ast.Term, len(plan.Static.Strings)),
	}
	for i, s := range plan.Static.Strings {
		b.static[i] = ast.InternedTerm(s.Value)
	}
	p := &Program{functions: map[string]*Rule{}, automata: newAutomata()}
	for _, fn := range plan.Funcs.Funcs {
		f := &Rule{memo: -1}
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
		b.function(fn)
	}
	b.constants()
	p.runs.New = func() any { return newRun(p.memos) }
	return p, nil
}

// Rule returns a rule by its path below data, or nil.
func (p *Program) Rule(path string) *Rule { return p.functions[path] }

// constants marks functions without arguments that depend on nothing: neither they nor the functions they call read the input.
func (b *builder) constants() {
	for _, f := range b.functions {
		f.constant = len(f.params) == 2 && !f.readsInput
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
