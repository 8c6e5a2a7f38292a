package v1

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// byID is a v2 call on one object.
func byID(op, id string) *translate.Request {
	return &translate.Request{Operation: op, Params: map[string]string{"id": id}}
}

// with adds a body to a call.
func with(r *translate.Request, body any) *translate.Request {
	r.Body = body
	return r
}

// param returns a path parameter.
func (r *request) param(name string) string { return r.in.Params[name] }

// send makes a call and returns its body; anything but a success is a fault told
// in the words of w.
func (r *request) send(ctx context.Context, w about, call *translate.Request, repeat translate.Repeat) (any, error) {
	resp, err := r.Send(ctx, call, repeat)
	if err != nil || !resp.OK() {
		return nil, r.api.refused(w, resp, err)
	}
	return resp.Body, nil
}

// read gets one object.
func (r *request) read(ctx context.Context, w about, op, id string) (any, error) {
	body, err := r.send(ctx, w, byID(op, id), translate.Read)
	if err == nil && translate.Members(body) == nil {
		return nil, r.api.refused(w, &translate.Response{Status: http.StatusOK}, nil)
	}
	return body, err
}

// list gets the elements of a collection.
func (r *request) list(ctx context.Context, w about, op, member string) ([]any, error) {
	body, err := r.send(ctx, w, &translate.Request{Operation: op}, translate.Read)
	return translate.Items(body, member), err
}
