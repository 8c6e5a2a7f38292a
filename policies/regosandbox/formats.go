package regosandbox

import (
	"maps"
	"regexp"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// sprintf can produce a large result from a small format in one step that cannot be interrupted: with a width of a million per
// verb, or with an argument repeated by index. Formats must therefore be constants that use neither, so that the result is limited
// by the format and the arguments.
const sprintf = "sprintf"

// wideVerb matches verbs with a width or precision of four or more digits or taken from an argument, and verbs that select their
// argument.
var wideVerb = regexp.MustCompile(`%[-+# 0.\d]*(\d{4}|\*|\[)`)

// Check reports calls of sprintf whose format is not such a constant, and with modifiers that replace another function by a bounded
// function, which would bypass this check and the size limits.
func Check(modules map[string]*ast.Module) ast.Errors {
	var faults ast.Errors
	replaced := Bounded()
	for _, file := range slices.Sorted(maps.Keys(modules)) {
		fault := func(at *ast.Location, code, message string) {
			faults = append(faults, ast.NewError(code, at, "%s", message))
		}
		check := func(call []*ast.Term, at *ast.Location) {
			if len(call) < 2 || call[0].String() != sprintf {
				return
			}
			switch format, ok := call[1].Value.(ast.String); {
			case !ok:
				fault(at, sprintf, "the format must be a constant")
			case wideVerb.MatchString(string(format)):
				fault(at, sprintf, "the format must not contain widths above 999, * or [n]")
			}
		}
		ast.NewGenericVisitor(func(x any) bool {
			switch v := x.(type) {
			case *ast.Expr:
				if terms, ok := v.Terms.([]*ast.Term); ok {
					check(terms, v.Location)
				}
			case *ast.Term:
				if call, ok := v.Value.(ast.Call); ok {
					check(call, v.Location)
				}
			case *ast.With:
				name := v.Value.String()
				if slices.Contains(replaced, name) {
					fault(v.Location, name, "cannot replace another function in a with modifier")
				}
			}
			return false
		}).Walk(modules[file])
	}
	return faults
}
