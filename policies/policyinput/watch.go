package policyinput

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// AccessTracer notes which policies look at something hidden. It follows one
// evaluation.
type AccessTracer struct {
	hidden hiddenPaths
	looks  map[*ast.Expr][]int // what an expression looks at, as far as seen
	now    map[int]bool        // looked at since Begin
}

// NewAccessTracer returns a watch for the hidden places of a recorded input.
func NewAccessTracer(r *Recorded) *AccessTracer {
	w := &AccessTracer{looks: map[*ast.Expr][]int{}}
	for _, pointer := range r.Hidden {
		path, _ := SplitPointer(pointer) // ParseRecorded has split it before; "" hides everything
		w.hidden = append(w.hidden, path)
	}
	return w
}

// Enabled implements topdown.QueryTracer.
func (*AccessTracer) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (*AccessTracer) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent implements topdown.QueryTracer.
func (w *AccessTracer) TraceEvent(e topdown.Event) {
	expr, ok := e.Node.(*ast.Expr)
	if !ok || e.Op != topdown.EvalOp {
		return
	}
	looks, known := w.looks[expr]
	if !known {
		looks = w.looksOf(expr)
		w.looks[expr] = looks
	}
	for _, i := range looks {
		w.now[i] = true
	}
}

// looksOf finds the references of an expression into hidden places. Bodies of
// comprehensions and of every are left out: they are evaluated expression by
// expression, so they are seen when they are reached.
func (w *AccessTracer) looksOf(expr *ast.Expr) []int {
	var out []int
	references(expr, false, func(terms []*ast.Term) { out = append(out, w.hidden.touched(refPath(terms))...) })
	return out
}

// References calls see with the terms of each reference into the input within x, behind its root; none stands for the whole
// input.
func References(x any, see func(terms []*ast.Term)) { references(x, true, see) }

// references is References, without those in bodies if bodies is not set.
func references(x any, bodies bool, see func(terms []*ast.Term)) {
	var visit *ast.GenericVisitor
	visit = ast.NewGenericVisitor(func(x any) bool {
		switch v := x.(type) {
		case ast.Body:
			return !bodies
		case ast.Ref:
			if !v[0].Equal(ast.InputRootDocument) {
				return false
			}
			see(v[1:])
			for _, t := range v[1:] { // a reference may hold references
				visit.Walk(t)
			}
			return true
		case ast.Var:
			if v.Equal(ast.InputRootDocument.Value) {
				see(nil)
			}
		}
		return false
	})
	visit.Walk(x)
}

// refPath is the constant part of a reference into the input, items included.
func refPath(terms []*ast.Term) []string {
	var path []string
	for _, t := range terms {
		switch v := t.Value.(type) {
		case ast.String:
			path = append(path, string(v))
		case ast.Number:
			path = append(path, v.String())
		default:
			return path
		}
	}
	return path
}

// Begin starts to follow a query. With rule indexing, conditions of rules would
// be tested without a trace; with a shared cache, rules that another query has
// evaluated.
func (w *AccessTracer) Begin(q *topdown.Query) *topdown.Query {
	w.now = map[int]bool{}
	return q.WithQueryTracer(w).WithIndexing(false).WithVirtualCache(topdown.NewVirtualCache())
}

// HiddenReads returns the pointers of the hidden places that the query looked at.
func (w *AccessTracer) HiddenReads() []string { return w.pointers(w.now) }

// Touched returns the pointers of the hidden places that a look at any of the
// paths sees.
func (w *AccessTracer) Touched(paths ...[]string) []string {
	seen := map[int]bool{}
	for _, path := range paths {
		for _, i := range w.hidden.touched(path) {
			seen[i] = true
		}
	}
	return w.pointers(seen)
}

func (w *AccessTracer) pointers(seen map[int]bool) []string {
	var out []string
	for _, i := range slices.Sorted(maps.Keys(seen)) {
		out = append(out, JoinPointer(w.hidden[i]))
	}
	return out
}
