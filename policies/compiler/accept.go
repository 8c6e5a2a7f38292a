package compiler

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// quick is how a call is found to say nothing without an evaluation.
type quick struct {
	guard  *Rule // undefined where the entry does not apply; nil applies always
	rule   *Rule
	params *ast.Term
}

// programOf makes the program that finds out quickly what calls of the library say
// nothing; nil if there are none. Rego that may be hostile has none: what bounds it is
// in the evaluation.
func programOf(ctx context.Context, c *ast.Compiler, calls []Call) (*Program, error) {
	var rules []string
	for i, call := range calls {
		if !call.foreign() {
			rules = append(rules, fmt.Sprintf("data.%s.c%d", entryPackage, i))
		}
	}
	if len(rules) == 0 {
		return nil, nil
	}
	return CompileProgram(ctx, c, rules, reservedRoot, regosandbox.Function)
}

// bind gives calls their parts of the form. It returns the data that the entrypoint reads.
func (l *linked) bind(calls []Call) (map[string]any, error) {
	given := make([]any, len(calls))
	for i := range calls {
		call := &calls[i]
		call.Reads, given[i] = l.reads[i], orEmpty(call.params)
		if call.foreign() {
			continue
		}
		params, err := ast.InterfaceToValue(call.params)
		if err != nil {
			return nil, fmt.Errorf("parameters: %w", err)
		}
		call.quick = quick{rule: l.program.Rule(call.from + "." + call.Rule), params: ast.NewTerm(params)}
		if len(guard(&call.Entry)) > 0 {
			call.quick.guard = l.program.Rule(fmt.Sprintf("%s.applies_%d", entryPackage, i))
		}
	}
	return map[string]any{"params": given}, nil
}

// HasProgram reports whether there are calls that Silent can find.
func (c *Compiled) HasProgram() bool { return c.program != nil }

// EachSilent finds the calls among some that say nothing about an input. Of those it leaves
// out, only an evaluation can tell. Its work is bounded for every input.
func (c *Compiled) EachSilent(input *ast.Term, among func(call int) bool, silent func(call int)) {
	run := c.program.Begin(input, c.patterns)
	defer run.End()
	for i := range c.Calls {
		q := &c.Calls[i].quick
		if q.rule == nil || !among(i) {
			continue
		}
		if q.guard != nil {
			applies, sure := run.Value(q.guard)
			if sure && applies == nil {
				silent(i)
			}
			if !sure || applies == nil {
				continue
			}
		}
		if run.Silent(q.rule, q.params) {
			silent(i)
		}
	}
}
