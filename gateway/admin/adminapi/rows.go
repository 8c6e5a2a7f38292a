package adminapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
)

// Invoker calls endpoints on behalf of principals. [Direct] and admin.Guard implement it.
type Invoker interface {
	// Invoke calls r; see [Endpoint.Invoke].
	Invoke(ctx context.Context, r *Endpoint, s Principal, values url.Values, body []byte) (any, error)
}

// Direct calls endpoints without logging and auditing.
type Direct struct{}

// Invoke implements [Invoker].
func (Direct) Invoke(ctx context.Context, r *Endpoint, s Principal, values url.Values, body []byte) (any, error) {
	return r.Invoke(ctx, s, values, body)
}

// Table looks up endpoints by their patterns and calls them with an Invoker. It is immutable.
type Table struct {
	endpoints map[string]*Endpoint
	by        Invoker
}

// NewTable returns a Table of the given endpoints. The Table calls them with the given Invoker.
func NewTable(list []Endpoint, invoker Invoker) *Table {
	r := &Table{make(map[string]*Endpoint, len(list)), invoker}
	for i := range list {
		r.endpoints[list[i].Pattern] = &list[i]
	}
	return r
}

// Endpoint returns the endpoint with a pattern, or nil.
func (r *Table) Endpoint(pattern string) *Endpoint { return r.endpoints[pattern] }

// Call calls the endpoint with the given pattern for the principal s. values contains the parameters, including path parameters, and body
// is the request body. The response must have the type A or *A; Call panics if it has another type. The errors are the errors of
// [Endpoint.Invoke].
func Call[A any](ctx context.Context, rows *Table, pattern string, s Principal, values url.Values, body []byte) (answer A, err error) {
	r := rows.Endpoint(pattern)
	if r == nil {
		return answer, RefusedError{Status: http.StatusNotFound, Reason: "unknown endpoint " + pattern}
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
	panic(fmt.Sprintf("row: %s returns %T, want %s", pattern, v, reflect.TypeFor[A]()))
}
