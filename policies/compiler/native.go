package compiler

import (
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/open-policy-agent/opa/v1/ast"
)

// native computes the result of a built-in function whose operands are all defined. A nil result leaves the call to the function
// itself.
type native func(r *Run, operands []*ast.Term) *ast.Term

// natives returns the native implementation of a built-in function, or nil. The functions of OPA allocate more.
func natives(name string) native {
	switch name {
	case ast.RegexMatch.Name:
		return matched
	case ast.Concat.Name:
		return joined
	case ast.Or.Name:
		return united
	}
	return nil
}

// matched matches a text with an automaton.
func matched(r *Run, operands []*ast.Term) *ast.Term {
	pattern, ok1 := operands[0].Value.(ast.String)
	text, ok2 := operands[1].Value.(ast.String)
	if !ok1 || !ok2 {
		return nil
	}
	expression := string(pattern)
	a, known := r.program.automata.Get(expression)
	if !known {
		a = newAutomaton(expression)
		r.program.automata.Add(expression, a)
	}
	if a == nil {
		return nil
	}
	matches, sure := a.match(string(text))
	if !sure {
		return nil
	}
	return ast.InternedTerm(matches)
}

// maxAutomata is the number of automata a program caches.
const maxAutomata = 64

func newAutomata() *lru.Cache[string, *automaton] {
	c, _ := lru.New[string, *automaton](maxAutomata) // fails only for a size below 1
	return c
}

// maxMade limits the result of a native in bytes. Larger results are left to the built-in function, which checks sizes.
const maxMade = 1 << 14

// joined joins a list of strings.
func joined(_ *Run, operands []*ast.Term) *ast.Term {
	separator, ok1 := operands[0].Value.(ast.String)
	list, ok2 := operands[1].Value.(*ast.Array)
	if !ok1 || !ok2 {
		return nil
	}
	var room [8]string
	texts, made := room[:0], 0
	for i := range list.Len() {
		s, ok := list.Elem(i).Value.(ast.String)
		if made += len(s) + len(separator); !ok || made > maxMade {
			return nil
		}
		texts = append(texts, string(s))
	}
	return ast.InternedTerm(strings.Join(texts, string(separator)))
}

// united returns the union of two sets if one of them is empty.
func united(_ *Run, operands []*ast.Term) *ast.Term {
	a, ok1 := operands[0].Value.(ast.Set)
	b, ok2 := operands[1].Value.(ast.Set)
	switch {
	case !ok1 || !ok2:
		return nil
	case b.Len() == 0:
		return operands[0]
	case a.Len() == 0:
		return operands[1]
	}
	return nil
}
