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

// Session is the state of one legacy request: the v2 client and the responses that were read. It is safe for concurrent use.
type Session struct {
	*translate.Client
	Quirks *Quirks

	mu    sync.Mutex // guards reads
	reads map[string]*read
}

// read holds a result that is computed once per request.
type read struct {
	once  sync.Once
	value any
	err   error
}

// NewSession returns a session that uses the client.
func NewSession(d *translate.Client, q *Quirks) *Session {
	return &Session{Client: d, Quirks: q, reads: make(map[string]*read)}
}

// immutablePrefix begins the keys of values that writes do not change.
const immutablePrefix = "lasting\x00"

// Memoize returns the result of f. It calls f once per key, and again after Invalidate.
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

// MemoizeForRequest is like Memoize, but Invalidate does not discard the result. Use it for values that the caller cannot change, such as
// the catalog.
func (s *Session) MemoizeForRequest(key string, f func() (any, error)) (any, error) {
	return s.Memoize(immutablePrefix+key, f)
}

// Invalidate discards the results of Memoize, which may be outdated after a write.
func (s *Session) Invalidate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.reads {
		if !strings.HasPrefix(key, immutablePrefix) {
			delete(s.reads, key)
		}
	}
}

// Call builds a v2 call about the resource with the given id. The id is "" for a call that is not about one resource.
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

// Get makes a read call. Each distinct call is made once per request.
func (s *Session) Get(ctx context.Context, purpose Purpose, call *translate.Request) (any, error) {
	return s.Memoize(call.Operation+"\x00"+call.Params["id"]+"\x00"+call.Query.Encode(), func() (any, error) {
		resp, err := s.Send(ctx, call, translate.RetryRead)
		if err != nil || !resp.OK() {
			return nil, &RefusedError{purpose, resp, err}
		}
		return resp.Body, nil
	})
}

// Read reads one resource. A response without an id is a RefusedError.
func (s *Session) Read(ctx context.Context, purpose Purpose, operation, id string) (map[string]any, error) {
	body, err := s.Get(ctx, purpose, Call(operation, id, nil))
	if err != nil {
		return nil, err
	}
	if translate.Text(body, "id") == "" {
		return nil, UnusableResponse(purpose)
	}
	return translate.Members(body), nil
}

// UnusableResponse returns the error for a response that has a success status but an unexpected body.
func UnusableResponse(purpose Purpose) *RefusedError {
	return &RefusedError{purpose, &translate.Response{Status: http.StatusOK}, nil}
}

// List reads a collection and returns the array in the given member of the response. A response without the array is a RefusedError,
// because it does not mean that the collection is empty.
func (s *Session) List(ctx context.Context, purpose Purpose, operation, member string, query url.Values) ([]any, error) {
	return s.list(ctx, purpose, &translate.Request{Operation: operation, Query: query}, member)
}

func (s *Session) list(ctx context.Context, purpose Purpose, call *translate.Request, member string) ([]any, error) {
	body, err := s.Get(ctx, purpose, call)
	items, ok := translate.At(body, member).([]any)
	if err == nil && !ok {
		err = UnusableResponse(purpose)
	}
	return items, err
}

// Change sends an update and returns the updated resource. A response that is not a resource is a RefusedError.
func (s *Session) Change(ctx context.Context, purpose Purpose, call *translate.Request) (map[string]any, error) {
	resp, err := s.Send(ctx, call, translate.RetryChange)
	s.Invalidate()
	if err != nil || !resp.OK() {
		return nil, &RefusedError{purpose, resp, err}
	}
	if call.Params["id"] != "" && translate.Text(resp.Body, "id") == "" {
		return nil, UnusableResponse(purpose)
	}
	return translate.Members(resp.Body), nil
}

// Create creates a resource that is not a pod and therefore needs no placement.
func (s *Session) Create(ctx context.Context, purpose Purpose, call *translate.Request) (map[string]any, error) {
	resp, err := translate.Create(ctx, s.Client, call)
	s.Invalidate()
	switch {
	case errors.As(err, new(*translate.UnfinishedError)):
		return nil, err
	case err != nil || !resp.OK():
		return nil, &RefusedError{purpose, resp, err}
	}
	return translate.Members(resp.Body), nil
}

// patch is an update of a resource that may have to be read first.
type patch struct {
	purpose      Purpose
	read, update string // operations
	id           string
	origin       *translate.Origin
	// noted reports that the stored note of the resource also changes.
	noted bool
}

// before reads the resource if the update depends on its current state, otherwise it returns nil.
func (s *Session) before(ctx context.Context, p *patch, needed bool) (map[string]any, error) {
	if !needed && !s.Quirks.ReadFirst {
		return nil, nil
	}
	return s.Read(ctx, p.purpose, p.read, p.id)
}

// apply sends the update and returns the resulting resource. It sends nothing for an empty update, which v2 rejects, and returns the current
// resource. If only the note changes, it sends the current name, because the change of a note requires the same permissions as an update.
func (s *Session) apply(ctx context.Context, p *patch, body, now map[string]any) (map[string]any, error) {
	if len(body) == 0 {
		var err error
		if now == nil {
			now, err = s.Read(ctx, p.purpose, p.read, p.id)
		}
		if err != nil || !p.noted {
			return now, err
		}
		body = map[string]any{"name": now["name"]}
	}
	call := Call(p.update, p.id, body)
	call.Origin = p.origin
	return s.Change(ctx, p.purpose, call)
}

// pause is the initial delay before a deletion with an unknown result is retried.
const pause = 500 * time.Millisecond

// Remove deletes a resource. A 404 after a lost response means that the earlier attempt succeeded.
func (s *Session) Remove(ctx context.Context, purpose Purpose, operation, id string) error {
	defer s.Invalidate()
	for try := 0; ; try++ {
		resp, err := s.Send(ctx, Call(operation, id, nil), translate.NoRetry)
		if err == nil && (resp.OK() || resp.Status == http.StatusNotFound && try > 0) {
			return nil
		}
		if try == 2 || !unanswered(resp, err) || s.Pause(ctx, pause<<try) != nil {
			return &RefusedError{purpose, resp, err}
		}
	}
}

// unanswered reports whether the call may or may not have been carried out.
func unanswered(resp *translate.Response, err error) bool {
	return err != nil || resp.Status >= http.StatusInternalServerError
}

// Key returns the key of a stored record of the caller's account.
func (s *Session) Key(kind, id string) translate.Key {
	return translate.Key{Account: s.Account(), Kind: kind, ID: id}
}

// Notes returns all stored notes of a kind (PodNote, EndpointNote or TemplateNote) by id. It reads them once per request. The result is
// never nil. It returns an error if the store fails.
func Notes[T any](ctx context.Context, s *Session, kind string) (map[string]T, error) {
	v, err := s.Memoize("notes\x00"+kind, func() (any, error) {
		return translate.LoadNotes[T](ctx, s.Client, kind)
	})
	notes, _ := v.(map[string]T)
	return notes, err
}
