package compiler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// readsOf determines which parts of the input each call can read, and which parts all calls together can read. It collects the references
// of all reachable rules, cut at the first variable.
func readsOf(c *ast.Compiler, calls int) (each []*policyinput.Projection, together *policyinput.Projection) {
	ofRule := map[*ast.Rule][][]string{}
	var all [][]string
	for i := range calls {
		var reads [][]string
		for r := range reachable(c, c.GetRulesExact(ast.MustParseRef(fmt.Sprintf("data.%s.c%d", entryPackage, i)))) {
			if _, known := ofRule[r]; !known {
				ofRule[r] = readsOfRule(r)
			}
			reads = append(reads, ofRule[r]...)
		}
		each = append(each, policyinput.NewProjection(reads))
		all = append(all, reads...)
	}
	return each, policyinput.NewProjection(all)
}

// ratchets reports entries with ratchet whose policies do not read the resulting state, because such policies would have denied the
// previous state as well.
func ratchets(org string, calls []Call) error {
	var faults []error
	for _, c := range calls {
		readsResult := func(other Call) bool { return other.path == c.path && other.Reads.Touches("resource", "after") }
		if c.Entry.Ratchet && !slices.ContainsFunc(calls, readsResult) {
			faults = append(faults, &policyconfig.Error{
				Org: org, Policy: c.Entry.Policy, Path: c.path + ".ratchet",
				Message: "has no effect because the policy does not read the resulting state of resources",
			})
		}
	}
	return errors.Join(faults...)
}

// reachable returns the rules and their dependencies.
func reachable(c *ast.Compiler, rules []*ast.Rule) map[*ast.Rule]bool {
	seen := map[*ast.Rule]bool{}
	for queue := rules; len(queue) > 0; {
		r := queue[0]
		queue = queue[1:]
		if seen[r] {
			continue
		}
		seen[r] = true
		if r.Else != nil {
			queue = append(queue, r.Else)
		}
		for dep := range c.Graph.Dependencies(r) {
			if next, ok := dep.(*ast.Rule); ok {
				queue = append(queue, next)
			}
		}
	}
	return seen
}

func readsOfRule(r *ast.Rule) (reads [][]string) {
	policyinput.References(r, func(terms []*ast.Term) { reads = append(reads, inputPath(terms)) })
	return reads
}

// inputPath returns the constant part of a reference to the input.
func inputPath(terms []*ast.Term) []string {
	var path []string
	for _, t := range terms {
		s, ok := t.Value.(ast.String)
		if !ok {
			break
		}
		path = append(path, string(s))
	}
	return path
}
