package admin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// maxBody limits the size of a request body.
const maxBody = 1 << 20

// answered returns the HTTP handler of an endpoint. It passes the parameters on and writes the response or the problem.
func (g *Guard) answered(r *adminapi.Endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		values := valuesOf(r, req)
		var body []byte
		if r.Body != nil {
			var err error
			body, err = io.ReadAll(http.MaxBytesReader(nil, req.Body, maxBody))
			if _, large := errors.AsType[*http.MaxBytesError](err); large {
				fail(w, adminapi.RefusedError{Status: http.StatusRequestEntityTooLarge, Reason: "the request body is larger than 1 MiB"})
				return
			}
			if err != nil {
				fail(w, adminapi.BadRequestError{Reason: "cannot read the request body"})
				return
			}
		}
		v, err := g.Invoke(req.Context(), r, asking(req), values, body)
		text, isText := v.(adminapi.Writer)
		switch {
		case err != nil:
			fail(w, err)
		case isText:
			WriteText(w, r.ContentType, text)
		case r.ResponseType() == nil:
			w.WriteHeader(r.Success())
		default:
			write(w, r.Success(), v)
		}
	}
}

// valuesOf returns the parameters of a request, including those in the path.
func valuesOf(r *adminapi.Endpoint, req *http.Request) url.Values {
	values := req.URL.Query()
	for _, p := range r.Parameters() {
		if v := req.PathValue(p.Name); v != "" {
			values[p.Name] = []string{v}
		}
	}
	return values
}

// begun is a ResponseWriter that records whether anything was written.
type begun struct {
	http.ResponseWriter

	any bool
}

// Unwrap lets http.ResponseController access the connection.
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Write implements io.Writer.
func (b *begun) Write(p []byte) (int, error) {
	b.any = true
	return b.ResponseWriter.Write(p)
}

// WriteText calls text to write a response with the given media type. If text returns an error before it has written anything, WriteText
// writes a problem instead. If text fails later, WriteText aborts the connection, so that the response is not mistaken for a complete one.
func WriteText(w http.ResponseWriter, media string, text adminapi.Writer) {
	w.Header().Set("Content-Type", media)
	b := &begun{ResponseWriter: w}
	err := text(b)
	if err != nil && b.any {
		panic(http.ErrAbortHandler)
	} else if err != nil {
		fail(w, err)
	}
}

// problem is the body of every error response (RFC 9457). Errors lists invalid parameters.
type problem struct {
	Title  string               `json:"title"`
	Status int                  `json:"status"`
	Detail string               `json:"detail"`
	Errors adminapi.FaultsError `json:"errors,omitempty"`
}

// fail responds with the problem for an error.
func fail(w http.ResponseWriter, err error) {
	status, detail := adminapi.StatusOf(err)
	faults, _ := errors.AsType[adminapi.FaultsError](err)
	refuse(w, status, detail, faults...)
}

// refuse responds with a problem.
func refuse(w http.ResponseWriter, status int, detail string, faults ...adminapi.Fault) {
	encode(w, "application/problem+json", status, problem{http.StatusText(status), status, detail, faults})
}

// write responds with JSON.
func write(w http.ResponseWriter, status int, v any) { encode(w, "application/json", status, v) }

func encode(w http.ResponseWriter, media string, status int, v any) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the client has disconnected
}
