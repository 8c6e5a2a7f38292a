package filter

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/route"
)

// Responder returns the response to a request that the gateway answers itself.
type Responder func(ctx context.Context, ex *Exchange) (*Response, error)

// StaticResponse returns a Responder that always returns the same header and body. Neither may be changed.
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

// Request responds if the route has a Responder.
func (f AnswerLocally) Request(ctx context.Context, ex *Exchange) (err error) {
	if ex.Route.Dialect != route.V2 {
		return nil
	}
	if respond := f.Answers[ex.Route.ID]; respond != nil {
		ex.Response, err = respond(ctx, ex)
	}
	return err
}
