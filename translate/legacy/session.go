package legacy

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
)

// Session is one legacy request under way: its conversation with v2, and the answers that
// were read there. It may be used from several goroutines at once.
type Session struct {
	*translate.Client
	Quirks *Quirks

	mu    sync.Mutex // guards reads
	reads map[string]*read
}

// read is something that is read once per request, whoever asks.
type read struct {
	once  sync.Once
	value any
	err   error
}

// NewSession begins a session of the dialogue.
func NewSession(d *translate.Client, q *Quirks) *Session {
	return &Session{Client: d, Quirks: q, reads: make(map[string]*read)}
}

// immutablePrefix begins the keys of values that writes do not change.
const immutablePrefix = "lasting\x00"

// Memoize calls f once per key until the session forgets, and returns its result.
func (s *Session) Memoize(key string, f func() (any, error)) (any, error) {
	s.mu.Lock()
	r := s.reads[key]
	if r == nil {
		r = &read{}
		s.reads[key] = r
	}
	s.mu.Unlock()
	r.once.Do(func() { r.value, r.err = f() })
	return r.value, r.err
}

// MemoizeForRequest is Once for values that no write of a caller changes, such as the catalog.
func (s *Session) MemoizeForRequest(key string, f func() (any, error)) (any, error) {
	return s.Memoize(immutablePrefix+key, f)
}

// Invalidate drops the answers that were read: after a write it may be out of date.
func (s *Session) Invalidate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.reads {
		if !strings.HasPrefix(key, immutablePrefix) {
			delete(s.reads, key)
		}
	}
}

// Call builds a v2 call on the resource with the id, on none for "".
func Call(operation, id string, body map[string]any) *translate.Request {
	r := &translate.Request{Operation: operation}
	if body != nil {
		r.Body = body
	}
	if id != "" {
		r.Params = map[string]string{"id": id}
	}
	return r
}

// Get makes a read call, each distinct one once per request.
func (s *Session) Get(ctx context.Context, about Purpose, call *translate.Request) (any, error) {
	return s.Memoize(call.Operation+"\x00"+call.Params["id"]+"\x00"+call.Query.Encode(), func() (any, error) {
		resp, err := s.Send(ctx, call, translate.RetryRead)
		if err != nil || !resp.OK() {
			return nil, &RefusedError{about, resp, err}
		}
		return resp.Body, nil
	})
}

// Read gets one resource. An answer that is none, for lack of an id, is a
// RefusedError too.
func (s *Session) Read(ctx context.Context, about Purpose, operation, id string) (map[string]any, error) {
	body, err := s.Get(ctx, about, Call(operation, id, nil))
	if err != nil {
		return nil, err
	}
	if translate.Text(body, "id") == "" {
		return nil, UnusableResponse(about)
	}
	return translate.Members(body), nil
}

// UnusableResponse is a success in another shape than the operation's answer.
func UnusableResponse(about Purpose) *RefusedError {
	return &RefusedError{about, &translate.Response{Status: http.StatusOK}, nil}
}

// List gets a collection, the array under member. An answer without it is a
// RefusedError too: it does not mean that there is nothing.
func (s *Session) List(ctx context.Context, about Purpose, operation, member string, query url.Values) ([]any, error) {
	return s.list(ctx, about, &translate.Request{Operation: operation, Query: query}, member)
}

func (s *Session) list(ctx context.Context, about Purpose, call *translate.Request, member string) ([]any, error) {
	body, err := s.Get(ctx, about, call)
	items, ok := translate.At(body, member).([]any)
	if err == nil && !ok {
		err = UnusableResponse(about)
	}
	return items, err
}

// WriteUpdate sends a change and returns the resource afterwards. An answer that is no record
// is a RefusedError too.
func (s *Session) Change(ctx context.Context, about Purpose, call *translate.Request) (map[string]any, error) {
	resp, err := s.Send(ctx, call, translate.RetryChange)
	s.Invalidate()
	if err != nil || !resp.OK() {
		return nil, &RefusedError{about, resp, err}
	}
	if call.Params["id"] != "" && translate.Text(resp.Body, "id") == "" {
		return nil, UnusableResponse(about)
	}
	return translate.Members(resp.Body), nil
}

// WriteCreate makes a resource for which there are no candidates.
func (s *Session) Create(ctx context.Context, about Purpose, call *translate.Request) (map[string]any, error) {
	resp, err := translate.Create(ctx, s.Client, call)
	s.Invalidate()
	switch {
	case errors.As(err, new(*translate.UnfinishedError)):
		return nil, err
	case err != nil || !resp.OK():
		return nil, &RefusedError{about, resp, err}
	}
	return translate.Members(resp.Body), nil
}

// patch is a change of a resource that may have to be read first.
type patch struct {
	about        Purpose
	read, update string // operations
	id           string
	origin       *translate.Origin
}

// before reads the resource when the change needs its present state, else it returns nil.
func (s *Session) before(ctx context.Context, p *patch, needed bool) (map[string]any, error) {
	if !needed && !s.Quirks.ReadFirst {
		return nil, nil
	}
	return s.Read(ctx, p.about, p.read, p.id)
}

// apply sends the change and returns the resource then. v2 refuses a change without
// members: there the resource is as before.
func (s *Session) apply(ctx context.Context, p *patch, body, now map[string]any) (map[string]any, error) {
	switch {
	case len(body) > 0:
		call := Call(p.update, p.id, body)
		call.Origin = p.origin
		return s.Change(ctx, p.about, call)
	case now != nil:
		return now, nil
	}
	return s.Read(ctx, p.about, p.read, p.id)
}

// pause is the wait before a call is repeated that may have been carried out.
const pause = 500 * time.Millisecond

// Remove deletes a resource. A 404 after a lost answer is the success of the try
// before.
func (s *Session) Remove(ctx context.Context, about Purpose, operation, id string) error {
	defer s.Invalidate()
	for try := 0; ; try++ {
		resp, err := s.Send(ctx, Call(operation, id, nil), translate.NoRetry)
		if err == nil && (resp.OK() || resp.Status == http.StatusNotFound && try > 0) {
			return nil
		}
		if try == 2 || !unanswered(resp, err) || s.Pause(ctx, pause<<try) != nil {
			return &RefusedError{about, resp, err}
		}
	}
}

// unanswered reports an answer after which the call may or may not have been
// carried out.
func unanswered(resp *translate.Response, err error) bool {
	return err != nil || resp.Status >= http.StatusInternalServerError
}

// Key names a record of the caller's account.
func (s *Session) Key(kind, id string) translate.Key {
	return translate.Key{Account: s.Account(), Kind: kind, ID: id}
}

// Notes returns all records of a kind by id, read once per request; it is never
// nil. An error means that the store cannot tell.
func Notes[T any](ctx context.Context, s *Session, kind string) (map[string]T, error) {
	v, err := s.Memoize("notes\x00"+kind, func() (any, error) {
		return translate.LoadNotes[T](ctx, s.Client, kind)
	})
	notes, _ := v.(map[string]T)
	return notes, err
}
