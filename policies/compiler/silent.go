package compiler

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// quick detects, without an evaluation, that a call has an empty result.
type quick struct {
	guard  *Rule // undefined if the entry does not apply; a nil guard always applies
	rule   *Rule
	params *ast.Term
}

// programOf returns the program that quickly detects calls of library policies with an empty result, or nil if there are none.
// Untrusted Rego has no program, because only evaluations limit its cost.
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

// bind assigns the calls their parts of the compiled form. It returns the data that the entrypoint reads.
func (l *linked) bind(calls []Call) map[string]any {
	given := make([]any, len(calls))
	for i := range calls {
		call := &calls[i]
		call.Reads, given[i] = l.reads[i], call.params
		if call.foreign() {
			continue
		}
		params, _ := ast.InterfaceToValue(call.params) // decoded JSON
		call.quick = quick{rule: l.program.Rule(call.from + "." + call.Rule), params: ast.NewTerm(params)}
		if len(guard(&call.Entry)) > 0 {
			call.quick.guard = l.program.Rule(fmt.Sprintf("%s.applies_%d", entryPackage, i))
		}
	}
	return map[string]any{"params": given}
}

// HasProgram reports whether EachSilent can find any calls.
func (c *Compiled) HasProgram() bool { return c.program != nil }

// EachSilent calls visit for each call that selected accepts and that has an empty result for the input. It may miss some of these calls,
// which then need an evaluation. Its work is limited for every input.
func (c *Compiled) EachSilent(input *ast.Term, selected func(call int) bool, visit func(call int)) {
	run := c.program.Begin(input, c.patterns)
	defer run.End()
	for i := range c.Calls {
		q := &c.Calls[i].quick
		if q.rule == nil || !selected(i) {
			continue
		}
		if q.guard != nil {
			applies, sure := run.Value(q.guard)
			if sure && applies == nil {
				visit(i)
			}
			if !sure || applies == nil {
				continue
			}
		}
		if run.Silent(q.rule, q.params) {
			visit(i)
		}
	}
}
