package compiler

import (
	"strings"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/open-policy-agent/opa/v1/ast"
)

// native computes the result of a built-in function whose operands are all defined. A nil result leaves the call to the function
// itself.
type native func(r *Run, operands []*ast.Term) *ast.Term

// natives returns the native implementation of a frequently called built-in function.
func natives(name string) native {
	switch name {
	case ast.RegexMatch.Name:
		return ofTexts(matched)
	case ast.StartsWith.Name:
		return ofTexts(func(_ *Run, s, prefix string) *ast.Term { return ast.InternedTerm(strings.HasPrefix(s, prefix)) })
	case ast.EndsWith.Name:
		return ofTexts(func(_ *Run, s, suffix string) *ast.Term { return ast.InternedTerm(strings.HasSuffix(s, suffix)) })
	case ast.Contains.Name:
		return ofTexts(func(_ *Run, s, part string) *ast.Term { return ast.InternedTerm(strings.Contains(s, part)) })
	case ast.Split.Name:
		return ofTexts(parted)
	case ast.Concat.Name:
		return joined
	case ast.Count.Name:
		return counted
	case ast.Member.Name:
		return contained
	case ast.Or.Name:
		return united
	case ast.IsString.Name:
		return isA[ast.String]
	case ast.IsNumber.Name:
		return isA[ast.Number]
	}
	return nil
}

// ofTexts returns a native for a function of two strings.
func ofTexts(f func(r *Run, a, b string) *ast.Term) native {
	return func(r *Run, operands []*ast.Term) *ast.Term {
		a, ok1 := operands[0].Value.(ast.String)
		b, ok2 := operands[1].Value.(ast.String)
		if !ok1 || !ok2 {
			return nil
		}
		return f(r, string(a), string(b))
	}
}

// matched matches a text with an automaton.
func matched(r *Run, expression, text string) *ast.Term {
	a, known := r.program.automata.Get(expression)
	if !known {
		a = newAutomaton(expression)
		r.program.automata.Add(expression, a)
	}
	if a == nil {
		return nil
	}
	matches, sure := a.match(text)
	if !sure {
		return nil
	}
	return ast.InternedTerm(matches)
}

// maxAutomata is the number of automata a program caches.
const maxAutomata = 64

func newAutomata() *lru.Cache[string, *automaton] {
	c, err := lru.New[string, *automaton](maxAutomata)
	if err != nil { // fails only for a size below 1
		panic(err)
	}
	return c
}

// maxMade limits the result of a native in bytes. Larger results are left to the built-in function, which checks sizes.
const maxMade = 1 << 14

// parted splits a text at each separator.
func parted(_ *Run, text, separator string) *ast.Term {
	if separator == "" || len(text) > maxMade {
		return nil
	}
	parts := make([]*ast.Term, 0, 1+strings.Count(text, separator))
	for part := range strings.SplitSeq(text, separator) {
		parts = append(parts, ast.InternedTerm(part))
	}
	return ast.ArrayTerm(parts...)
}

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

func counted(_ *Run, operands []*ast.Term) *ast.Term {
	if s, ok := operands[0].Value.(ast.String); ok {
		return ast.InternedTerm(utf8.RuneCountInString(string(s)))
	}
	if n, ok := length(operands[0]); ok {
		return ast.InternedTerm(n)
	}
	return nil
}

// contained reports whether a value is in a set or list.
func contained(_ *Run, operands []*ast.Term) *ast.Term {
	switch in := operands[1].Value.(type) {
	case ast.Set:
		return ast.InternedTerm(in.Contains(operands[0]))
	case *ast.Array:
		return ast.InternedTerm(in.Until(operands[0].Equal))
	}
	return nil
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

func isA[T ast.Value](_ *Run, operands []*ast.Term) *ast.Term {
	_, ok := operands[0].Value.(T)
	return ast.InternedTerm(ok)
}
