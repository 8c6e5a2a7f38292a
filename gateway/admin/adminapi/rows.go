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

// NewTable returns a Table of the given endpoints. Calls are made with by.
func NewTable(list []Endpoint, by Invoker) *Table {
	r := &Table{make(map[string]*Endpoint, len(list)), by}
	for i := range list {
		r.endpoints[list[i].Pattern] = &list[i]
	}
	return r
}

// Endpoint returns the endpoint with a pattern, or nil.
func (r *Table) Endpoint(pattern string) *Endpoint { return r.endpoints[pattern] }

// Call calls the endpoint with a pattern as principal s. The response must be an A or a *A; Call panics for any other type. values
// are the parameters, including those in the path, and body is the request body. Call returns the errors of [Endpoint.Invoke].
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
