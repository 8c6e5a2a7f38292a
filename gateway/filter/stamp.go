package filter

import (
	"context"

	"github.com/oklog/ulid/v2"
)

// Header names the gateway adds to every answer.
const (
	HeaderRequestID = "X-Request-Id"
	HeaderDecision  = "X-Tollgate-Decision"
)

// Stamp gives the exchange its ids and puts them on the answer.
type Stamp struct{}

// Name implements Filter.
func (Stamp) Name() string { return "stamp" }

// Request adopts a well-formed X-Request-Id or makes one. The decision id is
// always ours, and tells when the request arrived.
func (Stamp) Request(_ context.Context, ex *Exchange) error {
	ex.DecisionID = ulid.MustNew(ulid.Timestamp(ex.In.Received), ulid.DefaultEntropy()).String()
	ex.RequestID = ex.In.Header.Get(HeaderRequestID)
	if !wellFormedID(ex.RequestID) {
		ex.RequestID = ex.DecisionID
	}
	ex.Event.DecisionID, ex.Event.RequestID = ex.DecisionID, ex.RequestID
	return nil
}

// Response puts the ids on the answer, and keeps browsers from reading it as
// anything but its declared type.
func (Stamp) Response(_ context.Context, ex *Exchange) error {
	ex.Answer.Header.Set("X-Content-Type-Options", "nosniff")
	ex.Answer.Header.Set(HeaderRequestID, ex.RequestID)
	ex.Answer.Header.Set(HeaderDecision, ex.DecisionID)
	return nil
}

func wellFormedID(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
