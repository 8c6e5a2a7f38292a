package graphql

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// mostParallel is how many root fields of a query run at once.
const mostParallel = 4

// resolver yields the value of one field: nil, a leaf (string, bool, integer,
// json.Number, float64), []any, or for an object whatever the resolvers of its
// type expect. It runs only when the field is selected, so the selection
// decides what is read from v2.
type resolver func(ctx context.Context, x *exchange, source any, in input) (any, error)

// input is what a field was asked for: its arguments, and the fields selected
// below it.
type input struct {
	args
	sub  []*node
	kept *kept
}

// kept is what a resolver worked out from the arguments of one field of the
// document, for all the objects that have the field.
type kept struct {
	done  bool
	value any
	err   error
}

// once works something out the first time a field of the document is resolved,
// its failure included. A field belongs to one root, so nothing else resolves it
// meanwhile.
func once[T any](in input, work func() (T, error)) (T, error) {
	if k := in.kept; !k.done {
		k.value, k.err = work()
		k.done = true
	}
	v, _ := in.kept.value.(T)
	return v, in.kept.err
}

// selects reports whether any of the names is selected directly below.
func (in input) selects(names ...string) bool {
	return slices.ContainsFunc(in.sub, func(n *node) bool { return slices.Contains(names, n.name) })
}

// objectType holds the resolvers of one type of the schema, by field.
type objectType map[string]resolver

// field adapts a resolver that may call v2.
func field[T any](f func(ctx context.Context, x *exchange, source T, in input) (any, error)) resolver {
	return func(ctx context.Context, x *exchange, source any, in input) (any, error) {
		s, ok := source.(T)
		if !ok {
			return nil, internal(fmt.Errorf("source is %T", source))
		}
		return f(ctx, x, s, in)
	}
}

// root adapts the resolver of a root field, which has no source.
func root(f func(ctx context.Context, x *exchange, in input) (any, error)) resolver {
	return func(ctx context.Context, x *exchange, _ any, in input) (any, error) { return f(ctx, x, in) }
}

// get adapts a look into the source.
func get[T any](f func(source T) any) resolver {
	return field(func(_ context.Context, _ *exchange, s T, _ input) (any, error) { return f(s), nil })
}

// always is a field whose value v2 cannot tell, or that is the same everywhere.
func always(v any) resolver {
	return func(context.Context, *exchange, any, input) (any, error) { return v, nil }
}

// errTooLong ends an execution whose answer outgrew its limit.
var errTooLong = errors.New("answer too long")

// result is what executing part of an operation gave.
type result struct {
	data   []byte
	faults []located
}

// execution writes the answer of one root field. Each has its own, so that
// roots can run side by side.
type execution struct {
	x *exchange
	result
	path []any
}

// execute runs the operation and returns the members of "data" in the order of
// the document. Queries run side by side, mutations one after the other
// (specification section 6.2.2).
func (x *exchange) execute(ctx context.Context, op *operation) result {
	roots, rootType := op.roots, "Query"
	if op.kind == ast.Mutation {
		rootType = "Mutation"
	}
	results := make([]result, len(roots))
	run := func(i int) { results[i] = x.runRoot(ctx, rootType, roots[i]) }
	switch {
	case op.kind == ast.Mutation:
		for i := range roots {
			x.forget()
			run(i)
		}
	case len(roots) == 1:
		run(0)
	default:
		var wg sync.WaitGroup
		slots := make(chan struct{}, mostParallel)
		for i := range roots {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				run(i)
			})
		}
		wg.Wait()
	}
	out := result{data: []byte{'{'}}
	for i, r := range results {
		if i > 0 {
			out.data = append(out.data, ',')
		}
		out.data = append(out.data, r.data...)
		out.faults = append(out.faults, r.faults...)
	}
	out.data = append(out.data, '}')
	return out
}

// runRoot runs one root field. A panic in a resolver costs that field only: it
// is a bug of ours that must not become the caller's broken connection.
func (x *exchange) runRoot(ctx context.Context, rootType string, n *node) (r result) {
	e := &execution{x: x}
	defer func() {
		if p := recover(); p != nil {
			r = x.nulled(n, internal(fmt.Errorf("panic: %v", p)))
		}
	}()
	if err := e.member(ctx, rootType, nil, n); err != nil {
		return x.nulled(n, &fault{
			message: fmt.Sprintf("the answer exceeds the limit of %d bytes", x.api.cfg.Limits.Response),
			code:    codeLimit, limit: "response",
		})
	}
	return e.result
}

func (x *exchange) nulled(n *node, f *fault) result {
	x.note(f)
	data := appendString(nil, n.key)
	return result{data: append(data, ":null"...), faults: []located{{fault: f, path: []any{n.key}}}}
}

// member writes one field of an object. The only error is errTooLong.
func (e *execution) member(ctx context.Context, parent string, source any, n *node) error {
	e.path = append(e.path, n.key)
	defer func() { e.path = e.path[:len(e.path)-1] }()
	e.data = appendString(e.data, n.key)
	e.data = append(e.data, ':')
	if n.name == "__typename" {
		e.data = appendString(e.data, parent)
		return nil
	}
	v, err := n.resolve(ctx, e.x, source, input{n.args, n.sub, &n.kept})
	if err != nil {
		f := asFault(err)
		e.x.note(f)
		e.faults = append(e.faults, located{fault: f, path: slices.Clone(e.path)})
		v = nil
	}
	return e.value(ctx, n.typ, v, n)
}

func (e *execution) value(ctx context.Context, t *ast.Type, v any, n *node) error {
	if len(e.data) > e.x.api.cfg.Limits.Response {
		return errTooLong
	}
	if v == nil {
		e.data = append(e.data, "null"...)
		return nil
	}
	if t.Elem != nil {
		list, ok := v.([]any)
		if !ok {
			e.data = append(e.data, "null"...)
			return nil
		}
		e.data = append(e.data, '[')
		for i, item := range list {
			if i > 0 {
				e.data = append(e.data, ',')
			}
			e.path = append(e.path, i)
			err := e.value(ctx, t.Elem, item, n)
			e.path = e.path[:len(e.path)-1]
			if err != nil {
				return err
			}
		}
		e.data = append(e.data, ']')
		return nil
	}
	if n.of == nil || !n.of.IsCompositeType() {
		e.data = appendScalar(e.data, t.NamedType, v)
		return nil
	}
	e.data = append(e.data, '{')
	for i, sub := range n.sub {
		if i > 0 {
			e.data = append(e.data, ',')
		}
		if err := e.member(ctx, n.of.Name, v, sub); err != nil {
			return err
		}
	}
	e.data = append(e.data, '}')
	return nil
}

// asFault makes any error a fault; one that is none of ours is ours to blame,
// and its text stays inside.
func asFault(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	f := internal(err)
	if errors.Is(err, context.DeadlineExceeded) {
		f.status = http.StatusGatewayTimeout
	}
	return f
}
