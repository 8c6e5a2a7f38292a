package policies

import (
	"fmt"
	"maps"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Values share their parts: a list may hold one long text a million times and
// take no room. The functions that write values out as text do not, nor do those
// that put lists together, a few of which in a row multiply. They cannot be
// stopped on the way, so one step of a policy could take all memory. Here they
// are replaced by ones that look first.

// maxWritten bounds the operands of such a function, written out, in bytes. It
// is far above what a call's input can hold.
const maxWritten = 4 << 20

// boundedPrefix is put before the names of the replacements.
const boundedPrefix = "tollgate.bounded."

// bounded lists the functions that are replaced.
func bounded() []*ast.Builtin {
	return []*ast.Builtin{
		ast.Concat, ast.Sprintf, ast.JSONMarshal, ast.InternalTemplateString,
		ast.ArrayConcat, ast.ArrayFlatten,
	}
}

// boundedBuiltins are the replacements, by name.
func boundedBuiltins() map[string]*topdown.Builtin {
	out := map[string]*topdown.Builtin{}
	for _, b := range bounded() {
		f := topdown.GetBuiltin(b.Name)
		decl := *b
		decl.Name = boundedPrefix + b.Name
		out[decl.Name] = &topdown.Builtin{Decl: &decl, Func: func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
			left := maxWritten
			// The delimiter of concat is written between all items.
			if b.Name == ast.Concat.Name {
				left = perItem(operands)
			}
			for _, o := range operands {
				if left = written(o, left); left < 0 {
					return &topdown.Error{
						Code: topdown.BuiltinErr, Location: bctx.Location,
						Message: fmt.Sprintf("%s: the operands are larger than %d bytes", b.Name, maxWritten),
					}
				}
			}
			return f(bctx, operands, iter)
		}}
	}
	return out
}

// perItem is what is left of the bound for concat after its delimiters.
func perItem(operands []*ast.Term) int {
	delimiter, ok := operands[0].Value.(ast.String)
	if !ok {
		return maxWritten // an error to the function itself
	}
	items := 0
	switch v := operands[1].Value.(type) {
	case *ast.Array:
		items = v.Len()
	case ast.Set:
		items = v.Len()
	}
	if len(delimiter) > 0 && items > maxWritten/len(delimiter) {
		return -1
	}
	return maxWritten - items*len(delimiter)
}

// written takes the size of a value, written out, from what is left; below zero
// it gives up. Every part counts, so it ends whatever the parts share.
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

// bind lets compiled modules call the replacements.
func bind(modules map[string]*ast.Module) {
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
			swap(v.Target) // none is a value: checkFormats refuses that
		}
		return false
	})
	for _, m := range maps.All(modules) {
		visitor.Walk(m)
	}
}
