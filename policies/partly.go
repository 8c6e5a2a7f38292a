package policies

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Open is a policy that cannot be judged, because it looked at something
// hidden: its verdict may depend on it.
type Open struct {
	// Policy is the policy's name.
	Policy string
	// Mode is how its verdict would count.
	Mode Mode
	// Hidden lists what it looked at, as in Recorded.Hidden.
	Hidden []string
}

// DecideRecorded judges a recorded call. The decision holds what is certain:
// the verdicts of policies that looked at nothing hidden. Those that did are
// listed as open, whatever they came to.
//
// Whether a policy looked is found by following its evaluation: every
// expression that was reached is held against the hidden places. A reference to
// an object counts as a look at everything in it, so a policy may be open that
// a closer look would settle; one that is not open does not depend on anything
// hidden.
func (e *Engine) DecideRecorded(ctx context.Context, org string, r *Recorded) (Decision, []Open, error) {
	o, known := e.now.Load().orgs[org]
	if !known {
		return Decision{}, nil, fmt.Errorf("%w: %s", ErrUnknownOrg, org)
	}
	if o == nil {
		return Decision{}, nil, fmt.Errorf("%w: %s", ErrPending, org)
	}
	in := r.Input
	kind, verb, err := in.classify()
	if err != nil {
		return Decision{}, nil, err
	}
	w := newWatch(r.Hidden)
	verdict, err := e.evaluate(ctx, o, document{in: in, kind: kind, verb: verb}, w)
	if err != nil {
		return Decision{}, nil, err
	}
	d := *verdict
	w.exceptions(&d, o.except, in)
	d.except(o.except, in)
	w.mutations(&d)
	if err := d.settleMutations(in.Request.Body, e.limits.MaxMutations); err != nil {
		return Decision{}, nil, err
	}
	return d, w.list(), nil
}

// watch notes which policies look at something hidden. It follows one
// evaluation.
type watch struct {
	hidden hiddenPaths
	looks  map[*ast.Expr][]int // what an expression looks at, as far as seen
	now    map[int]bool        // looked at by the present call
	open   map[openKey]map[int]bool
}

// openKey is what open policies are told apart by.
type openKey struct {
	policy string
	mode   Mode
}

func newWatch(hidden []string) *watch {
	w := &watch{looks: map[*ast.Expr][]int{}, open: map[openKey]map[int]bool{}}
	for _, pointer := range hidden {
		path, _ := splitPointer(pointer) // ReadInput has split it before; "" hides everything
		w.hidden = append(w.hidden, path)
	}
	return w
}

// Enabled implements topdown.QueryTracer.
func (*watch) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (*watch) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent implements topdown.QueryTracer.
func (w *watch) TraceEvent(e topdown.Event) {
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
func (w *watch) looksOf(expr *ast.Expr) []int {
	var out []int
	var visit *ast.GenericVisitor
	visit = ast.NewGenericVisitor(func(x any) bool {
		switch v := x.(type) {
		case ast.Body:
			return true
		case ast.Ref:
			if !v[0].Equal(ast.InputRootDocument) {
				return false
			}
			out = append(out, w.hidden.touched(refPath(v))...)
			for _, t := range v[1:] { // a reference may hold references
				visit.Walk(t)
			}
			return true
		case ast.Var:
			if v.Equal(ast.InputRootDocument.Value) {
				out = append(out, w.hidden.touched(nil)...)
			}
		}
		return false
	})
	visit.Walk(expr)
	return out
}

// refPath is the constant part of a reference into the input, items included.
func refPath(ref ast.Ref) []string {
	var path []string
	for _, t := range ref[1:] {
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

// begin starts a call. With rule indexing, conditions of rules would be tested
// without a trace; with a shared cache, rules that another call has evaluated.
func (w *watch) begin(q *topdown.Query) *topdown.Query {
	w.now = map[int]bool{}
	return q.WithQueryTracer(w).WithIndexing(false).WithVirtualCache(topdown.NewVirtualCache())
}

// end tells whether the call is certain, and notes it if it is not.
func (w *watch) end(c call) bool {
	w.add(c.entry.Policy, c.entry.Mode.orDefault(), w.now)
	return len(w.now) == 0
}

func (w *watch) add(policy string, mode Mode, looked map[int]bool) {
	if len(looked) == 0 {
		return
	}
	k := openKey{policy, mode}
	if w.open[k] == nil {
		w.open[k] = map[int]bool{}
	}
	maps.Copy(w.open[k], looked)
}

// exceptions leaves open what an exception would lift, or not, depending on
// something hidden.
func (w *watch) exceptions(d *Decision, list []exception, in *Input) {
	for i := range list {
		x := &list[i]
		looked := map[int]bool{}
		for _, path := range x.lookedAt(in) {
			for _, at := range w.hidden.touched(path) {
				looked[at] = true
			}
		}
		applies := slices.ContainsFunc(d.Deny, func(v Violation) bool { return v.Policy == x.Policy }) ||
			slices.ContainsFunc(d.Mutate, func(m Mutation) bool { return m.Policy == x.Policy })
		if len(looked) > 0 && applies {
			w.add(x.Policy, ModeEnforce, looked)
			w.drop(d, x.Policy)
		}
	}
}

// mutations leaves open changes of a field whose present value is hidden.
func (w *watch) mutations(d *Decision) {
	for _, m := range d.Mutate {
		path, err := splitPointer(m.Pointer)
		if err != nil {
			continue // settling them says so
		}
		looked := map[int]bool{}
		for _, at := range w.hidden.touched(append([]string{"request", "body"}, path...)) {
			looked[at] = true
		}
		if len(looked) > 0 {
			w.add(m.Policy, ModeEnforce, looked)
			w.drop(d, m.Policy)
		}
	}
}

// drop takes a policy's verdict out of a decision, whose lists may be shared.
func (*watch) drop(d *Decision, policy string) {
	d.Deny = slices.DeleteFunc(slices.Clone(d.Deny), func(v Violation) bool { return v.Policy == policy })
	d.Mutate = slices.DeleteFunc(slices.Clone(d.Mutate), func(m Mutation) bool { return m.Policy == policy })
}

// list is what is open, by policy and mode.
func (w *watch) list() []Open {
	out := make([]Open, 0, len(w.open))
	for k, looked := range w.open {
		o := Open{Policy: k.policy, Mode: k.mode}
		for i := range looked {
			o.Hidden = append(o.Hidden, joinPointer(w.hidden[i]))
		}
		slices.Sort(o.Hidden)
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b Open) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Mode, b.Mode))
	})
	return out
}

// lookedAt lists the paths of the input that decide whether the exception
// applies.
func (x *exception) lookedAt(in *Input) [][]string {
	out := [][]string{{"caller", "team"}, {"caller", "key"}, {"time", "ns"}}
	if x.costs {
		out = append(out, []string{"cost", "known"}, []string{"cost", "usd_per_hour"})
	}
	root := []string{"resource", "after"}
	if in.Resource.After == nil {
		root = []string{"request", "body"}
	}
	for _, path := range x.paths {
		out = append(out, slices.Concat(root, path))
	}
	return out
}
