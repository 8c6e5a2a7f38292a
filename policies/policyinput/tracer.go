package policyinput

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// AccessTracer traces an evaluation and records which hidden values its queries read.
type AccessTracer struct {
	pointers []string            // of the hidden values
	hidden   hiddenPaths         // their paths
	refs     map[*ast.Expr][]int // hidden values that an expression reads, if seen before
	now      map[int]bool        // read since Begin
}

// NewAccessTracer returns an AccessTracer for the hidden values of a recorded input.
func NewAccessTracer(r *Recorded) *AccessTracer {
	w := &AccessTracer{pointers: r.Hidden, refs: map[*ast.Expr][]int{}}
	for _, pointer := range r.Hidden {
		path, _ := SplitPointer(pointer) // ParseRecorded has validated it; "" hides everything
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
	refs, known := w.refs[expr]
	if !known {
		refs = w.hiddenRefs(expr)
		w.refs[expr] = refs
	}
	for _, i := range refs {
		w.now[i] = true
	}
}

// hiddenRefs returns the hidden values referenced by an expression. It skips the bodies of comprehensions and of every: they are
// evaluated expression by expression and therefore traced themselves.
func (w *AccessTracer) hiddenRefs(expr *ast.Expr) []int {
	var out []int
	references(expr, false, func(terms []*ast.Term) { out = append(out, w.hidden.touched(refPath(terms))...) })
	return out
}

// References calls visit for each reference to the input within x, with the terms after the root. If there are no such terms, the reference
// is to the whole input.
func References(x any, visit func(terms []*ast.Term)) { references(x, true, visit) }

// references is References; if bodies is not set, it skips references in bodies.
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
			for _, t := range v[1:] { // a reference may contain references
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

// refPath returns the constant part of a reference to the input, including list indexes.
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

// Begin starts to trace a query. It disables rule indexing, which would evaluate conditions without tracing them, and the shared
// cache, which would hide rules evaluated by another query.
func (w *AccessTracer) Begin(q *topdown.Query) *topdown.Query {
	w.now = map[int]bool{}
	return q.WithQueryTracer(w).WithIndexing(false).WithVirtualCache(topdown.NewVirtualCache())
}

// HiddenReads returns the JSON Pointers to the hidden values that the query read.
func (w *AccessTracer) HiddenReads() []string { return w.pointersOf(w.now) }

// Touched returns the pointers of the hidden values that reading any of the paths would expose.
func (w *AccessTracer) Touched(paths ...[]string) []string {
	seen := map[int]bool{}
	for _, path := range paths {
		for _, i := range w.hidden.touched(path) {
			seen[i] = true
		}
	}
	return w.pointersOf(seen)
}

func (w *AccessTracer) pointersOf(seen map[int]bool) []string {
	var out []string
	for _, i := range slices.Sorted(maps.Keys(seen)) {
		out = append(out, w.pointers[i])
	}
	return out
}
