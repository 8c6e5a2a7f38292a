package graphql

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
)

// exchange is one request under way: the conversation with v2, and what was
// read there. Its methods may be called from several root fields at once.
type exchange struct {
	*translate.Dialogue
	api *API
	in  *translate.Incoming
	// meter is the caller below the dialogue.
	meter *meter

	mu    sync.Mutex // guards reads
	reads map[string]*read
}

// read is one v2 read, done once per request whoever asks.
type read struct {
	once  sync.Once
	resp  *translate.Response
	err   error
	value any // of what is no v2 answer: notes of the store
}

// meter counts calls, refuses those beyond the limit, and remembers the last
// failure of each operation, which the shared catalog does not tell.
type meter struct {
	next translate.Caller
	most int

	mu     sync.Mutex // guards the rest
	calls  int
	failed map[string]failure
}

// mostID is the longest id sent to v2, whose own have about ten characters.
const mostID = 200

type failure struct {
	resp *translate.Response
	err  error
}

// Call implements translate.Caller.
func (m *meter) Call(ctx context.Context, r *translate.Request) (*translate.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	over := m.calls >= m.most
	if !over {
		m.calls++
	}
	m.mu.Unlock()
	if over {
		err := engine.Exceeds("calls", m.most, "calls of the platform")
		m.remember(r.Operation, nil, err)
		return nil, err
	}
	for _, value := range r.Params {
		if len(value) > mostID { // no resource has such an id
			return &translate.Response{Status: http.StatusNotFound}, nil
		}
	}
	if m.next == nil {
		return nil, fmt.Errorf("no caller: %w", translate.ErrAmbiguous)
	}
	resp, err := m.next.Call(ctx, r)
	if err != nil || !resp.OK() {
		m.remember(r.Operation, resp, err)
	}
	return resp, err
}

func (m *meter) remember(operation string, resp *translate.Response, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed[operation] = failure{resp, err}
}

func (m *meter) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// lastFailure is the fault behind an operation that did not succeed.
func (m *meter) lastFailure(operation string, k kind) *fault {
	m.mu.Lock()
	f := m.failed[operation]
	m.mu.Unlock()
	switch {
	case f.err != nil:
		return asFault(f.err)
	case f.resp != nil:
		return refusal(f.resp, k)
	}
	return internal(fmt.Errorf("%s: no readable answer", operation))
}

// anonymous reports a request without a credential.
func (x *exchange) anonymous() bool { return x.in.Account == "" }

// user is the stand-in for the account's user id.
func (x *exchange) user() string { return translate.UserID(x.in.Account) }

func (x *exchange) config() *Config { return &x.api.cfg }

// catalogSlot begins the keys of catalog reads.
const catalogSlot = "catalog\x00"

// forget drops what was read: after a write it may be out of date. The catalog
// does not change by our writes and is kept.
func (x *exchange) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.reads {
		if !strings.HasPrefix(key, catalogSlot) {
			delete(x.reads, key)
		}
	}
}

func (x *exchange) slot(key string) *read {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.reads[key]
	if r == nil {
		r = &read{}
		x.reads[key] = r
	}
	return r
}

// get reads from v2, each resource once per request.
func (x *exchange) get(ctx context.Context, operation, id string, query url.Values) (*translate.Response, error) {
	r := x.slot(operation + "\x00" + id + "\x00" + query.Encode())
	r.once.Do(func() {
		r.resp, r.err = x.Send(ctx, request(operation, id, nil, query), translate.Read)
	})
	return r.resp, r.err
}

// request builds a v2 request; id is the {id} of the path, "" when it has none.
func request(operation, id string, body any, query url.Values) *translate.Request {
	r := &translate.Request{Operation: operation, Body: body, Query: query}
	if id != "" {
		r.Params = map[string]string{"id": id}
	}
	return r
}

// fetch is get with everything but a success turned into a fault.
func (x *exchange) fetch(ctx context.Context, operation, id string, query url.Values, k kind) (any, error) {
	resp, err := x.get(ctx, operation, id, query)
	return body(resp, err, k)
}

// list reads a whole collection: the array under member.
func (x *exchange) list(ctx context.Context, operation, member string, query url.Values, k kind) ([]any, error) {
	b, err := x.fetch(ctx, operation, "", query, k)
	if err != nil {
		return nil, err
	}
	return translate.Items(b, member), nil
}

// change writes to v2. What was read before is forgotten.
func (x *exchange) change(ctx context.Context, operation, id string, b any, k kind) (any, error) {
	resp, err := x.Send(ctx, request(operation, id, b, nil), translate.Change)
	x.forget()
	return body(resp, err, k)
}

// changeOrFetch writes a change, or reads when there is nothing to change.
func (x *exchange) changeOrFetch(ctx context.Context, change, fetch, id string, b map[string]any, k kind) (any, error) {
	if len(b) == 0 {
		return x.fetch(ctx, fetch, id, nil, k)
	}
	return x.change(ctx, change, id, b, k)
}

// remove deletes a resource. A 404 counts as done when an earlier try of this
// very call may have deleted it.
func (x *exchange) remove(ctx context.Context, operation, id string, k kind) error {
	before := x.meter.count()
	resp, err := x.Send(ctx, request(operation, id, nil, nil), translate.Change)
	x.forget()
	if err == nil && resp.Status == http.StatusNotFound && x.meter.count() > before+1 {
		return nil
	}
	_, err = body(resp, err, k)
	return err
}

func body(resp *translate.Response, err error, k kind) (any, error) {
	if err != nil {
		return nil, err
	}
	if !resp.OK() {
		return nil, refusal(resp, k)
	}
	return resp.Body, nil
}

// isStatus reports a fault that stands for this status of v2.
func isStatus(err error, status int) bool {
	return err != nil && asFault(err).status == status
}
