package platform

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Call is one request as it reached the emulator, and what became of it.
type Call struct {
	// Seq numbers the calls from 1 in the order they arrived.
	Seq int64 `json:"seq"`
	// Time is the emulator's time of arrival.
	Time time.Time `json:"time"`
	// Account is the id of the account that called, empty when unknown.
	Account string `json:"account"`
	// Operation is the operationId of the route, empty when there was none.
	Operation string `json:"operation"`
	// Method, Path and RawQuery are the request line as received, escapes kept.
	Method   string `json:"method"`
	Path     string `json:"path"`
	RawQuery string `json:"rawQuery"`
	// Proto is the protocol version, such as HTTP/1.1.
	Proto string `json:"proto"`
	// Host is the authority asked for.
	Host string `json:"host"`
	// Header is every header field as received.
	Header http.Header `json:"header"`
	// Body is every byte read of the body.
	Body []byte `json:"body"`
	// Status is the status answered; zero while the call is still open or when
	// the connection was cut before an answer.
	Status int `json:"status"`
	// Fault is the kind of the fault injected, empty when there was none.
	Fault FaultKind `json:"fault,omitempty"`
}

// recorder remembers the newest calls.
type recorder struct {
	mu      sync.Mutex
	keep    int
	seq     int64
	calls   []*Call // oldest first
	unknown []string
}

func newRecorder(keep int) *recorder {
	if keep == 0 {
		keep = DefaultKeepCalls
	}
	return &recorder{keep: max(keep, 0)}
}

// begin records the arrival of r; nil when calls are not remembered.
func (c *recorder) begin(r *http.Request, operation string, now time.Time) *Call {
	if c.keep == 0 {
		return nil
	}
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if r.RequestURI == "" { // built by a test rather than read from a connection
		path, query = r.URL.EscapedPath(), r.URL.RawQuery
	}
	call := &Call{
		Time: now, Operation: operation, Method: r.Method, Path: path, RawQuery: query,
		Proto: r.Proto, Host: r.Host, Header: r.Header.Clone(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	call.Seq = c.seq
	if len(c.calls) >= 2*c.keep { // forget in bulk, so that it costs nothing per call
		c.calls = slices.Clone(c.calls[len(c.calls)-c.keep+1:])
	}
	c.calls = append(c.calls, call)
	return call
}

// edit changes a recorded call.
func (c *recorder) edit(call *Call, change func(*Call)) {
	if call == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	change(call)
}

func (c *recorder) noteUnknown(method, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unknown) < 100 {
		c.unknown = append(c.unknown, method+" "+path)
	}
}

// Calls returns the remembered calls, oldest first. The copies are the caller's.
func (s *Server) Calls() []Call {
	c := s.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.calls[max(len(c.calls)-c.keep, 0):]
	out := make([]Call, len(kept))
	for i, call := range kept {
		out[i] = *call
		out[i].Header = call.Header.Clone()
		out[i].Body = slices.Clone(call.Body)
	}
	return out
}

// CallsTo returns the remembered calls of one operation, oldest first.
func (s *Server) CallsTo(operation string) []Call {
	return slices.DeleteFunc(s.Calls(), func(c Call) bool { return c.Operation != operation })
}

// ResetCalls forgets the calls so far; numbering goes on.
func (s *Server) ResetCalls() {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	s.calls.calls, s.calls.unknown = nil, nil
}

// UnknownCalls returns "METHOD path" of the calls so far that matched no route,
// at most a hundred of them.
func (s *Server) UnknownCalls() []string {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	return slices.Clone(s.calls.unknown)
}
