package adminapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
)

// Invoker asks a row for someone. [Direct] and the guard of the operators' listener implement it.
type Invoker interface {
	// Invoke is [Endpoint.Invoke] of r.
	Invoke(ctx context.Context, r *Endpoint, s Principal, values url.Values, body []byte) (any, error)
}

// Direct asks rows without a record.
type Direct struct{}

// Invoke implements [Invoker].
func (Direct) Invoke(ctx context.Context, r *Endpoint, s Principal, values url.Values, body []byte) (any, error) {
	return r.Invoke(ctx, s, values, body)
}

// Table are rows by their patterns, and who asks them. They are immutable.
type Table struct {
	endpoints map[string]*Endpoint
	by        Invoker
}

// NewTable returns rows that by asks.
func NewTable(list []Endpoint, by Invoker) *Table {
	r := &Table{make(map[string]*Endpoint, len(list)), by}
	for i := range list {
		r.endpoints[list[i].Pattern] = &list[i]
	}
	return r
}

// Endpoint returns the row of a pattern, nil for none.
func (r *Table) Endpoint(pattern string) *Endpoint { return r.endpoints[pattern] }

// Handlerl asks the row of a pattern for s, and returns its answer, which is an A or a *A. It panics for an answer of another type. values are the
// parameters, those of the path among them, and body is the content of the request. The error is that of [Endpoint.Invoke].
func Call[A any](ctx context.Context, rows *Table, pattern string, s Principal, values url.Values, body []byte) (answer A, err error) {
	r := rows.Endpoint(pattern)
	if r == nil {
		return answer, RefusedError{Status: http.StatusNotFound, Reason: "this gateway does not know " + pattern}
	}
	v, err := rows.by.Invoke(ctx, r, s, values, body)
	if err != nil {
		return answer, err
	}
	switch a := v.(type) {
	case A:
		return a, nil
	case *A:
		return *a, nil
	}
	panic(fmt.Sprintf("row: %s answers %T, not %s", pattern, v, reflect.TypeFor[A]()))
}
