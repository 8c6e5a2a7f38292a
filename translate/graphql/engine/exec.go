package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
	"golang.org/x/sync/errgroup"
)

// maxParallel is the maximum number of root fields of a query that run concurrently.
const maxParallel = 4

// Operation is a prepared request. It can be executed once.
type Operation[X any] struct {
	// Name is the name of the operation, or "" if it is anonymous.
	Name string
	// Removed reports that none of the root fields is available any more, so that Execute only returns errors.
	Removed bool
	// RequestedRoots lists the root fields of the document, including fields skipped by a directive.
	RequestedRoots []RootField
	// Unavailable lists the selected fields that are always null, as sorted "Type.field" strings. It omits fields of types of which all fields
	// are null.
	Unavailable []string
	engine      *Engine[X]
	of          *ast.Definition
	roots       []*node[X]
}

// Roots lists the names of the root fields to execute.
func (o *Operation[X]) Roots() []string {
	names := make([]string, len(o.roots))
	for i, n := range o.roots {
		names[i] = n.name
	}
	return names
}

// Mutates reports whether the operation is a mutation.
func (o *Operation[X]) Mutates() bool { return o.of == o.engine.schema.Mutation }

// Failure is an error that occurred in a field. Path leads to the null that replaces the value of the field, and consists of response keys
// and list indexes.
type Failure struct {
	Err  error
	Path []any
}

// Result is the result of an execution.
type Result struct {
	// Data is the JSON encoding of the member "data" of the response.
	Data     []byte
	Failures []Failure
}

// errTooLong stops an execution whose response exceeds its limit.
var errTooLong = errors.New("response too long")

// Execute runs the resolvers with x. The root fields of a query run concurrently, and the root fields of a mutation run in order
// (specification, section 6.2.2).
func (o *Operation[X]) Execute(ctx context.Context, x X) Result {
	results := make([]Result, len(o.roots))
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for i, n := range o.roots {
		if o.Mutates() || len(o.roots) == 1 {
			results[i] = o.root(ctx, x, n)
			continue
		}
		group.Go(func() error {
			results[i] = o.root(ctx, x, n)
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
	out := Result{Data: []byte{'{'}}
	for i, r := range results {
		if i > 0 {
			out.Data = append(out.Data, ',')
		}
		out.Data = append(out.Data, r.Data...)
		out.Failures = append(out.Failures, r.Failures...)
	}
	out.Data = append(out.Data, '}')
	return out
}

// root executes one root field. A panic in a resolver fails only that field, so that a bug in a resolver does not break
// the caller's connection.
func (o *Operation[X]) root(ctx context.Context, x X, n *node[X]) (r Result) {
	e := &execution[X]{x: x, most: o.engine.cfg.Limits.Response}
	defer func() {
		if p := recover(); p != nil {
			r = failed(n.key, fmt.Errorf("panic: %v", p))
		}
	}()
	if err := e.member(ctx, o.of.Name, nil, n); err != nil {
		return failed(n.key, &Error{
			Message: fmt.Sprintf("the response exceeds the limit of %d bytes", e.most), Code: CodeLimit, Limit: "response",
		})
	}
	return e.Result
}

func failed(key string, err error) Result {
	return Result{Data: append(appendString(nil, key), ":null"...), Failures: []Failure{{err, []any{key}}}}
}

// execution writes the response of one root field. Each root field has its own, so that they can run concurrently.
type execution[X any] struct {
	x    X
	most int
	Result
	path []step
}

// step is a response key or a list index.
type step struct {
	key   string
	index int // used if key is ""
}

// place converts the path for use in a Failure.
func (e *execution[X]) place() []any {
	place := make([]any, len(e.path))
	for i, s := range e.path {
		if place[i] = s.key; s.key == "" {
			place[i] = s.index
		}
	}
	return place
}

// member writes one field of an object. Its only error is errTooLong.
func (e *execution[X]) member(ctx context.Context, parent string, source any, n *node[X]) error {
	e.path = append(e.path, step{key: n.key})
	defer func() { e.path = e.path[:len(e.path)-1] }()
	e.Data = appendString(e.Data, n.key)
	e.Data = append(e.Data, ':')
	if n.name == "__typename" {
		e.Data = appendString(e.Data, parent)
		return nil
	}
	v, err := e.resolve(ctx, source, n)
	if err != nil {
		e.Failures = append(e.Failures, Failure{err, e.place()})
		v = nil
	}
	return e.value(ctx, n.typ, v, n)
}

func (e *execution[X]) resolve(ctx context.Context, source any, n *node[X]) (any, error) {
	if n.resolve == nil {
		return metaMember(source, n.name), nil
	}
	return n.resolve(ctx, e.x, source, Input{Args: n.args, below: n, memo: &n.memo})
}

func (e *execution[X]) value(ctx context.Context, t *ast.Type, v any, n *node[X]) error {
	if len(e.Data) > e.most {
		return errTooLong
	}
	list, isList := v.([]any)
	texts, isTexts := v.(*[]string)
	switch {
	case t.Elem != nil && isTexts:
		return e.texts(*texts)
	case v == nil || t.Elem != nil && !isList:
		e.Data = append(e.Data, "null"...)
		return nil
	case t.Elem != nil:
		return e.list(ctx, t.Elem, list, n)
	case n.of == nil || !n.of.IsCompositeType():
		e.Data = appendScalar(e.Data, t.NamedType, v)
		return nil
	}
	e.Data = append(e.Data, '{')
	for i, sub := range n.sub {
		if i > 0 {
			e.Data = append(e.Data, ',')
		}
		if err := e.member(ctx, n.of.Name, v, sub); err != nil {
			return err
		}
	}
	e.Data = append(e.Data, '}')
	return nil
}

// texts writes a list of strings.
func (e *execution[X]) texts(items []string) error {
	return e.array(len(items), func(i int) error {
		if len(e.Data) > e.most {
			return errTooLong
		}
		e.Data = appendString(e.Data, items[i])
		return nil
	})
}

func (e *execution[X]) list(ctx context.Context, of *ast.Type, items []any, n *node[X]) error {
	return e.array(len(items), func(i int) error {
		e.path = append(e.path, step{index: i})
		defer func() { e.path = e.path[:len(e.path)-1] }()
		return e.value(ctx, of, items[i], n)
	})
}

// array writes a list of n elements.
func (e *execution[X]) array(n int, element func(i int) error) error {
	e.Data = append(e.Data, '[')
	for i := range n {
		if i > 0 {
			e.Data = append(e.Data, ',')
		}
		if err := element(i); err != nil {
			return err
		}
	}
	e.Data = append(e.Data, ']')
	return nil
}
