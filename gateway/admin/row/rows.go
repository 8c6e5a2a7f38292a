package row

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
)

// Replier asks a row for someone. [Direct] and the guard of the operators' listener implement it.
type Replier interface {
	// Reply is [Row.Reply] of r.
	Reply(ctx context.Context, r *Row, s Scope, values url.Values, body []byte) (any, error)
}

// Direct asks rows without a record.
type Direct struct{}

// Reply implements [Replier].
func (Direct) Reply(ctx context.Context, r *Row, s Scope, values url.Values, body []byte) (any, error) {
	return r.Reply(ctx, s, values, body)
}

// Rows are rows by their patterns, and who asks them. They are immutable.
type Rows struct {
	rows map[string]*Row
	by   Replier
}

// NewRows returns rows that by asks.
func NewRows(list []Row, by Replier) *Rows {
	r := &Rows{make(map[string]*Row, len(list)), by}
	for i := range list {
		r.rows[list[i].Pattern] = &list[i]
	}
	return r
}

// Row returns the row of a pattern, nil for none.
func (r *Rows) Row(pattern string) *Row { return r.rows[pattern] }

// Ask asks the row of a pattern for s, and returns its answer, which is an A or a *A. It panics for an answer of another type. values are the
// parameters, those of the path among them, and body is the content of the request. The error is that of [Row.Reply].
func Ask[A any](ctx context.Context, rows *Rows, pattern string, s Scope, values url.Values, body []byte) (answer A, err error) {
	r := rows.Row(pattern)
	if r == nil {
		return answer, RefusedError{Status: http.StatusNotFound, Reason: "this gateway does not know " + pattern}
	}
	v, err := rows.by.Reply(ctx, r, s, values, body)
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
