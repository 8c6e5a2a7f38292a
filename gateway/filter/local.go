package filter

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/route"
)

// Responder makes the answer to a request that the gateway answers itself.
type Responder func(ctx context.Context, ex *Exchange) (*Response, error)

// StaticResponse answers with the same header and body, always. Neither may change.
func StaticResponse(header http.Header, body func() []byte) Responder {
	return func(context.Context, *Exchange) (*Response, error) {
		return &Response{Status: http.StatusOK, Header: header.Clone(), Body: body()}, nil
	}
}

// AnswerLocally answers the v2 routes whose answer the gateway has itself. Legacy dialects
// answer theirs by translation.
type AnswerLocally struct {
	// Answers holds the responders, by route id.
	Answers map[string]Responder
}

// Name implements Filter.
func (AnswerLocally) Name() string { return "local" }

// Request answers a local route.
func (f AnswerLocally) Request(ctx context.Context, ex *Exchange) (err error) {
	if ex.Route.Dialect != route.V2 {
		return nil
	}
	if respond := f.Answers[ex.Route.ID]; respond != nil {
		ex.Response, err = respond(ctx, ex)
	}
	return err
}
