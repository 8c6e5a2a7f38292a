package filter

import (
	"context"

	"github.com/oklog/ulid/v2"
)

// Response headers that the gateway adds to every response.
const (
	HeaderRequestID = "X-Request-Id"
	HeaderDecision  = "X-Tollgate-Decision"
)

// AssignIDs sets the IDs of the exchange and adds them to the response.
type AssignIDs struct{}

// Name implements Filter.
func (AssignIDs) Name() string { return StageAssignIDs }

// Request uses a well-formed X-Request-Id or generates a new ID. The decision ID is always new and contains the time of arrival.
func (AssignIDs) Request(_ context.Context, ex *Exchange) error {
	ex.DecisionID = ulid.MustNew(ulid.Timestamp(ex.In.Received), ulid.DefaultEntropy()).String()
	ex.RequestID = ex.In.Header.Get(HeaderRequestID)
	if !wellFormedID(ex.RequestID) {
		ex.RequestID = ex.DecisionID
	}
	ex.Event.DecisionID, ex.Event.RequestID = ex.DecisionID, ex.RequestID
	return nil
}

// Response adds the IDs, and disables content sniffing in browsers.
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
