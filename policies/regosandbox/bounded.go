package regosandbox

import (
	"maps"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Values share their parts: a list may hold one long string a million times and
// take no memory. The functions that write values out as strings do not, nor do
// those that concatenate lists; others make a string longer, or many values of
// one string, and a few calls in a row multiply. They cannot be interrupted, so
// one step of a policy could take all memory. They are replaced by functions that
// check first.

// maxWritten bounds what such a function makes, in bytes. It is far above the size of a
// call's input.
const maxWritten = 4 << 20

const (
	// perPart is the cost of a value beside its string: a list of many short ones takes
	// memory too.
	perPart = 16
	// maxPattern bounds a pattern, in bytes and in steps of its program. Compiled
	// ones are kept.
	maxPattern = 1 << 14
	// maxReplaced bounds how many strings are replaced at once: each takes up to
	// 2 KB in the table they are looked up in.
	maxReplaced = 2048
)

// boundedPrefix is put before the names of the replacements.
const boundedPrefix = "tollgate.bounded."

// bound is a function that is replaced.
type bound struct {
	*ast.Builtin

	// left is the rest of maxWritten after a call; below zero it is refused. Operands of a
	// wrong type are left to the function itself.
	left func(operands []*ast.Term) int
}

// bounded lists the functions that are replaced. Of those a policy may call, the
// others make no more than they are given, or can be stopped.
func bounded() []bound {
	return []bound{
		{ast.Sprintf, allWritten(1)},
		{ast.JSONMarshal, allWritten(1)},
		{ast.InternalTemplateString, allWritten(1)},
		{ast.InternalPrint, allWritten(1)},
		{ast.ArrayConcat, allWritten(1)},
		{ast.ArrayFlatten, allWritten(1)},
		{ast.Concat, func(o []*ast.Term) int { return written(o[1], written(o[0], perItem(o))) }},

		// Objects within objects are merged, at every place where one is.
		{ast.ObjectUnion, allWritten(2)},
		{ast.ObjectUnionN, allWritten(8)},

		{ast.HexEncode, allWritten(2)},
		{ast.Base64Encode, allWritten(2)},
		{ast.Base64UrlEncode, allWritten(2)},
		{ast.Format, allWritten(4)}, // "2" may become "31"

		{ast.Split, func(o []*ast.Term) int {
			return maxWritten - len(str(o, 0)) - perPart*strings.Count(str(o, 0), str(o, 1))
		}},
		{ast.IndexOfN, func(o []*ast.Term) int {
			// Those that overlap begin within one that is counted.
			return maxWritten - times(perPart*len(str(o, 1)), strings.Count(str(o, 0), str(o, 1)))
		}},
		{ast.Replace, func(o []*ast.Term) int {
			return maxWritten - len(str(o, 0)) - times(len(str(o, 2)), strings.Count(str(o, 0), str(o, 1)))
		}},
		{ast.ReplaceN, replaced},
		{ast.JSONUnmarshal, parsed},
		{ast.JSONIsValid, parsed},

		{ast.RegexMatch, func(o []*ast.Term) int { return pattern(str(o, 0)) }},
		{ast.RegexIsValid, func(o []*ast.Term) int { return pattern(str(o, 0)) }},
		{ast.RegexSplit, func(o []*ast.Term) int { return min(pattern(str(o, 0)), maxWritten-perPart*len(str(o, 1))) }},
		{ast.GlobMatch, func(o []*ast.Term) int { return maxPattern - len(str(o, 0)) }},
		// Their index is built of every letter, and kept.
		{ast.AnyPrefixMatch, allWritten(perPart)},
		{ast.AnySuffixMatch, allWritten(perPart)},
	}
}

// Bounded lists the functions that Bind replaces.
func Bounded() []string {
	var names []string
	for _, b := range bounded() {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names
}

// replacements are the functions that compiled modules call after Bind, by name.
var replacements = sync.OnceValue(func() map[string]*topdown.Builtin {
	out := map[string]*topdown.Builtin{}
	for _, b := range bounded() {
		f := topdown.GetBuiltin(b.Name)
		decl := *b.Builtin
		decl.Name = boundedPrefix + b.Name
		out[decl.Name] = &topdown.Builtin{Decl: &decl, Func: func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
			if b.left(operands) < 0 {
				return &topdown.Error{
					Code: topdown.BuiltinErr, Location: bctx.Location,
					Message: b.Name + ": the operands are too large, or would make too much",
				}
			}
			return f(bctx, operands, iter)
		}}
	}
	return out
})

// allWritten bounds the operands, written out, of a function that makes up to
// factor times as much.
func allWritten(factor int) func([]*ast.Term) int {
	return func(operands []*ast.Term) int {
		left := maxWritten / factor
		for _, o := range operands {
			left = written(o, left)
		}
		return left
	}
}

// str is an operand that should be a string.
func str(operands []*ast.Term, i int) string {
	s, _ := operands[i].Value.(ast.String)
	return string(s)
}

// times is a*b, or more than is bounded.
func times(a, b int) int {
	if a > 0 && b > maxWritten/a {
		return maxWritten + 1
	}
	return a * b
}

// perItem is the rest of the bound for concat after its delimiters.
func perItem(operands []*ast.Term) int {
	items := 0
	switch v := operands[1].Value.(type) {
	case *ast.Array:
		items = v.Len()
	case ast.Set:
		items = v.Len()
	}
	return maxWritten - times(len(str(operands, 0)), items)
}

// replaced bounds what strings.replace_n makes, as if every string were replaced
// wherever it occurs.
func replaced(operands []*ast.Term) int {
	patterns, ok := operands[0].Value.(ast.Object)
	if !ok {
		return 0
	}
	s := str(operands, 1)
	// Each pattern is a pass over the string.
	if patterns.Len() > maxReplaced || times(len(s), patterns.Len()) > maxWritten {
		return -1
	}
	left := maxWritten - len(s)
	patterns.Until(func(key, value *ast.Term) bool {
		from, _ := key.Value.(ast.String)
		to, _ := value.Value.(ast.String)
		left -= times(len(to), strings.Count(s, string(from)))
		left -= len(from)
		return left < 0
	})
	return left
}

// parsed bounds the values that JSON text can hold.
func parsed(operands []*ast.Term) int {
	s := str(operands, 0)
	left := maxWritten - len(s)
	for _, c := range []string{",", "[", "{"} {
		left -= perPart * strings.Count(s, c)
	}
	return left
}

// fitting remembers patterns and whether they are small enough, since that is
// looked at in every call.
var fitting, _ = lru.New[string, bool](1024) //nolint:gochecknoglobals // its content follows from the keys alone

// pattern is the rest of the bound after a regular expression. A short one may stand for a
// long program: its repetitions are written out in that.
func pattern(expr string) int {
	if len(expr) > maxPattern {
		return -1
	}
	if len(expr) <= 1<<10 && !strings.Contains(expr, "{") {
		return maxPattern
	}
	fits, known := fitting.Get(expr)
	if !known {
		re, err := syntax.Parse(expr, syntax.Perl)
		fits = err != nil || steps(re) <= maxPattern // what does not parse is left to the function
		fitting.Add(expr, fits)
	}
	if !fits {
		return -1
	}
	return maxPattern
}

// steps is about how long the program of an expression is.
func steps(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n = times(n, max(1, re.Min, re.Max))
	}
	return n
}

// written takes the size of a value, written out, from the rest; below zero it gives up.
// Every part counts, so it ends even if parts are shared.
func written(t *ast.Term, left int) int {
	if left < 0 {
		return left
	}
	switch v := t.Value.(type) {
	case ast.String:
		return left - 2 - len(v)
	case ast.Number:
		return left - len(v)
	case *ast.Array:
		left -= 2
		for i := 0; i < v.Len() && left >= 0; i++ {
			left = written(v.Elem(i), left)
		}
	case ast.Set:
		left -= 2
		v.Until(func(item *ast.Term) bool {
			left = written(item, left)
			return left < 0
		})
	case ast.Object:
		left -= 2
		v.Until(func(key, value *ast.Term) bool {
			left = written(value, written(key, left))
			return left < 0
		})
	default:
		left -= 5
	}
	return left
}

// Bind makes compiled modules call functions that check the size of their result first, in
// place of OPA's own.
func Bind(modules map[string]*ast.Module) {
	replaced := map[string]*ast.Term{}
	for _, b := range bounded() {
		replaced[b.Ref().String()] = ast.NewTerm(ast.MustParseRef(boundedPrefix + b.Name))
	}
	swap := func(t *ast.Term) {
		if ref, ok := t.Value.(ast.Ref); ok {
			if r := replaced[ref.String()]; r != nil {
				t.Value = r.Value
			}
		}
	}
	visitor := ast.NewGenericVisitor(func(x any) bool {
		switch v := x.(type) {
		case *ast.Expr:
			if terms, ok := v.Terms.([]*ast.Term); ok {
				// Operators may be shared between expressions.
				terms[0] = &ast.Term{Value: terms[0].Value, Location: terms[0].Location}
				swap(terms[0])
			}
		case *ast.With:
			swap(v.Target) // none is a value: Check refuses that
		}
		return false
	})
	for _, m := range maps.All(modules) {
		visitor.Walk(m)
	}
}
