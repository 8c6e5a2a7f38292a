package filter

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/route"
)

// Responder returns the response to a request that the gateway answers itself.
type Responder func(ctx context.Context, ex *Exchange) (*Response, error)

// Served is a route that the gateway serves itself. Answer is nil if a translator serves it.
type Served struct {
	route.Route
	Answer Responder
}

// Serve returns a v2 route that the gateway serves itself. The route requires a credential.
func Serve(id, method, pattern string, answer Responder) Served {
	return Served{route.Route{ID: id, Dialect: route.V2, Method: method, Pattern: pattern}, answer}
}

// NewTable returns the routing table for the given routes, and a map from route IDs to responders. The map contains only routes that have a
// responder.
func NewTable(served []Served) (*route.Table, map[string]Responder, error) {
	routes, answers := make([]route.Route, len(served)), make(map[string]Responder)
	for i, s := range served {
		routes[i] = s.Route
		if s.Answer != nil {
			answers[s.ID] = s.Answer
		}
	}
	table, err := route.NewTable(routes)
	if err != nil {
		return nil, nil, fmt.Errorf("routes: %w", err)
	}
	return table, answers, nil
}

// StaticResponse returns a Responder that responds with status 200, a copy of header, and the bytes that body returns. The bytes must not
// be modified.
func StaticResponse(header http.Header, body func() []byte) Responder {
	return func(context.Context, *Exchange) (*Response, error) {
		return &Response{Status: http.StatusOK, Header: header.Clone(), Body: body()}, nil
	}
}

// AnswerLocally responds to v2 routes that the gateway serves itself. Translators serve the corresponding routes of legacy dialects.
type AnswerLocally struct {
	// Answers maps route IDs to responders.
	Answers map[string]Responder
}

// Name implements Filter.
func (AnswerLocally) Name() string { return StageAnswerLocally }

// Request calls the Responder of the route, if it has one.
func (f AnswerLocally) Request(ctx context.Context, ex *Exchange) (err error) {
	if ex.Route.Dialect != route.V2 {
		return nil
	}
	if respond := f.Answers[ex.Route.ID]; respond != nil {
		ex.Response, err = respond(ctx, ex)
	}
	return err
}
