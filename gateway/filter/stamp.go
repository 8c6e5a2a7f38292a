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

// AssignIDs gives the exchange its ids and puts them on the answer.
type AssignIDs struct{}

// Name implements Filter.
func (AssignIDs) Name() string { return "stamp" }

// Request adopts a well-formed X-Request-Id or makes one. The decision id is
// always ours, and tells when the request arrived.
func (AssignIDs) Request(_ context.Context, ex *Exchange) error {
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
func (AssignIDs) Response(_ context.Context, ex *Exchange) error {
	ex.Response.Header.Set("X-Content-Type-Options", "nosniff")
	ex.Response.Header.Set(HeaderRequestID, ex.RequestID)
	ex.Response.Header.Set(HeaderDecision, ex.DecisionID)
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
