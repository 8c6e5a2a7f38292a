package v1

import (
	"context"
	"net/http"
	"time"

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

// remove deletes an object. A 404 after a lost answer is the success of the try
// before.
func (r *request) remove(ctx context.Context, w about, op, id string) error {
	for try := 0; ; try++ {
		resp, err := r.Send(ctx, byID(op, id), translate.Once)
		if err == nil && (resp.OK() || resp.Status == http.StatusNotFound && try > 0) {
			return nil
		}
		if try == 2 || !unanswered(resp, err) || r.Pause(ctx, pause<<try) != nil {
			return r.api.refused(w, resp, err)
		}
	}
}

// pause is the wait before the first repeat of a change.
const pause = 500 * time.Millisecond

// unanswered reports an answer after which the call may or may not have been
// carried out.
func unanswered(resp *translate.Response, err error) bool {
	return err != nil || resp.Status >= http.StatusInternalServerError
}

// creation is a create that is repeated at most once, and only after a look for
// its result.
type creation struct {
	about
	call *translate.Request
	// list and member name the collection the result would be in; kind keeps
	// its claims apart.
	list, member, kind string
	// same reports whether a listed object can be the result.
	same func(listed any) bool
}

// create makes an object that has no candidates. When the answer is lost it
// looks for the object first and sends the call once more when there is none.
func (r *request) create(ctx context.Context, c creation) (any, error) {
	for try := 0; ; try++ {
		resp, err := r.Send(ctx, c.call, translate.Once)
		if !unanswered(resp, err) && !resp.OK() {
			return nil, r.api.refused(c.about, resp, nil)
		}
		if err == nil && resp.OK() && translate.Text(resp.Body, "id") != "" {
			translate.Claim(ctx, r.Dialogue, c.kind+"/"+translate.Text(resp.Body, "id"))
			return resp.Body, nil
		}
		found, sure := r.find(ctx, c)
		if found != nil {
			return found, nil
		}
		if try == 1 || !sure || err == nil && resp.OK() || r.Pause(ctx, pause) != nil {
			return nil, r.api.refused(c.about, resp, err)
		}
	}
}

// find looks for the result of a create among the listed objects that no request
// was answered with. sure is false when the list cannot be read.
func (r *request) find(ctx context.Context, c creation) (found any, sure bool) {
	items, err := r.list(ctx, c.about, c.list, c.member)
	if err != nil {
		return nil, false
	}
	for _, item := range items {
		if c.same(item) && translate.Claim(ctx, r.Dialogue, c.kind+"/"+translate.Text(item, "id")) {
			return item, true
		}
	}
	return nil, true
}
