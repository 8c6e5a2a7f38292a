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

// AssignIDs sets the request ID and the decision ID of the exchange, and adds both to the response headers.
type AssignIDs struct{}

// Name implements Filter.
func (AssignIDs) Name() string { return StageAssignIDs }

// maskedAgent replaces a User-Agent that contains a key.
const maskedAgent = "masked: contains a gateway key"

// Request generates the decision ID, which contains the time of arrival. The request ID is the caller's X-Request-Id if it is well-formed
// and contains no caller's key, and the decision ID otherwise. Request also masks a User-Agent that contains a key in the event.
func (AssignIDs) Request(_ context.Context, ex *Exchange) error {
	ex.DecisionID = ulid.MustNew(ulid.Timestamp(ex.In.Received), ulid.DefaultEntropy()).String()
	ex.RequestID = ex.In.Header.Get(HeaderRequestID)
	if !wellFormedID(ex.RequestID) || ex.containsKey(ex.RequestID) {
		ex.RequestID = ex.DecisionID
	}
	// A key that begins in the recorded part of the agent may end after it, but a key is not longer than that part.
	if agent := ex.Event.Agent; ex.containsKey(agent[:min(len(agent), 2*maxText)]) {
		ex.Event.Agent = maskedAgent
	}
	ex.Event.DecisionID, ex.Event.RequestID = ex.DecisionID, ex.RequestID
	return nil
}

// Response adds the headers with the IDs, and a header that disables content sniffing in browsers.
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
