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

// OPA values share their parts: a list can hold one long string a million times without using memory. Functions that format values as
// strings or concatenate lists copy these parts. Other functions make a string longer, or make many values of one string, and a few such
// calls multiply. None of these functions can be interrupted, so one step of a policy could use all memory. They are replaced by functions
// that check sizes first.

// maxWritten limits the size of such a function's result, in bytes. It is far larger than the input of a call.
const maxWritten = 4 << 20

const (
	// perPart is the memory counted for each value besides its string, so that a list of many short strings is not free.
	perPart = 16
	// maxPattern limits the length of a pattern in bytes, and the number of instructions of its program, because compiled patterns
	// are cached.
	maxPattern = 1 << 14
	// maxReplaced limits how many strings are replaced at once: each uses up to 2 KB in the lookup table.
	maxReplaced = 2048
)

// boundedPrefix is the prefix of the replacements' names.
const boundedPrefix = "tollgate.bounded."

// bound describes a function that is replaced.
type bound struct {
	*ast.Builtin

	// left returns how much of maxWritten remains after a call; the call fails if it is negative. Operands of a wrong type are left
	// to the function itself.
	left func(operands []*ast.Term) int
}

// bounded lists the functions that are replaced. The other allowed functions do not produce more than they receive, or can be
// interrupted.
func bounded() []bound {
	return []bound{
		{ast.Sprintf, allWritten(1)},
		{ast.JSONMarshal, allWritten(1)},
		{ast.InternalTemplateString, allWritten(1)},
		{ast.InternalPrint, allWritten(1)},
		{ast.ArrayConcat, allWritten(1)},
		{ast.ArrayFlatten, allWritten(1)},
		{ast.Concat, func(o []*ast.Term) int { return written(o[1], written(o[0], perItem(o))) }},

		// Nested objects are merged in every place where they occur.
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
			// Overlapping matches start within a counted one.
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
		// Their index contains every letter and is cached.
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

// replacements maps names to the functions that compiled modules call after Bind.
var replacements = sync.OnceValue(func() map[string]*topdown.Builtin {
	out := map[string]*topdown.Builtin{}
	for _, b := range bounded() {
		f := topdown.GetBuiltin(b.Name)
		decl := *b.Builtin
		decl.Name = boundedPrefix + b.Name
		out[decl.Name] = &topdown.Builtin{
			Decl: &decl,
			Func: func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
				if b.left(operands) < 0 {
					return &topdown.Error{
						Code: topdown.BuiltinErr, Location: bctx.Location,
						Message: b.Name + ": operands or result too large",
					}
				}
				return f(bctx, operands, iter)
			},
		}
	}
	return out
})

// allWritten returns a check for a function whose result is at most factor times as large as its formatted operands.
func allWritten(factor int) func([]*ast.Term) int {
	return func(operands []*ast.Term) int {
		left := maxWritten / factor
		for _, o := range operands {
			left = written(o, left)
		}
		return left
	}
}

// str returns an operand that should be a string.
func str(operands []*ast.Term, i int) string {
	s, _ := operands[i].Value.(ast.String)
	return string(s)
}

// times returns a*b, or a number above every limit if the product is too large.
func times(a, b int) int {
	if a > 0 && b > maxWritten/a {
		return maxWritten + 1
	}
	return a * b
}

// perItem returns how much of the limit remains for concat after the delimiters.
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

// replaced limits the result of strings.replace_n, assuming that every string is replaced wherever it occurs.
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

// parsed limits the values in JSON text.
func parsed(operands []*ast.Term) int {
	s := str(operands, 0)
	left := maxWritten - len(s)
	for _, c := range []string{",", "[", "{"} {
		left -= perPart * strings.Count(s, c)
	}
	return left
}

// fitting caches whether patterns are small enough, because it is checked in every call.
var fitting, _ = lru.New[string, bool](1024) //nolint:gochecknoglobals // its content follows from the keys alone

// pattern returns how much of the limit remains after a regular expression. A short expression may compile to a long program
// because repetitions are expanded.
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
		fits = err != nil || steps(re) <= maxPattern // a pattern that does not parse is left to the function
		fitting.Add(expr, fits)
	}
	if !fits {
		return -1
	}
	return maxPattern
}

// steps estimates the number of instructions of an expression's program.
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

// written subtracts the formatted size of a value from left and stops when it is negative. Shared parts count each time, so it ends
// early even for values that are huge when formatted.
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

// Bind replaces calls of OPA's functions in compiled modules by functions that check the size of their result first.
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
			swap(v.Target) // the value cannot be a replaced function: Check rejects that
		}
		return false
	})
	for _, m := range maps.All(modules) {
		visitor.Walk(m)
	}
}
